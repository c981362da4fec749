"""Steps whose amounts are fixed or drawn uniformly, and those that work on bytes in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, Span, factor_range, has_type, span_range, symmetric_range
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.linear import uniform, zeros_for
from pipegen.ops.transform import Transform


class UnconditionalTransform(Transform):
    """A step that acts on every example: it takes no `probability`."""

    if not TYPE_CHECKING:  # for type checkers, the argument of the family and a class attribute would not fit together
        probability: ClassVar[float] = 1.0


class AmountTransform(Transform):
    """A step that works with amounts, such as an angle. The fixed and the random form of a step share a base of this kind."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each amount by name; an argument without a value has none."""
        raise NotImplementedError

    def amounts(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The amounts of each example by name: float64 `(...)`, from draws `(..., num_draws)`."""
        raise NotImplementedError

    def idle(self) -> bool:
        return super().idle() or all(r == ((1, 1) if name in self.factors else (0, 0)) for name, r in self.ranges().items())


class FixedTransform(UnconditionalTransform, AmountTransform):
    """A step with the same amounts for every example: its arguments that are floats."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: (value, value) for name, value in given.items() if isinstance(value, float)}

    def amounts(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: zeros_for(u) + value for name, (value, _) in self.ranges().items()}


class UniformTransform(AmountTransform):
    """A step that draws an amount from each of its ranges and magnitudes, in the order of its arguments; with `draws`, further numbers."""

    random = True

    def ranges(self) -> dict[str, tuple[float, float]]:
        given = {name: (range_of, getattr(self, name)) for name, range_of in _drawn_arguments(type(self)).items()}
        return {name: range_of(value) for name, (range_of, value) in given.items() if value is not None}

    def num_draws(self) -> int:
        return self.draws or len(self.ranges())

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: uniform(drawn, bounds) for drawn, (name, bounds) in zip(tf.unstack(u, axis=-1), self.ranges().items(), strict=False)}

    def amounts(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.drawn(u)


@cache
def _drawn_arguments(step: type[UniformTransform]) -> dict[str, Callable[[Any], tuple[float, float]]]:
    """The arguments that are drawn, with what reads their range. Cached, since passes ask at every rewrite."""
    found: dict[str, Callable[[Any], tuple[float, float]]] = {}
    for name, field in step.model_fields.items():
        if has_type(field, Magnitude):
            found[name] = factor_range if name in step.factors else symmetric_range
        elif has_type(field, Span):
            found[name] = span_range
    return found


class UnsignedTransform(UniformTransform):
    """A step whose amounts lose their sign: a magnitude of 2 means from 0 to 2."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: tf.abs(amount) for name, amount in super().drawn(u).items()}


class ByteTransform(UniformTransform, NeighbourhoodTransform):
    """A function of images of bytes, with uniform amounts."""

    on_bytes: ClassVar[bool] = True


class RgbTransform(ByteTransform):
    """A function of RGB images of bytes, with uniform amounts."""

    channel_counts = (3,)
