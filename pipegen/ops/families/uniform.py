"""Steps whose magnitudes are given or drawn uniformly, and those that work on bytes in whole numbers."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, factor_range, has_type, symmetric_range
from pipegen.ops.base import ColourTransform, GeometricTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType


class UniformTransform(Transform):
    """A step that draws a number for each of its magnitudes, in the order of its arguments."""

    random = True

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each number that is drawn, by the name that `drawn` gives it; what has no value draws none."""
        given = {name: getattr(self, name) for name in _magnitudes(type(self))}
        return {name: (factor_range if name in self.factors else symmetric_range)(m) for name, m in given.items() if m is not None}

    def idle(self) -> bool:
        return super().idle() or all(r == ((1, 1) if name in self.factors else (0, 0)) for name, r in self.ranges().items())

    def num_draws(self) -> int:
        return len(self.ranges())

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: uniform(drawn, bounds) for drawn, (name, bounds) in zip(tf.unstack(u, axis=-1), self.ranges().items(), strict=False)}


class UniformGeometric(UniformTransform, GeometricTransform):
    """A geometric step of that kind."""


class UniformColour(UniformTransform, ColourTransform):
    """A colour step of that kind."""


@cache
def _magnitudes(step: type[UniformTransform]) -> tuple[str, ...]:
    """Returns the names of a step's magnitudes. Passes ask at every rewrite."""
    return tuple(name for name, field in step.model_fields.items() if has_type(field, Magnitude))


class DeterministicGeometric(GeometricTransform):
    """A geometric step with one matrix for every example."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example


class DeterministicColour(ColourTransform):
    """A colour step with one matrix for every example."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example


class DeterministicLookupTable(LookupTableTransform):
    """A table step with one table for every example, or one that depends on nothing but the histogram."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example


class ByteTransform(UniformTransform, NeighbourhoodTransform):
    """A function of images of bytes, with a number drawn for each of its magnitudes."""

    on_bytes: ClassVar[bool] = True


class RgbTransform(ByteTransform):
    """One that needs red, green and blue."""

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8; it needs three channels."""
        y = super().infer(x)
        if x.channels != 3:
            raise OpError("PG205", f"`{self.op}` needs 3 channels, and gets {x.channels}")
        return y
