"""Caches in the graph: in memory, with fixed shapes, and on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.process.devices import untouched, variable, write_row
from pipegen.cache.store import Store, file_stamp
from pipegen.ops.fields.strings import Ints
from pipegen.ops.lowering.python_calls import numpy_function
from pipegen.plan.nodes import Cache
from pipegen.terminal import log


class MemoryCache:
    """A cache in memory, without labels and numbers in columns, unless they are `read` with their records.

    Attributes:
        features: The cached features.
        ready: True for cached records: bool `(records,)`.
    """

    def __init__(self, node: Cache, num_examples: int, read: Collection[str] = ()) -> None:
        entry = node.out
        self.features = tuple(name for name in entry if name not in node.columns or name in read)
        shapes = {name: [num_examples, *entry[name].shape] for name in self.features}
        self._kept = {name: untouched(shape, tf.as_dtype(entry[name].dtype), "pipegen_cache") for name, shape in shapes.items()}
        self.ready = variable(np.zeros(num_examples, bool), tf.bool, "pipegen_cache_filled")

    def add(self, record: tf.Tensor, compute: Callable[[], Features]) -> tf.Tensor:
        """Computes and writes a record; returns a bool scalar, true once the cache holds it."""
        features = compute()
        with tf.control_dependencies([write_row(self._kept[name], record, features[name]) for name in self.features]):
            return tf.identity(True)

    def gather(self, features: Features, compute: Callable[[Features], Features]) -> Features:
        """Reads the features of a batch; `compute` computes those of one example that could not be cached."""
        return {name: self._kept[name].sparse_read(features["@record"]) for name in self.features}


_COMPUTE, _WHOLE, _LEFT_OUT = 0, 1, 2
"""States of a record: to compute and write; cached; not cached, since the cache cannot be written any more."""


class DiskCache:
    """A split's view of a cache on disk, with the methods of `MemoryCache`.

    Args:
        store: The cache.
        rows: The row of each record of the split.
        paths: The name of each record in messages.
        files: The files of each record, one sequence for each column: their modification times tell versions apart.
    """

    def __init__(self, store: Store, rows: Ints | Sequence[int], paths: Sequence[str], files: Sequence[Sequence[str]]) -> None:
        self.store = store
        self.features = tuple(c.name for c in store.about.columns)
        self._rows, self._paths, self._files = np.asarray(rows, np.int64), paths, files
        self.ready = variable(np.zeros(len(self._rows), bool), tf.bool, "pipegen_cache_checked")

    def add(self, record: tf.Tensor, compute: Callable[[], Features]) -> tf.Tensor:
        state, stamp = numpy_function(self._look, [record], (tf.int64, tf.int64))

        def computed() -> tf.Tensor:
            features = compute()
            return numpy_function(self._write, [record, stamp, *(features[name] for name in self.features)], tf.bool)

        return tf.ensure_shape(tf.cond(tf.equal(state, _COMPUTE), computed, lambda: tf.equal(state, _WHOLE)), [])

    def gather(self, features: Features, compute: Callable[[Features], Features]) -> Features:
        record = features["@record"]
        good = self.ready.sparse_read(record)

        def one(given: tuple[Any, ...]) -> tuple[tf.Tensor, ...]:
            here, example = given

            def missing() -> tuple[tf.Tensor, ...]:
                values = compute(example)
                return tuple(values[name] for name in self.features)

            return tf.cond(here, lambda: tuple(value[0] for value in self._fetched(example["@record"][None])), missing)

        def mended() -> tuple[tf.Tensor, ...]:
            single = {name: value for name, value in features.items() if name.startswith("@")}
            signature = tuple(tf.TensorSpec(c.shape, tf.as_dtype(c.dtype)) for c in self.store.about.columns)
            return tf.map_fn(one, (good, single), fn_output_signature=signature)

        values = tf.cond(tf.reduce_all(good), lambda: self._fetched(record), mended)
        return dict(zip(self.features, values, strict=True))

    def _fetched(self, record: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Reads the features of cached records `(n,)`."""
        columns = self.store.about.columns
        values = numpy_function(self._fetch, [record], [tf.as_dtype(c.dtype) for c in columns])
        return tuple(tf.ensure_shape(value, [record.shape[0], *c.shape]) for value, c in zip(values, columns, strict=True))

    def _fetch(self, record: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        columns = self.store.about.columns
        values = [np.empty((len(record), *c.shape), tf.as_dtype(c.dtype).as_numpy_dtype) for c in columns]
        flat = [value.view(np.uint8).reshape(len(record), -1) for value in values]
        for i, number in enumerate(record.tolist()):
            self.store.read(int(self._rows[number]), [rows[i].data for rows in flat])
        return values

    def _look(self, record: np.int64) -> tuple[np.int64, np.int64]:
        """Returns the state of a record, and the stamp of its file, taken before the file is read."""
        row, path = int(self._rows[record]), self._paths[int(record)]
        stamp = np.int64(sum(file_stamp(column[int(record)]) for column in self._files) % (1 << 63))
        state = self.store.state(row, int(stamp))
        if state == "whole":
            return np.int64(_WHOLE), stamp
        if state == "damaged":
            self._warn_once("%s: the cache holds damaged records, the first one of %s; they are computed again", self.store.folder, path)
        return np.int64(_COMPUTE if self.store.refused is None else _LEFT_OUT), stamp

    def _write(self, record: np.int64, stamp: np.int64, *values: np.ndarray[Any, Any]) -> np.bool_:
        """Writes a record; returns False on failure."""
        rows = [np.ascontiguousarray(value).reshape(-1).view(np.uint8).data for value in values]
        written = self.store.write(int(self._rows[record]), rows, int(stamp))
        if not written:
            reason, there = self.store.refused, sum(1 for _ in self.store.filled())
            self._warn_once(
                "PG416 %s: the cache cannot be written (%s); it holds %d of %d examples, the others are decoded in every epoch",
                *(self.store.folder, reason.strerror if reason is not None else "", there, self.store.about.records),
            )
        return np.bool_(written)

    def _warn_once(self, message: str, *about: object) -> None:
        if message not in self.store.told:
            self.store.told.add(message)
            log.warning(message, *about)


RowCache = MemoryCache | DiskCache  # a cache of all records of a split at one edge of the plan; `plan/nodes.py` has a kind for each


def fill(cache: RowCache, record: tf.Tensor, compute: Callable[[], Features]) -> tf.Tensor:
    """Fills the cache with one record, unless it holds it or is full; returns the record afterwards."""

    def miss() -> tf.Tensor:
        # Marked only once every value is written: a failed record must not look filled.
        with tf.control_dependencies([write_row(cache.ready, record, cache.add(record, compute))]):
            return tf.identity(record)

    return tf.cond(cache.ready.sparse_read(record), lambda: tf.identity(record), miss)


def fill_all(cache: RowCache, features: Features, compute: Callable[[Features], Features], at_once: int) -> Features:
    """Fills the cache with the misses of a batch, `at_once` examples at a time. Without misses it costs only a check of the mask."""
    single = {name: features[name] for name in ("@record", "@draws")}

    def misses() -> tf.Tensor:
        return tf.map_fn(
            lambda one: fill(cache, one["@record"], lambda: compute(one)),
            single,
            fn_output_signature=tf.TensorSpec([], tf.int64),
            parallel_iterations=at_once,
        )

    record = single["@record"]
    return features | {"@record": tf.cond(tf.reduce_all(cache.ready.sparse_read(record)), lambda: record, misses)}
