"""Medians of neighbourhoods: what the random and the deterministic form share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.medians import middle, sorted_columns
from pipegen.ops.lowering.taps import with_border


class MedianTransform(NeighbourhoodTransform):
    """Replaces each value by the median of those around it."""

    symmetric = True

    side: Literal[3, 5] = 3
    """The side of the square whose median it is, in pixels: 3 or 5."""

    def weight(self) -> float:
        return 0.55 if self.side == 3 else 1.1

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return self._widen, self._sort, self._choose

    def _widen(self, images: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (with_border(images, self.side // 2, "nearest"),)

    def _sort(self, images: tf.Tensor, wide: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return sorted_columns(wide, self.side, sides(images)[0])

    def _choose(self, images: tf.Tensor, *columns: tf.Tensor) -> tuple[tf.Tensor, ...]:
        _, width, channels = sides(images)
        return (middle(columns, width * channels, channels),)
