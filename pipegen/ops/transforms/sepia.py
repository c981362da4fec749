"""Give images the brown tones of old photographs."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import ColourTransform
from pipegen.ops.families.uniform import UnconditionalTransform
from pipegen.ops.lowering.colours import sepia
from pipegen.ops.lowering.linear import zeros_for
from pipegen.ops.traits import to_float32


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


class RandomSepia(SepiaTransform):
    """Gives a share of the images the brown tones of old photographs, by the matrix of `sepia`."""

    op = "random_sepia"
    random = True
    examples = to_float32("random_sepia", "random_sepia: {probability: 0.1}")

    probability: Probability = 0.5
    """The share of examples that becomes brown."""
