"""`std`: the spread lies within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.lazy import np
from pipegen.ops.testing.moments import MomentTest

if TYPE_CHECKING:
    from pipegen.ops.testing.evidence import Array


class Std(MomentTest):
    """Measures the standard deviation of a feature, or of a column, in each split; of the values, not an estimate for a population."""

    op = "std"
    examples = ("std: {feature: image, within: [0.8, 1.2]}",)

    def value(self, mean: Array, variance: Array) -> Array:
        return np.sqrt(variance)

    @property
    def noun(self) -> str:
        return "standard deviation"
