"""Blur images along a line."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.schedules import Number
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.motion import LONGEST, MotionTransform


class MotionBlur(MotionTransform):
    """Replaces each pixel by the mean along a line through it, as a moving camera does.

    The line is followed pixel by pixel in the direction in which it goes farther, and read between two pixels in the other
    one. The image is reflected at its border (abc|cba). Bytes are weighted by integers of 14 bits.
    """

    op = "motion_blur"
    examples = (
        Example("motion_blur: {length: 9}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("motion_blur: {length: 7, degrees: 30}", IMAGE_224.with_(dtype="float32"), "float32[224×224×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    length: Annotated[float, Field(ge=1, le=LONGEST)]
    """How long the line is, in pixels, from 1, which changes nothing, to 64."""
    degrees: Number = 0.0
    """Its angle in degrees, anticlockwise from the right; 90 is upright."""

    def longest(self) -> float:
        return self.length

    def idle(self) -> bool:
        return self.length == 1

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        length, degrees = (tf.fill(tf.shape(u)[:1], tf.constant(v, tf.float64)) for v in (self.length, self.degrees))
        return self.lines(length, degrees)
