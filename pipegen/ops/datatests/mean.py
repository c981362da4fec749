"""`mean`: the mean lies within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.testing.moments import MomentTest

if TYPE_CHECKING:
    from pipegen.ops.testing.evidence import Array


class Mean(MomentTest):
    """Measures the mean of a feature, or of a column, in each split."""

    op = "mean"
    examples = ("mean: {feature: image, within: [-0.2, 0.2], per: channel}", "mean: {column: age, within: [30, 60]}")

    def value(self, mean: Array, variance: Array) -> Array:
        return mean

    @property
    def noun(self) -> str:
        return "mean"
