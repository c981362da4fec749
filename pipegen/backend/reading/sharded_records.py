"""Records in shards: the shard, row and id of each, and shards mapped into memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from pipegen.backend.features import last_begun
from pipegen.backend.process.devices import Once, on_this_host
from pipegen.backend.process.traced_functions import compiled, vectors
from pipegen.backend.reading.manifest_columns import Column, as_tensor, runs_elsewhere
from pipegen.data.shards import BLOCK, MIX_FACTORS, MIX_SHIFTS, Bitmap, Selected
from pipegen.ops.lowering.stored_readers import file_of, mapped_there
from pipegen.ops.sources.prepared import StoredShards

_WORD = 64


def mix64(value: tf.Tensor) -> tf.Tensor:
    """Computes the hash of `pipegen.data.shards`, to the bit: uint64 of any shape."""
    for shift, factor in zip(MIX_SHIFTS, MIX_FACTORS, strict=False):
        value = _folded(value, shift) * tf.constant(factor, tf.uint64)
    return _folded(value, MIX_SHIFTS[-1])


def _folded(value: tf.Tensor, shift: int) -> tf.Tensor:
    return tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, tf.constant(shift, tf.uint64)))


class BitmapTensors:
    """`Bitmap` in the graph."""

    def __init__(self, bitmap: Bitmap) -> None:
        self._words = Column(bitmap.bits.view("<u8"))
        self._before = tf.constant(bitmap.before)

    def select(self, member: tf.Tensor) -> tf.Tensor:
        """Finds the records of members, which are counted from 0: int64 `(n,)` each."""
        block = last_begun(self._before, member)
        words = self._words(block)
        ones = tf.cast(tf.raw_ops.PopulationCount(x=words), tf.int64)
        word, left = _place(ones, member - tf.gather(self._before, block))
        bits = tf.bitwise.right_shift(tf.gather(words, word, batch_dims=1)[:, None], tf.constant(np.arange(_WORD, dtype=np.uint64))[None])
        bit, _ = _place(tf.cast(tf.bitwise.bitwise_and(bits, tf.constant(1, tf.uint64)), tf.int64), left)
        return block * BLOCK + word * _WORD + bit


def _place(counts: tf.Tensor, member: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the one of the `counts` of each row, int64 `(n, m)`, that holds its member, and the member's number there."""
    last = tf.cumsum(counts, axis=1)
    place = tf.reduce_sum(tf.cast(last <= member[:, None], tf.int64), axis=1)
    return place, member - tf.gather(last - counts, place, batch_dims=1)


class ShardTensors:
    """The records of a split in shards; `bases` are those of the ids of each shard, uint64 `(shards,)`."""

    def __init__(self, selected: Selected, bases: np.ndarray[Any, Any]) -> None:
        self._starts = tf.constant(selected.starts)
        self._shards = tf.constant(selected.shards)
        self._first = tf.constant(selected.first)
        self._bases = tf.constant(bases)
        self._offsets = None if selected.offsets is None else tf.constant(selected.offsets)
        self._bitmap = None if selected.bitmap is None else BitmapTensors(selected.bitmap)

    def locate(self, member: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the shard of members of the split, and the row in it: int64 `(n,)` each."""
        at = last_begun(self._starts, member)
        shard = tf.gather(self._shards, at)
        # A split of whole shards begins at the first record of each.
        numbers = (member, self._starts, at) if self._bitmap is None else (self._bitmap.select(member), self._first, shard)
        row = numbers[0] - tf.gather(numbers[1], numbers[2])
        return shard, row if self._offsets is None else row + tf.gather(self._offsets, shard)

    def words(self, member: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the lower and the upper half of the ids of members `(n,)`, uint32."""
        shard, row = self.locate(member)
        return _mixed()(tf.gather(self._bases, shard), row)


@cache
def _mixed() -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    def halves(base: tf.Tensor, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mixed = mix64(base + tf.cast(row, tf.uint64))
        return tf.cast(mixed, tf.uint32), tf.cast(tf.bitwise.right_shift(mixed, tf.constant(32, tf.uint64)), tf.uint32)

    return compiled(halves, vectors(tf.uint64, tf.int64), jit=False)


_AT_ONCE = 16  # rows read at a time


class MappedShards:
    """The bytes of shards, or rows of them."""

    def __init__(self, shards: StoredShards) -> None:
        self._shards, self._row, self._rows = shards, shards.row, shards.rows
        self._files = [*zip(shards.files, shards.sizes, strict=True)]

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Reads rows of bytes: uint8 `(..., row)`."""
        if not runs_elsewhere():
            return tf.gather(self._variable.read_value(), row)
        maps = mapped_there(self._files)

        def one(number: tf.Tensor) -> tf.Tensor:
            return tf.slice(file_of(maps, number // self._rows), [number % self._rows * self._row], [self._row])

        if row.shape.rank == 0:
            return one(row)
        spec = tf.TensorSpec([self._row], tf.uint8)
        found = tf.map_fn(one, tf.reshape(row, [-1]), fn_output_signature=spec, parallel_iterations=_AT_ONCE)
        return tf.reshape(found, tf.concat([tf.shape(row), [self._row]], 0))

    def part(self, at: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Reads bytes from a place on, all in one shard: uint8 `(length,)`."""
        if not runs_elsewhere():
            return tf.slice(self._variable.read_value(), [at], [length])
        starts = tf.constant(self._shards.starts, tf.int64)
        shard = last_begun(starts, at)
        return tf.slice(file_of(mapped_there(self._files), shard), [at - tf.gather(starts, shard)], [length])

    def memory(self, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor] | None:
        """Returns all shards as words, uint64 `(m,)`, not copied, and the offsets of rows in bytes, int64 `(n,)`.

        `None` for a function that runs in another process.
        """
        return None if runs_elsewhere() else (self._words.read_value(), row * self._row)

    @Once
    def _stored(self) -> Any:
        return self._shards.mapped()

    @Once
    def _words(self) -> tf.Variable:
        return _held(self._stored.view("<u8"))

    @Once
    def _variable(self) -> tf.Variable:
        if not self._row:
            return _held(self._stored)
        rows = self._shards.total // self._row
        return _held(self._stored[: rows * self._row].reshape(rows, self._row))


def _held(stored: Any) -> tf.Variable:
    return on_this_host(lambda: tf.Variable(as_tensor(stored), trainable=False, name="pipegen_shards"))
