"""`grayscale`, `sepia` and their random forms."""

from __future__ import annotations

from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.colours import gray, sepia
from pipegen.ops.lowering.linear import zeros_for
from pipegen.ops.step_bases import ColourTransform, OccasionalTransform, UnconditionalTransform
from pipegen.ops.traits import IMAGE_224, Example, to_float32
from pipegen.types import FeatureType


class Grayscale(UnconditionalTransform, ColourTransform):
    """Replaces every pixel by its luma: y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    With three channels each of them holds the luma, as a model trained on colour expects; an image of one channel is then repeated. The
    step acts on every example; for a share of them, use `random_grayscale`.
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


class RandomGrayscale(OccasionalTransform, ColourTransform):
    """Replaces every pixel of a share of the images by its luma: y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    Each of the three channels holds the luma, so all images of a batch keep the shape that a model trained on colour expects. (For one
    channel, or for every example, use `grayscale`.)
    """

    op = "random_grayscale"
    min_channels = 3
    examples = to_float32("random_grayscale", "random_grayscale: {probability: 0.1}")

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return gray(zeros_for(u), 3, 3)


class SepiaTransform(ColourTransform):
    """The brown tones of old photographs."""

    min_channels = 3

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return sepia(zeros_for(u))


class Sepia(UnconditionalTransform, SepiaTransform):
    """Gives images the brown tones of old photographs, by the widely used matrix on (R, G, B) of Albumentations' `ToSepia`.

    R' = 0.393 R + 0.769 G + 0.189 B, G' = 0.349 R + 0.686 G + 0.168 B, B' = 0.272 R + 0.534 G + 0.131 B. White would leave the range of
    values, and is clipped.
    """

    op = "sepia"
    examples = to_float32("sepia")


class RandomSepia(OccasionalTransform, SepiaTransform):
    """Gives a share of the images the brown tones of old photographs, by the matrix of `sepia`."""

    op = "random_sepia"
    examples = to_float32("random_sepia", "random_sepia: {probability: 0.1}")
