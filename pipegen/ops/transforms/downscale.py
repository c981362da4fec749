"""Shrink images and enlarge them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, span_range, within
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import columns_of, rows_of, through
from pipegen.ops.traits import same_type


class RandomDownscale(UniformTransform, NeighbourhoodTransform):
    """Shrinks an image by a factor drawn uniformly and enlarges it to its size again, which loses details.

    A side of s pixels becomes one of factor · s, rounded half to even and at least one. `nearest` reads one pixel both times, and gives
    blocks; `bilinear` interpolates between four, without a filter before shrinking.
    """

    op = "random_downscale"
    examples = same_type(
        "random_downscale: {factor: [0.25, 0.75]}", "random_downscale: {factor: [0.3, 0.9], method: bilinear, probability: 0.3}"
    )

    factor: Annotated[Span, within(0.01, 1)]
    """The range of the factor, up to 1, which changes nothing."""
    method: Literal["nearest", "bilinear"] = "nearest"
    """How pixels are read, both times: `nearest` takes one, `bilinear` interpolates between four."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.factor) == (1.0, 1.0)

    def weight(self) -> float:
        return 0.7 if self.method == "nearest" else 2.1

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        factor = self.drawn(u)["factor"]
        return *through(factor, height, self.method), *through(factor, width, self.method)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return rows_of, columns_of
