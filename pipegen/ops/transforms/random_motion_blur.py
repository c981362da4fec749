"""Blur images along a random line."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.motion import LONGEST, MotionTransform
from pipegen.ops.lowering.linear import uniform


class RandomMotionBlur(MotionTransform):
    """Replaces each pixel by the mean along a line through it, as a moving camera does; length and angle are drawn uniformly.

    The line is followed pixel by pixel in the direction in which it goes farther, and read between two pixels in the other
    one. The image is reflected at its border (abc|cba). Bytes are weighted by integers of 14 bits.
    """

    op = "random_motion_blur"
    random = True
    examples = (
        Example("random_motion_blur: {length: [3, 15]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_motion_blur: {length: [1, 9], degrees: [-30, 30], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    length: Annotated[Span, checked(check_pair), checked(check_range, 1, LONGEST)]
    """The range of the line's length, in pixels, from 1, which changes nothing, to 64."""
    degrees: Annotated[Span, checked(check_pair), checked(check_range, -360, 360)] = (0.0, 180.0)
    """The range of its angle in degrees, anticlockwise from the right; by default any."""

    def longest(self) -> float:
        return span_range(self.over_epochs().length)[1]

    def idle(self) -> bool:
        return super().idle() or self.longest() == 1

    def num_draws(self) -> int:
        return 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"length": uniform(u[..., 0], span_range(self.length)), "degrees": uniform(u[..., 1], span_range(self.degrees))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return self.lines(**self.drawn(u))
