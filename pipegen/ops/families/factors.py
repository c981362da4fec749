"""Colour steps whose one magnitude is a factor around 1: what they share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_factor, factor_lints, factor_range
from pipegen.ops.base import ColourTransform
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType


class FactorTransform(ColourTransform):
    """A colour step by a factor; 1 changes nothing, and one number is drawn for it."""

    random = True
    factors = frozenset({"factor"})

    factor: Magnitude
    """A number m, meaning from 1 - m to 1 + m, or the range."""

    odd_at: ClassVar[float | None] = 0.0
    """A factor that nobody means; `None` where every factor of at least 0 makes sense."""

    @field_validator("factor")
    @classmethod
    def _factor(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_factor(value, "factor")
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and (self.probability == 0 or factor_range(self.factor) == (1, 1))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return factor_lints(self.op, "factor", self.factor, self.odd_at, 5.0)

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"factor": uniform(u[..., 0], factor_range(self.factor))}
