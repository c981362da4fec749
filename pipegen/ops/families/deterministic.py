"""Steps that draw nothing: what those of a family share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, check_range, factor_lints
from pipegen.ops.base import ColourTransform, GeometricTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.lowering.linear import zeros_for
from pipegen.types import FeatureType


class DeterministicGeometric(GeometricTransform):
    """A geometric step with one matrix for every example."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return self.fixed(zeros_for(u), height, width)

    def fixed(self, like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """The step's `matrix`, broadcast to the batch's shape.

        Args:
            like: float64 zeros of the batch's shape `(...)`.
            height: float64 scalar: the height of the canvas, in pixels.
            width: float64 scalar: its width.

        Returns:
            float64 `(..., 3, 3)`.
        """
        raise NotImplementedError


class DeterministicColour(ColourTransform):
    """A colour step with one matrix for every example."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return self.fixed(zeros_for(u), channels)

    def fixed(self, like: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The step's `matrix`, broadcast to the batch's shape.

        Args:
            like: float64 zeros of the batch's shape `(...)`.
            channels: 1 or 3.

        Returns:
            float64 `A (..., out, channels)`, `b (..., out)` and `m (..., out)`.
        """
        raise NotImplementedError


class DeterministicFactor(DeterministicColour):
    """A colour step by one factor; 1 changes nothing."""

    factor: Number
    """The factor, at least 0."""

    odd_at: ClassVar[float | None] = 0.0
    """A factor that nobody means; `None` where every factor of at least 0 makes sense."""

    @field_validator("factor")
    @classmethod
    def _factor(cls, value: float) -> float:
        check_range(value, "factor", low=0.0)
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and self.factor == 1

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return factor_lints(self.op, "factor", (self.factor, self.factor), self.odd_at, 5.0)


class DeterministicLookupTable(LookupTableTransform):
    """A table step with one table for every example, or one that depends on nothing but the histogram."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example
