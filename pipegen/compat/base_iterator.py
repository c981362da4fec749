"""Keras' `Iterator`: the base class of iterators, and of classes that make their own batches. Importing this imports TensorFlow."""

from __future__ import annotations

import threading
from collections.abc import Iterator as Walk
from typing import TYPE_CHECKING, Any

from pipegen.backend.datasets.pipeline_dataset import Explains
from pipegen.backend.process.devices import InTurn
from pipegen.compat.checks import UnsupportedArgument
from pipegen.compat.generator_arguments import overridden

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.compat.images import Array


class Iterator(Explains):
    """Endless batches by the indices of their examples: a base class for classes that make batches in Python.

    A subclass makes a batch in `_get_batches_of_transformed_samples(index_array)`, as in Keras. It is not compiled, and runs on one thread.
    The iterators of flows are subclasses, too, with compiled batches instead.

    It is a `tf.data.Dataset` by type, since Keras' `fit` accepts no other iterable that has a length and can be restarted.

    Args:
        n: The number of examples.
        batch_size: The number of examples in a batch; the last one of an epoch may be smaller.
        shuffle: A new order in every epoch.
        seed: As in Keras, NumPy's global stream is seeded before each batch with `seed` plus the number of batches so far. Subclasses draw
            from it; flows have their own streams.

    Attributes:
        n: As given; likewise `batch_size`, `shuffle` and `seed`.
        batch_index: The index of the next batch in the epoch.
        total_batches_seen: The number of batches so far.
        index_array: The order of the epoch; `None` before the first.
        index_generator: An iterator over the indices of each batch.
        lock: The lock for `index_generator`.
    """

    index_array: Array | None

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: int | None, **options: Any) -> None:
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.batch_index = self.total_batches_seen = 0
        self.lock = threading.RLock()
        self.index_array = None
        self.index_generator = self._flow_index()

    def _get_batches_of_transformed_samples(self, index_array: Array) -> Any:
        """Makes a batch.

        Args:
            index_array: The indices of its examples, int64 `(batch,)`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: define `_get_batches_of_transformed_samples(index_array)`, which returns a batch"
        )

    # The indices

    def _set_index_array(self) -> None:
        """Draws the order of an epoch."""
        import numpy as np

        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def _flow_index(self) -> Walk[Array]:
        """Yields the indices of each batch, epoch after epoch."""
        self.reset()
        while True:
            self._seed()
            if self.batch_index == 0:
                self._set_index_array()
            first = self.batch_index * self.batch_size
            self.batch_index = 0 if first + self.batch_size >= self.n else self.batch_index + 1
            self.total_batches_seen += 1
            yield self._order()[first : first + self.batch_size]

    def _order(self) -> Array:
        if self.index_array is None:
            self._set_index_array()
        order: Any = self.index_array
        return order

    def _seed(self) -> None:
        import numpy as np

        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)

    # As an iterator

    def __len__(self) -> int:
        return (self.n + self.batch_size - 1) // self.batch_size

    def __iter__(self) -> Walk[Any]:
        import tensorflow as tf

        return InTurn(self._given_batches()) if tf.executing_eagerly() else super().__iter__()

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """Makes the next batch; the same as `next(it)`."""
        with self.lock:
            indices = next(self.index_generator)
        return self._get_batches_of_transformed_samples(indices)

    def __getitem__(self, index: int) -> Any:
        """Makes a batch of the epoch.

        Raises:
            ValueError: For an index out of range.
        """
        self._check_index(index)
        with self.lock:
            self._seed()
            self.total_batches_seen += 1
            indices = self._order()[self.batch_size * index : self.batch_size * (index + 1)]
        return self._get_batches_of_transformed_samples(indices)

    def _check_index(self, index: int) -> None:
        if not 0 <= index < len(self):
            raise ValueError(f"batch index {index} out of range: an epoch has {len(self)} batches")

    def reset(self) -> None:
        """Makes `next` start an epoch."""
        self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Draws a new order."""
        self._set_index_array()

    def _given_by(self) -> str | None:
        """Name of the overridden method that makes the batches of a subclass."""
        return next((name for name in ("__next__", "next", "__getitem__") if overridden(self, Iterator, name)), "__getitem__")

    def _given_batches(self) -> Walk[Any]:
        """Yields the batches of a subclass, from the start of an epoch."""
        self.reset()
        while self._given_by() != "__getitem__":
            yield next(self)
        while True:
            for i in range(len(self)):
                batch = self[i]
                if i == len(self) - 1:  # before the last batch, since the caller may stop after it
                    self._end_epoch()
                yield batch

    def _end_epoch(self) -> None:
        self.on_epoch_end()

    # As a dataset, which it is by type alone without compiled batches

    def _pipegen_variant(self) -> tf.Tensor:
        import tensorflow as tf

        return tf.data.experimental.to_variant(self._compiled())

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._compiled()._pipegen_source()

    def _compiled(self) -> tf.data.Dataset:
        """Dataset that TensorFlow reads.

        Raises:
            UnsupportedArgument: For a class that makes its own batches.
        """
        why = f"TensorFlow reads compiled batches, but those of {type(self).__name__} are made in Python"
        raise UnsupportedArgument(self._given_by() or "__iter__", why, "pass a generator that yields the batches")

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch; unknown for batches made in Python.

        Raises:
            UnsupportedArgument: For a class that makes its own batches.
        """
        return self._compiled().element_spec

    def cardinality(self) -> tf.Tensor:
        """Counts the batches in an epoch, int64."""
        import tensorflow as tf

        return tf.constant(len(self), tf.int64)
