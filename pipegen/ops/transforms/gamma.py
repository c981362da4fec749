"""`gamma` and `random_gamma`."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, Magnitude, Number, check_positive, checked, odd_factor
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.lowering.colours import gamma_corrected
from pipegen.ops.step_bases import AmountTransform, FixedTransform, UniformTransform
from pipegen.ops.traits import same_type


class GammaTransform(AmountTransform, LookupTableTransform):
    """The table of a power of the values."""

    factors = frozenset({"gamma"})

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return gamma_corrected(self.amounts(u)["gamma"])


class Gamma(FixedTransform, GammaTransform):
    """Raises values to a power: x becomes 255 · (x / 255) ^ gamma, rounded half to even. Black and white stay.

    Above 1 middle tones get darker, below 1 brighter.
    """

    op = "gamma"
    examples = same_type("gamma: {gamma: 2.2}")

    gamma: Annotated[Number, checked(check_positive), odd_factor(low=0.1, high=10.0, drawn=False)]
    """The exponent, above 0; 1 changes nothing."""


class RandomGamma(UniformTransform, GammaTransform):
    """Raises values to a power drawn uniformly: x becomes 255 · (x / 255) ^ gamma, rounded half to even.

    Black and white stay. Above 1 middle tones get darker, below 1 brighter.
    """

    op = "random_gamma"
    examples = same_type("random_gamma: {gamma: 0.2}", "random_gamma: {gamma: [0.7, 1.5], probability: 0.5}")

    gamma: Annotated[Magnitude, ABOVE_ZERO, odd_factor(low=0.1, high=10.0)]
    """The exponent, above 0: 0.2 means from 0.8 to 1.2, a pair is the range."""
