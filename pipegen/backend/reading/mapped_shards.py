"""Shards of a prepared store as functions read them: mapped into memory, by TensorFlow alone.

In this process the mapping is the memory of a variable, so that a batch is one gather. What is derived from a dataset may run elsewhere: it
maps the files itself, wherever it runs, each once a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.process.variables import on_this_host
from pipegen.backend.reading.columns import Once, as_tensor, runs_elsewhere

if TYPE_CHECKING:
    from pipegen.ops.sources.prepared_store.rows import StoredShards


class MappedShards:
    """The bytes of shards, or rows of them.

    Args:
        shards: The files.
    """

    def __init__(self, shards: StoredShards) -> None:
        self._shards, self._row, self._rows = shards, shards.row, shards.rows

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Rows of bytes, stacked as their numbers are: uint8 `(..., row)`."""
        if not runs_elsewhere():
            return tf.gather(self._variable.read_value(), row)
        flat = tf.reshape(row, [-1])
        number = flat // self._rows
        parts, found = [], []
        for shard, (file, size) in enumerate(zip(self._shards.files, self._shards.sizes, strict=True)):
            mine = tf.where(number == shard)[:, 0]
            parts.append(tf.gather(_mapped(file, [size // self._row, self._row]), tf.gather(flat, mine) - shard * self._rows))
            found.append(mine)
        order = tf.argsort(tf.concat(found, 0))
        return tf.reshape(tf.gather(tf.concat(parts, 0), order), tf.concat([tf.shape(row), [self._row]], 0))

    def part(self, at: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """So many bytes from a place on, which lie in one shard: uint8 `(length,)`."""
        if not runs_elsewhere():
            return tf.slice(self._variable.read_value(), [at], [length])
        starts = tf.constant(self._shards.starts, tf.int64)
        shard = tf.searchsorted(starts, at[None], side="right")[0] - 1

        def of(file: str, size: int, start: int) -> tf.Tensor:
            return tf.slice(_mapped(file, [size]), [at - start], [length])

        files = zip(self._shards.files, self._shards.sizes, self._shards.starts, strict=True)
        return tf.switch_case(shard, [lambda one=one: of(*one) for one in files])

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


def _mapped(file: str, shape: list[int]) -> tf.Tensor:
    with tf.device("CPU:0"):
        return tf.raw_ops.ImmutableConst(dtype=tf.uint8, shape=np.array(shape).tolist(), memory_region_name=file)
