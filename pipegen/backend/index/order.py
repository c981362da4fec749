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
_WHOLE = -1
"""Stands in the place of a window's number in the key of the order of the blocks: no split has 2^32 windows."""


@dataclass(frozen=True, eq=False)
class Order(Extent):
    """The order of one split on one host.

    Attributes:
        kind: `stored`, `global` or `window`.
        window: Examples in a window.
        seed: The spec's seed.
        blocks: For examples that lie many in a file: the first one of each file, int64 `(blocks + 1,)` with the end. `window` is then an
            order in two levels: the blocks are permuted whole, and windows of what stands there one after another are permuted within.
    """

    kind: str
    window: int
    seed: int
    blocks: tf.Tensor | None = None

    def positions(self, epoch: tf.Tensor, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The positions of this host's block of one global batch, as `at` says them; `epoch` and `step` are int64 scalars."""
        return self.at(epoch, self.slots_of(step))

    def slots_of(self, step: tf.Tensor) -> tf.Tensor:
        """The slots of this host's block of the global batch of a step: int64 `(n,)`."""
        low, high = self.block(step)
        return step * self.batch + tf.range(low, high, dtype=tf.int64)

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
        """The cycle through the data, the position in it, both int64, and the weight, float32, of each slot of an epoch.

        Args:
            epoch: int64 scalar, or like `slot`.
            slot: int64: the step times the global batch, plus the row.
        """
        if self.epoch_steps is not None:
            absolute = epoch * (self.epoch_steps * self.batch) + slot
            return absolute // self.num_examples, absolute % self.num_examples, tf.ones_like(absolute, tf.float32)
        weight = tf.cast(slot < self.num_examples, tf.float32)
        return tf.zeros_like(slot) + epoch, slot % self.num_examples, weight

    def found(self, epoch: int | tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The records at slots of an epoch, and the cycles that they are of: int64 `(n,)` each."""
        cycle, position, _ = self.at(tf.convert_to_tensor(epoch, tf.int64), slot)
        return self.records(cycle, position), cycle

    def alternates(self, epoch: tf.Tensor, slot: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The records that may take the place of a damaged one: the next in the same block of the same batch.

        `epoch` and `slot` are int64 scalars; the records and their cycles are int64 `(count,)`.
        """
        step = slot // self.batch
        row = slot - step * self.batch
        low, high = self._share_with(step, row)
        rows = low + (row - low + 1 + tf.range(count, dtype=tf.int64)) % (high - low)
        return self.found(epoch, step * self.batch + rows)

    def records(self, cycle: tf.Tensor, position: tf.Tensor, *, jit: bool = False, laid: tuple[tf.Tensor, ...] = ()) -> tf.Tensor:
        """The record at each position of a cycle: int64 `(n,)` each, and so is the result.

        `jit` lets XLA compile the cipher. `laid` is what `laid` gives for the epoch that these are of, and else worked out again.
        """
        if self.kind == "stored" or self.num_examples == 1:
            return position
        key, size = partial(_key_function(jit), _words(self.seed)), self.window
        if self.kind == "global":
            return _permute(position, key(cycle, tf.zeros_like(cycle)), tf.constant(self.num_examples - 1, tf.int64))
        window = position // size
        first = window * size
        last = tf.minimum(first + size, self.num_examples) - 1
        place = first + _permute(position - first, key(cycle, window), last - first)
        if self.blocks is None:
            return place
        if not laid:
            cycles, which = tf.unique(cycle, tf.int64)
            laid, place = self._lay(self.blocks, cycles, jit), place + which * self.num_examples
        starts, begins = laid
        at = tf.searchsorted(begins, place, side="right") - 1  # of empty blocks, none
        return tf.gather(starts, at) + place - tf.gather(begins, at)

    def laid(self, epoch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The blocks of an epoch in their order, for `records` of its steps, each of which then takes the logarithm of their number.

        Returns:
            The first example of each block and the place where it begins, int64 `(blocks,)`. Nothing where there are no blocks, or where an
            epoch is not one cycle.
        """
        if self.blocks is None or self.kind != "window" or self.epoch_steps is not None:
            return ()
        return self._lay(self.blocks, epoch[None], False)

    def _lay(self, blocks: tf.Tensor, cycles: tf.Tensor, jit: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """The first example of each block and where it begins, one cycle behind the other: int64 `(cycles * blocks,)`."""
        count = tf.size(blocks, tf.int64) - 1
        key = _key_function(jit)(_words(self.seed), cycles, tf.zeros_like(cycles) + _WHOLE)
        order = _permute(tf.range(tf.size(cycles, tf.int64) * count) % count, tf.repeat(key, count, axis=0), count - 1)
        starts = tf.gather(blocks, order)
        return starts, tf.cumsum(tf.gather(blocks, order + 1) - starts, exclusive=True)


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
