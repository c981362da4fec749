"""Brighten or darken the middle tones of images."""

from __future__ import annotations

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, check_factor, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.lowering.tables import gamma_corrected
from pipegen.types import FeatureType


class Gamma(DeterministicLookupTable):
    """Raises values to a power: x becomes 255 · (x / 255) ^ gamma, rounded half to even. Black and white stay.

    Above 1 middle tones get darker, below 1 brighter.
    """

    op = "gamma"
    examples = (Example("gamma: {gamma: 2.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    gamma: Number
    """The exponent, above 0; 1 changes nothing."""

    @field_validator("gamma")
    @classmethod
    def _gamma(cls, value: float) -> float:
        check_factor((value, value), "gamma", exclusive=True)
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return self.gamma == 1 and self.keeps_type(x)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return factor_lints(self.op, "gamma", (self.gamma, self.gamma), 0.1, 10.0)

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return gamma_corrected(tf.fill([tf.shape(u)[0]], tf.constant(self.gamma, tf.float64)))
