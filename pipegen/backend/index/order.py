"""From steps to records: the order of an epoch as a function of position, so that nothing is buffered and any step can
be started at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import tensorflow as tf

from pipegen.backend.index.threefry import threefry2x32
from pipegen.backend.process.xla import compiled
from pipegen.physical.extent import Extent

_ORDER_DOMAIN = 0x6F726472
"""Separates the keys of the order from those of the draws."""


@dataclass(frozen=True)
class Order(Extent):
    """The order of one split on one host.

    Attributes:
        kind: `stored`, `global` or `window`.
        window: Examples in a window.
        seed: The spec's seed.
    """

    kind: str
    window: int
    seed: int

    def positions(self, epoch: tf.Tensor, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The positions of this host's block of one global batch.

        Args:
            epoch: int64 scalar.
            step: int64 scalar.

        Returns:
            The cycle through the data and the position in it, int64 `(n,)`, and the weight of each, float32 `(n,)`.
        """
        low, high = self.block(step)
        return self.at(epoch, step * self.batch + tf.range(low, high, dtype=tf.int64))

    def block(self, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The rows of a global batch that this host takes: the first, and one past the last, like `step`."""
        index, count = self.shard
        here = self._rows(step)
        return here * index // count, here * (index + 1) // count

    def _share_with(self, step: tf.Tensor, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The rows of the share that a row is in: of another host's, where that row is worked out for the sake of its group."""
        count, here = self.shard[1], self._rows(step)
        index = tf.minimum(((row + 1) * count - 1) // here, count - 1)
        return here * index // count, here * (index + 1) // count

    def _rows(self, step: tf.Tensor) -> tf.Tensor:
        """The rows of a global batch, like `step`; one of a step behind the end of the epoch."""
        here = tf.fill(tf.shape(step), tf.constant(self.batch, tf.int64))
        if self.ends_short:
            here = tf.maximum(tf.minimum(here, self.num_examples - step * self.batch), 1)
        return here

    def at(self, epoch: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The cycle, the position in it and the weight of each slot of an epoch.

        Args:
            epoch: int64 scalar, or like `slot`.
            slot: int64: the step times the global batch, plus the row.
        """
        if self.epoch_steps is not None:
            absolute = epoch * (self.epoch_steps * self.batch) + slot
            return absolute // self.num_examples, absolute % self.num_examples, tf.ones_like(absolute, tf.float32)
        weight = tf.cast(slot < self.num_examples, tf.float32)
        return tf.zeros_like(slot) + epoch, slot % self.num_examples, weight

    def alternates(self, epoch: tf.Tensor, slot: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The records that may take the place of a damaged one: the next in the same block of the same batch.

        Args:
            epoch: int64 scalar.
            slot: int64 scalar.
            count: How many.

        Returns:
            The cycles and the records, int64 `(count,)`.
        """
        step = slot // self.batch
        row = slot - step * self.batch
        low, high = self._share_with(step, row)
        rows = low + (row - low + 1 + tf.range(count, dtype=tf.int64)) % (high - low)
        cycle, position, _ = self.at(epoch, step * self.batch + rows)
        return cycle, self.records(cycle, position)

    def records(self, cycle: tf.Tensor, position: tf.Tensor, *, jit: bool = False) -> tf.Tensor:
        """The record at each position of a cycle: int64 `(n,)` each, and so is the result. With `jit`, XLA compiles the cipher."""
        if self.kind == "stored" or self.num_examples == 1:
            return position
        key = partial(_key_function(jit), _words(self.seed))
        if self.kind == "global":
            return _permute(position, key(cycle, tf.zeros_like(cycle)), tf.constant(self.num_examples - 1, tf.int64))
        window = position // self.window
        first = window * self.window
        last = tf.minimum(first + self.window, self.num_examples) - 1
        return first + _permute(position - first, key(cycle, window), last - first)


def window_size(window_bytes: int | None, mean_bytes: float) -> int:
    """Examples in a window of so many bytes of stored records."""
    return max(1, int((window_bytes or 0) / max(mean_bytes, 1.0)))


def _permute(position: tf.Tensor, key: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """A keyed permutation of 0..last; 8 rounds, since 4 are visibly non-random on large sets."""
    return tf.raw_ops.RandomIndexShuffle(index=position, seed=key, max_index=last, rounds=8)


@cache
def _key_function(jit: bool) -> Callable[..., tf.Tensor]:
    return compiled(_order_key, tf.uint32, tf.int64, tf.int64, jit=jit)


def _order_key(seed: tf.Tensor, cycle: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    """uint32 `(n, 3)` for RandomIndexShuffle, from the two words of the seed.

    On sets up to 65,536 that op reads only the low 8 bits of each word, so hashed words alone would repeat an order
    among a thousand epochs now and then. The low bytes are therefore a bijection of the cycle: 2^24 cycles in a row
    never share a key.
    """
    c = tf.cast(cycle, tf.uint32)
    w = tf.cast(window, tf.uint32)
    a0, a1 = threefry2x32((seed[0], seed[1]), (tf.constant(_ORDER_DOMAIN, tf.uint32), w))
    b0, b1 = threefry2x32((a0, a1), (c, tf.zeros_like(c)))
    b2, _ = threefry2x32((a0, a1), (c, tf.ones_like(c)))
    distinct = _mix24(c + a0, a1)
    keep = tf.constant(0xFFFFFF00, tf.uint32)
    byte = tf.constant(0xFF, tf.uint32)
    words = []
    for bits, shift in ((b0, 0), (b1, 8), (b2, 16)):
        part = tf.bitwise.bitwise_and(tf.bitwise.right_shift(distinct, tf.constant(shift, tf.uint32)), byte)
        words.append(tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, keep), part))
    return tf.stack(words, -1)


def _mix24(x: tf.Tensor, salt: tf.Tensor) -> tf.Tensor:
    """A bijection of the low 24 bits: odd multiplications and shifts by half the width."""
    mask = tf.constant(0xFFFFFF, tf.uint32)
    x = tf.bitwise.bitwise_and(x, mask)
    for factor in (0x9E3779, 0x85EBCB):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(12, tf.uint32)))
        x = tf.bitwise.bitwise_and(x * tf.constant(factor | 1, tf.uint32) + salt, mask)
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(12, tf.uint32)))


def _words(seed: int) -> tf.Tensor:
    return tf.constant([seed & 0xFFFFFFFF, seed >> 32], tf.uint32)
