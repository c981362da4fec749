"""Blur by a disc, as a lens out of focus makes it: what the random and the deterministic form share."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.taps import Offset, spread, whole_weights, with_border

LARGEST = 10.0
"""The largest radius, in pixels, of which a disc has 346."""


class DefocusTransform(NeighbourhoodTransform):
    """The mean of a disc, whose rim counts as far as it covers a pixel's middle."""

    symmetric = True

    def largest(self) -> float:
        """Returns the largest radius of any example, in pixels."""
        raise NotImplementedError

    def weight(self) -> float:
        return 0.35 + 0.2 * self._reach()

    def discs(self, radius: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The weights for radii, float64 `(n,)`."""
        groups = self._groups()
        far = tf.constant([math.hypot(*group[0]) for group in groups], tf.float64)
        counts = [len(group) for group in groups]
        cover = tf.clip_by_value(radius[:, None] + 0.5 - far, 0.0, 1.0)
        return whole_weights(cover / tf.reduce_sum(cover * tf.constant(counts, tf.float64), -1, keepdims=True), counts=counts)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return self._widen, self._sum

    def _reach(self) -> int:
        """Returns how far the largest disc reaches, in pixels."""
        return math.ceil(self.largest() + 0.5) - 1

    def _groups(self) -> list[list[Offset]]:
        """The offsets in the largest disc, those at the same distances across and down together, from the middle on."""
        reach, far = self._reach(), self.largest() + 0.5
        found: dict[Offset, list[Offset]] = {}
        for down in range(-reach, reach + 1):
            for right in range(-reach, reach + 1):
                if math.hypot(down, right) < far:
                    low, high = sorted((abs(down), abs(right)))
                    found.setdefault((high, low), []).append((down, right))
        return [found[key] for key in sorted(found)]

    def _widen(self, images: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return with_border(images, self._reach(), "reflect"), whole, real

    def _sum(self, images: tf.Tensor, wide: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (spread(images, wide, whole, real, self._groups(), self._reach()),)
