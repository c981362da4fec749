"""A memory cache of fixed shape: one variable for each feature, a mask of what is filled, and a gather per batch.

It is filled in the order of access and keyed by record, so the order, the draws and resuming stay as they are. Where nothing
is done to single examples behind it, no example is looked at by itself once a batch is filled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from pipegen.backend.process.variables import untouched, variable, write_row
from pipegen.ops.kinds.registry import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pipegen.backend.features import Features
    from pipegen.backend.reading.disk_cache import DiskCache
    from pipegen.types import ElementType


class MemoryCache:
    """Keeps what every record of a split looks like at one edge.

    Args:
        entry: The type of the edge; labels and numbers are not kept where they are at hand.
        num_examples: Records in the split.
        read: The features that are read with their records, and so are not at hand.
    """

    def __init__(self, entry: ElementType, num_examples: int, read: Collection[str] = ()) -> None:
        self.features = tuple(name for name, t in entry.items() if not kind_of(t).indexed or name in read)
        shapes = {name: [num_examples, *entry[name].shape] for name in self.features}
        self._kept = {name: untouched(shape, tf.as_dtype(entry[name].dtype), "pipegen_cache") for name, shape in shapes.items()}
        self.ready = variable(np.zeros(num_examples, bool), tf.bool, "pipegen_cache_filled")
        """Which records are filled."""

    def fill(self, record: tf.Tensor, compute: Callable[[], Features]) -> tf.Tensor:
        """Compute and keep one record, unless it is there; gives the record back once it is."""

        def miss() -> tf.Tensor:
            features = compute()
            stored = [write_row(self._kept[name], record, features[name]) for name in self.features]
            # Marked only once every value is in place: a record that fails must not look filled.
            with tf.control_dependencies(stored):
                marked = write_row(self.ready, record, tf.constant(True))
            with tf.control_dependencies([marked]):
                return tf.identity(record)

        return tf.cond(self.ready.sparse_read(record), lambda: tf.identity(record), miss)

    def gather(self, features: Features, compute: Callable[[Features], Features]) -> Features:
        """The features of a batch, from its `@record`; nothing is left to `compute`."""
        return {name: self._kept[name].sparse_read(features["@record"]) for name in self.features}


def fill_all(cache: MemoryCache | DiskCache, features: Features, compute: Callable[[Features], Features], at_once: int) -> Features:
    """Fill what a batch has that is not there yet. Once all is there it costs a look at the mask, and nothing for each example.

    Args:
        cache: The cache.
        features: A batch, with `@record` and `@draws` `(n, ...)`.
        compute: The features of one record, from the same of one example.
        at_once: How many are computed at a time.
    """
    single = {name: features[name] for name in ("@record", "@draws")}

    def fill() -> tf.Tensor:
        return tf.map_fn(
            lambda one: cache.fill(one["@record"], lambda: compute(one)),
            single,
            fn_output_signature=tf.TensorSpec([], tf.int64),
            parallel_iterations=at_once,
        )

    record = single["@record"]
    return features | {"@record": tf.cond(tf.reduce_all(cache.ready.sparse_read(record)), lambda: record, fill)}
