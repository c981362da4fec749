"""Sharpen or soften images at random."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ONE, Magnitude, Odd, check_range, checked, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.sharpening import LARGEST, SharpenTransform, gains
from pipegen.ops.families.uniform import UniformTransform


class RandomSharpness(UniformTransform, SharpenTransform):
    """Sharpens or softens an image by a factor drawn uniformly: y = s + factor · (x - s), with s the smoothed image.

    It is Pillow's `ImageEnhance.Sharpness`: s is the mean of each 3 by 3 pixels with five times the weight in the
    middle; pixels at the border stay as they are. Below 1 softens, 0 gives s, above 1 sharpens. Values are clipped to
    the range of those that enter. (Keras' layer counts from 0 to 1 around 0.5.)
    """

    op = "random_sharpness"
    factors = frozenset({"factor"})
    examples = (
        Example("random_sharpness: {factor: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_sharpness: {factor: [1.0, 3.0], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    factor: Annotated[Magnitude, AROUND_ONE, checked(check_range, None, LARGEST), Odd(factor_lints, low=None, high=10.0)]
    """How sharp, at least 0 and at most 20; 1 changes nothing: 0.5 means from 0.5 to 1.5, a pair is the range."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return gains(self.drawn(u)["factor"])
