"""Sharpen or soften images."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.sharpening import LARGEST, SharpenTransform, gains


class Sharpness(SharpenTransform):
    """Sharpens or softens every image by one factor: y = s + factor · (x - s), with s the smoothed image.

    It is Pillow's `ImageEnhance.Sharpness`: s is the mean of each 3 by 3 pixels with five times the weight in the
    middle; pixels at the border stay as they are. Below 1 softens, 0 gives s, above 1 sharpens. Values are clipped to
    the range of those that enter.
    """

    op = "sharpness"
    examples = (Example("sharpness: {factor: 2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    factor: Annotated[float, Field(ge=0, le=LARGEST)]
    """How sharp, at least 0 and at most 20; 1 changes nothing."""

    def idle(self) -> bool:
        return self.factor == 1

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return gains(tf.fill(tf.shape(u)[:1], tf.constant(self.factor, tf.float64)))
