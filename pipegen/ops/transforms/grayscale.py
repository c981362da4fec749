"""Drop the colour of images."""

from __future__ import annotations

from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicColour
from pipegen.ops.lowering.colours import gray
from pipegen.ops.lowering.linear import zeros_for
from pipegen.types import FeatureType


class Grayscale(DeterministicColour):
    """Replaces every pixel by its luma: y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    With three channels each of them holds the luma, which is what a model trained on colour expects; an image of one
    channel is then repeated. It happens to every example; for a share of them, use `random_grayscale`.
    """

    op = "grayscale"
    examples = (
        Example("grayscale", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("grayscale: {channels: 1}", IMAGE_224, "float32[224×224×1] in [0, 255]"),
    )

    channels: Literal[1, 3] = 3
    """Channels of the output: 3 repeats the luma."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return y.with_(shape=(x.height, x.width, self.channels))

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and x.channels == 1 == self.channels

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return gray(zeros_for(u), channels, self.channels)
