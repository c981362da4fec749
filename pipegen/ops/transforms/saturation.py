"""`saturation` and `random_saturation`."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Factor, Number, bounded, odd_factor
from pipegen.ops.lowering.colours import saturation
from pipegen.ops.step_bases import AmountTransform, ColourTransform, FixedTransform, UniformTransform
from pipegen.ops.traits import to_float32


class SaturationTransform(AmountTransform, ColourTransform):
    """A change of saturation about the luma of each pixel."""

    factors = frozenset({"factor"})
    min_channels = 3

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return saturation(self.amounts(u)["factor"])


class Saturation(FixedTransform, SaturationTransform):
    """Moves every pixel away from its own gray, or towards it: y = factor · x + (1 - factor) · luma(x).

    The luma of a pixel is 0.299 R + 0.587 G + 0.114 B, as in Pillow and torchvision. As a matrix on (R, G, B):
    factor · I + (1 - factor) · L, where every row of L is (0.299, 0.587, 0.114).
    """

    op = "saturation"
    examples = to_float32("saturation: {factor: 0.5}")

    factor: Annotated[Number, bounded(0), odd_factor(low=None, high=5.0, drawn=False)]
    """The saturation, at least 0; 0 is gray, 1 changes nothing."""


class RandomSaturation(UniformTransform, SaturationTransform):
    """Moves every pixel away from its own gray, or towards it: y = factor · x + (1 - factor) · luma(x).

    The luma of a pixel is 0.299 R + 0.587 G + 0.114 B, as in Pillow and torchvision. (`tf.image` scales the S of HSV
    instead.)
    """

    op = "random_saturation"
    examples = to_float32("random_saturation: {factor: 0.3}", "random_saturation: {factor: [0.0, 1.0]}")

    factor: Annotated[Factor, odd_factor(low=None, high=5.0)]
    """The saturation, at least 0; 0 is gray: 0.3 means from 0.7 to 1.3, a pair is the range."""
