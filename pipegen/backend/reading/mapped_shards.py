"""Shards of a prepared store as functions read them: mapped into memory, by TensorFlow alone.

In this process the mapping is the memory of a variable, so that a batch is one gather. What is derived from a dataset may run elsewhere: it
maps the files itself, wherever it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.variables import on_this_host
from pipegen.backend.reading.columns import Once, as_tensor, runs_elsewhere
from pipegen.ops.lowering.mapped import file_of, mapped_there

if TYPE_CHECKING:
    from pipegen.ops.sources.prepared_store.rows import StoredShards

_AT_ONCE = 16
"""Rows that are read at a time."""


class MappedShards:
    """The bytes of shards, or rows of them.

    Args:
        shards: The files.
    """

    def __init__(self, shards: StoredShards) -> None:
        self._shards, self._row, self._rows = shards, shards.row, shards.rows
        self._files = [*zip(shards.files, shards.sizes, strict=True)]

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Rows of bytes, stacked as their numbers are: uint8 `(..., row)`."""
        if not runs_elsewhere():
            return tf.gather(self._variable.read_value(), row)
        maps = mapped_there(self._files)

        def one(number: tf.Tensor) -> tf.Tensor:
            return tf.slice(file_of(maps, number // self._rows), [number % self._rows * self._row], [self._row])

        if row.shape.rank == 0:
            return one(row)
        found = tf.map_fn(
            one, tf.reshape(row, [-1]), fn_output_signature=tf.TensorSpec([self._row], tf.uint8), parallel_iterations=_AT_ONCE
        )
        return tf.reshape(found, tf.concat([tf.shape(row), [self._row]], 0))

    def part(self, at: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """So many bytes from a place on, which lie in one shard: uint8 `(length,)`."""
        if not runs_elsewhere():
            return tf.slice(self._variable.read_value(), [at], [length])
        starts = tf.constant(self._shards.starts, tf.int64)
        shard = tf.searchsorted(starts, at[None], side="right")[0] - 1
        return tf.slice(file_of(mapped_there(self._files), shard), [at - tf.gather(starts, shard)], [length])

    def memory(self, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor] | None:
        """Returns all shards as words, uint64 `(m,)`, which are not copied, and where in them rows begin, in bytes, int64 `(n,)`.

        `None` where a function runs elsewhere, which has no such memory.
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
