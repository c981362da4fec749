"""Give images the brown tones of old photographs."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import ColourTransform
from pipegen.ops.families.uniform import DeterministicColour
from pipegen.ops.lowering.colours import sepia
from pipegen.ops.lowering.linear import zeros_for
from pipegen.ops.traits import to_float32


class Sepia(DeterministicColour):
    """Gives images the brown tones of old photographs: one matrix on (R, G, B), the widely used one of Albumentations' `ToSepia`.

    R' = 0.393 R + 0.769 G + 0.189 B, G' = 0.349 R + 0.686 G + 0.168 B, B' = 0.272 R + 0.534 G + 0.131 B. White is more than
    values hold, and is clipped.
    """

    op = "sepia"
    min_channels = 3
    examples = to_float32("sepia")

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return sepia(zeros_for(u))


class RandomSepia(ColourTransform):
    """Gives a share of the images the brown tones of old photographs; `sepia` says by which matrix."""

    op = "random_sepia"
    random = True
    min_channels = 3
    examples = to_float32("random_sepia", "random_sepia: {probability: 0.1}")

    probability: Probability = 0.5
    """The share of examples that becomes brown."""

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return sepia(zeros_for(u))
