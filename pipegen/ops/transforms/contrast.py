"""Raise or lower the contrast of images by a factor."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicFactor
from pipegen.ops.lowering.colours import contrast


class Contrast(DeterministicFactor):
    """Moves every value away from the image's mean gray, or towards it: y = factor · x + (1 - factor) · mean.

    `mean` is the mean luma (0.299 R + 0.587 G + 0.114 B) of the image that enters the run of colour steps, as in
    Pillow and torchvision.
    """

    op = "contrast"
    examples = (Example("contrast: {factor: 1.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),)

    factor: Number
    """The contrast, at least 0; 0 is a plain gray, 1 changes nothing."""

    def uses_mean(self) -> bool:
        return True

    def mixes_channels(self) -> bool:
        return False

    def fixed(self, like: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return contrast(like + self.factor, channels)
