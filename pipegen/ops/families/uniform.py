"""Random steps that draw one number for each of their magnitudes, uniformly."""

from __future__ import annotations

from functools import cache

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, factor_range, has_type, symmetric_range
from pipegen.ops.base import ColourTransform, GeometricTransform, Transform
from pipegen.ops.lowering.linear import uniform


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
