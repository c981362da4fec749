"""Raise or lower the contrast of images."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ONE, Magnitude, Number, Odd, check_range, checked, factor_lints
from pipegen.ops.families.uniform import AmountTransform, FixedTransform, UniformTransform
from pipegen.ops.lowering.colours import contrast
from pipegen.ops.step_bases import ColourTransform
from pipegen.ops.traits import to_float32


class ContrastTransform(AmountTransform, ColourTransform):
    """A change of contrast about the mean luma."""

    separate = True
    factors = frozenset({"factor"})

    def uses_mean(self) -> bool:
        return True

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return contrast(self.amounts(u)["factor"], channels)


class Contrast(FixedTransform, ContrastTransform):
    """Moves every value away from the image's mean gray, or towards it: y = factor · x + (1 - factor) · mean.

    `mean` is the mean luma (0.299 R + 0.587 G + 0.114 B) of the image that enters the run of colour steps, as in
    Pillow and torchvision.
    """

    op = "contrast"
    examples = to_float32("contrast: {factor: 1.5}")

    factor: Annotated[Number, checked(check_range, 0), Odd(factor_lints, low=0.0, high=5.0, drawn=False)]
    """The contrast, at least 0; 0 is a plain gray, 1 changes nothing."""


class RandomContrast(UniformTransform, ContrastTransform):
    """Moves every value away from the image's mean gray, or towards it: y = factor · x + (1 - factor) · mean.

    `mean` is the mean luma (0.299 R + 0.587 G + 0.114 B) of the image that enters the run of colour steps, as in
    Pillow and torchvision.
    """

    op = "random_contrast"
    examples = to_float32("random_contrast: {factor: 0.2}", "random_contrast: {factor: [0.5, 1.5]}")

    factor: Annotated[Magnitude, AROUND_ONE, Odd(factor_lints, low=0.0, high=5.0)]
    """The contrast, at least 0; 0 is a plain gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
