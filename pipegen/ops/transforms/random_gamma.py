"""Brighten or darken the middle tones of images at random."""

from __future__ import annotations

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_factor, factor_lints, factor_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.tables import gamma_corrected
from pipegen.types import FeatureType


class RandomGamma(LookupTableTransform):
    """Raises values to a power drawn uniformly: x becomes 255 · (x / 255) ^ gamma, rounded half to even.

    Black and white stay. Above 1 middle tones get darker, below 1 brighter.
    """

    op = "random_gamma"
    random = True
    factors = frozenset({"gamma"})
    examples = (
        Example("random_gamma: {gamma: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_gamma: {gamma: [0.7, 1.5], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    gamma: Magnitude
    """The exponent, above 0: 0.2 means from 0.8 to 1.2, a pair is the range."""

    @field_validator("gamma")
    @classmethod
    def _gamma(cls, value: Magnitude) -> Magnitude:
        check_factor(value, "gamma", exclusive=True)
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return (self.probability == 0 or factor_range(self.gamma) == (1, 1)) and self.keeps_type(x)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return factor_lints(self.op, "gamma", self.gamma, 0.1, 10.0)

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"gamma": uniform(u[..., 0], factor_range(self.gamma))}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return gamma_corrected(self.drawn(u)["gamma"])
