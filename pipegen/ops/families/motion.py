"""Blur along a line, as a moving camera makes it: what the random and the deterministic form share."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.linear import radians
from pipegen.ops.lowering.taps import along, whole_weights, with_border

LONGEST = 64.0
"""The longest line, in pixels."""


class MotionTransform(NeighbourhoodTransform):
    """The mean along a line through each pixel, which lies between two pixels at each of its steps and reads both."""

    def longest(self) -> float:
        """Returns the longest line of any example, in pixels."""
        raise NotImplementedError

    def weight(self) -> float:
        return 0.5 + 0.2 * self._reach()

    def lines(self, length: tf.Tensor, degrees: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Gives the places of the taps, int32 `(n, taps, 2)`, and their weights, for lengths in pixels and angles, float64 `(n,)`."""
        reach = self._reach()
        right, up = tf.cos(radians(degrees)), tf.sin(radians(degrees))
        flat = tf.abs(right) >= tf.abs(up)
        along_, beside = tf.where(flat, right, up), tf.where(flat, up, right)
        step = tf.range(-reach, reach + 1)
        half = (length - 1.0) / 2.0 * tf.abs(along_)
        cover = tf.clip_by_value(half[:, None] + 1.0 - tf.abs(tf.cast(step, tf.float64)), 0.0, 1.0)
        # Angles come out of a cosine: what differs in its last bits is on the same pixel.
        off = tf.round(tf.cast(step, tf.float64) * -(beside / along_)[:, None] * 65536.0) / 65536.0
        first = tf.floor(off)
        share = off - first
        weights = tf.concat([cover * (1.0 - share), cover * share], 1)
        first = tf.cast(first, tf.int32)
        minor = tf.concat([first, first + 1], 1)
        major = tf.zeros_like(minor) + tf.concat([step, step], 0)
        rows = tf.where(flat[:, None], minor, -major)
        columns = tf.where(flat[:, None], major, -minor)
        places = tf.stack([rows, columns], -1) + reach + 1
        return places, *whole_weights(weights / tf.reduce_sum(weights, -1, keepdims=True), reach)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return self._widen, self._sum

    def _reach(self) -> int:
        """Returns how far the longest line reaches to each side, in pixels."""
        return math.ceil((self.longest() - 1.0) / 2.0)

    def _widen(self, images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return with_border(images, self._reach() + 1, "reflect"), *given

    def _sum(self, images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (along(images, *given),)
