"""Brighten or darken the middle tones of images at random."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, Magnitude, Odd, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.tables import gamma_corrected


class RandomGamma(UniformTransform, LookupTableTransform):
    """Raises values to a power drawn uniformly: x becomes 255 · (x / 255) ^ gamma, rounded half to even.

    Black and white stay. Above 1 middle tones get darker, below 1 brighter.
    """

    op = "random_gamma"
    factors = frozenset({"gamma"})
    examples = (
        Example("random_gamma: {gamma: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_gamma: {gamma: [0.7, 1.5], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    gamma: Annotated[Magnitude, ABOVE_ZERO, Odd(factor_lints, low=0.1, high=10.0)]
    """The exponent, above 0: 0.2 means from 0.8 to 1.2, a pair is the range."""

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return gamma_corrected(self.drawn(u)["gamma"])
