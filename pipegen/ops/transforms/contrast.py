"""Raise or lower the contrast of images by a factor."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, Odd, check_range, checked, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicColour
from pipegen.ops.lowering.colours import contrast
from pipegen.ops.lowering.linear import zeros_for


class Contrast(DeterministicColour):
    """Moves every value away from the image's mean gray, or towards it: y = factor · x + (1 - factor) · mean.

    `mean` is the mean luma (0.299 R + 0.587 G + 0.114 B) of the image that enters the run of colour steps, as in
    Pillow and torchvision.
    """

    op = "contrast"
    examples = (Example("contrast: {factor: 1.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),)

    factor: Annotated[Number, checked(check_range, 0), Odd(factor_lints, low=0.0, high=5.0, drawn=False)]
    """The contrast, at least 0; 0 is a plain gray, 1 changes nothing."""

    def idle(self) -> bool:
        return self.factor == 1

    def uses_mean(self) -> bool:
        return True

    def mixes_channels(self) -> bool:
        return False

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return contrast(zeros_for(u) + self.factor, channels)
