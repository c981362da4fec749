"""Keras' `Iterator`, for classes that make their own batches, and `CompiledIterator`, the base of the flows' iterators.

Importing this imports TensorFlow.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator as Walk
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pipegen.api.building import build_by_place
from pipegen.backend.datasets.numpy_batches import owned_arrays
from pipegen.backend.datasets.pipeline_dataset import Explains
from pipegen.backend.process.devices import InTurn
from pipegen.compat.checks import UnsupportedArgument, image_data_format
from pipegen.compat.flow_specs import Described, Handed, check_subset, preset_of, with_function, with_matrix
from pipegen.compat.generator_arguments import OF_A_GENERATOR, OF_AN_ITERATOR, check_overrides, for_flow, name_of, overridden
from pipegen.compat.images import Array, Saving
from pipegen.lazy import np, tf
from pipegen.physical.extent import Position
from pipegen.waiting import first_part


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
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)

    # As an iterator

    def __len__(self) -> int:
        return (self.n + self.batch_size - 1) // self.batch_size

    def __iter__(self) -> Walk[Any]:
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
        return tf.data.experimental.to_variant(self._compiled())

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._compiled()._pipegen_source()

    def _compiled(self) -> tf.data.Dataset:
        """Dataset that TensorFlow reads; a class that makes its own batches has none."""
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
        return tf.constant(len(self), tf.int64)


class CompiledIterator(Iterator):
    """Endless batches of a pipeline as NumPy arrays: the base class of the three kinds of flows.

    `len` is the number of batches in an epoch. `iter(it)`, a `for` loop and each epoch of `fit` start at the first batch of the current
    epoch; `next(it)` continues from batch to batch and from epoch to epoch, until `reset`.

    A subclass of one of the three kinds may override `__next__`, `next` or `__getitem__`; loops and `fit` then use its batches. Methods
    that would change how a batch is made, such as `_get_batches_of_transformed_samples`, must not be overridden: nothing would call them.

    Attributes:
        pipeline: The `pipegen.Pipeline`; an iterator without images has none.
        image_data_generator: The generator.
        n: The number of images.
        samples: The same.
        shuffle: As given; the validation subset is never shuffled.
        batch_index: The index of the next batch of `next` in the epoch.
        total_batches_seen: The number of batches of `next` so far.
        image_shape: The shape of an image.
        data_format: Its data format.
        dtype: The dtype of images; `float64` is computed as float32.
        subset: As given; likewise `save_to_dir`, `save_prefix` and `save_format`.
    """

    _numbered = True
    """Whether batches of the pipeline contain the rows of the images, by which arrays are looked up."""

    def _ask(self, given: Mapping[str, Any]) -> Described:
        """Stores the arguments that all kinds have; returns the generator with this data format and dtype.

        `given` are the arguments of the constructor. Refuses a subclass whose methods would not be called.
        """
        generator, subset = given["image_data_generator"], given["subset"]
        generator = Described._generator() if generator is None else generator
        if not isinstance(generator, Described._generator):
            kind = f"{type(generator).__module__}.{type(generator).__qualname__}"
            raise TypeError(f"`image_data_generator` must be a pipegen.compat.ImageDataGenerator, got {kind}")
        instead = "override `__getitem__` or `__next__`, which return whole batches, or map `.dataset`"
        check_overrides(self, CompiledIterator, OF_AN_ITERATOR, instead)
        if self._given_by() != "__getitem__":
            check_overrides(self, CompiledIterator, ("on_epoch_end",), "use a callback of Keras, or override `__getitem__` too")
        remedy = "use a `preprocessing_function` for it, or override the `flow` method"
        check_overrides(generator, Described._generator, OF_A_GENERATOR, remedy)
        check_subset(generator, subset)
        asked = for_flow(generator, self, given["data_format"], given["dtype"])
        self.image_data_generator, self.subset = generator, subset
        self.data_format, self.dtype = image_data_format(asked.data_format), asked.dtype
        self.shuffle, self.seed = given["shuffle"], given["seed"]  # the first hides the dataset's method, as Keras has an attribute
        self.save_to_dir, self.save_prefix, self.save_format = given["save_to_dir"], given["save_prefix"], given["save_format"]
        self._widens = name_of(asked.dtype) == "float64"
        if self._widens:
            asked.dtype = "float32"  # of what is computed
        function = asked.preprocessing_function
        if function is not None and preset_of(function) is None:
            asked.preprocessing_function = Handed(function, asked.data_format == "channels_first")
        return asked

    def _walk_over(self, asked: Described, spec: Mapping[str, Any], split: str = "train", *, channels: int, **data: Any) -> None:
        """Builds the pipeline; `asked` is the result of `_ask`, and `data` are further arguments of `build_by_place`."""
        whitened = with_matrix(self.image_data_generator, channels, spec) if asked.zca_whitening else spec
        self.pipeline = pipe = build_by_place(with_function(asked, whitened), **data)
        self.batch_size = pipe.spec.model.batch.size
        self.n = pipe.num_examples(split)
        self._split = split
        self._one_epoch = self._pipegen_inner = epoch = pipe[split]
        self._pipegen = epoch._pipegen
        self._begin(epoch._pipegen.numbered)

    def _walk_over_nothing(self, asked: Described, shape: tuple[int, ...], batch_size: int) -> None:
        """Makes an empty iterator over images of a channels-last `shape`."""
        if asked.data_format == "channels_first":
            shape = (shape[-1], *shape[:-1])
        images = tf.zeros((0, *shape), name_of(asked.dtype))
        self.batch_size, self.n, self._split = batch_size, 0, "train"
        self._one_epoch = self._pipegen_inner = tf.data.Dataset.from_tensor_slices((images, tf.zeros((0,), tf.int64))).batch(batch_size)
        self._begin(self._one_epoch)

    def _begin(self, epoch: tf.data.Dataset) -> None:
        self.samples = self.n
        self.batch_index = self.total_batches_seen = 0
        self.lock = threading.RLock()
        self._walk: Walk[Any] | None = None
        to = self.save_to_dir
        self._saving = None if to is None else Saving(to, self.save_prefix, self.save_format, self.data_format)
        super(Iterator, self).__init__(tf.data.experimental.to_variant(epoch))
        self.image_shape = tuple(first_part(self._one_epoch.element_spec).shape[1:])

    # The batches of the pipeline, and their conversion

    @cached_property
    def dataset(self) -> tf.data.Dataset:
        """The same batches as a `tf.data.Dataset` of one epoch each time, the fastest form for `fit`."""
        with tf.init_scope():  # made while a function is traced, it would belong to its graph
            return self._finished(self._one_epoch if self._saving is None else self._saving.during(self._one_epoch, rows=self._numbered))

    def _finished(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        return self._complete(batches.map(_widened) if self._widens else batches)

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Converts batches of the pipeline to those for `fit`."""
        tables = [tf.constant(a) for a in self._beside()]
        return batches.map(lambda images, rows: self._packed(images, [tf.gather(t, rows) for t in tables]))

    def _arrays(self, batch: Any) -> Any:
        """Converts a batch of the pipeline, as arrays, to one for `next`."""
        images, rows = batch
        return self._packed(images, [a[rows] for a in self._beside()], listed=True)

    def _beside(self) -> list[Array]:
        """Lists the arrays whose rows belong to the images."""
        raise NotImplementedError

    def _packed(self, images: Any, found: list[Any], *, listed: bool = False) -> Any:
        """Packs images with their rows of the arrays; several parts are a list, or a tuple for `tf.data`, which would stack a list."""
        raise NotImplementedError

    def _handed_over(self, batch: Any) -> Any:
        arrays = owned_arrays(batch, widen=self._widens)
        if self._saving is not None:
            self._saving.write(*(arrays if self._numbered else [first_part(arrays)]))
        return self._arrays(arrays)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        what = "batches are compiled for the steps of an epoch, not for chosen rows"
        raise UnsupportedArgument("_get_batches_of_transformed_samples", what, "make a flow of these rows, or use `it[i]`")

    def _set_index_array(self) -> None:
        what = "a flow is compiled for its files, which cannot change afterwards"
        raise UnsupportedArgument("_set_index_array", what, "list the files in a table for `flow_from_dataframe`")

    @property
    def index_array(self) -> Any:  # type: ignore[override]  # a compiled order cannot be set
        """The order of the current epoch: the index in `filenames`, or the row, of each image, int64 `(n,)`."""
        return self.pipeline._engine.order_of(self._split, self._epoch()) if self.n else np.arange(0)

    # As a dataset

    def _compiled(self) -> tf.data.Dataset:
        if (name := self._given_by()) is not None:
            why = f"TensorFlow reads the compiled batches, and would not call that of {type(self).__name__}"
            raise UnsupportedArgument(name, why, "map `.dataset`, or pass a generator that yields the batches")
        return self.dataset

    @cached_property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch of `dataset`."""
        return self._finished(tf.data.Dataset.from_generator(tuple, output_signature=self._one_epoch.element_spec)).element_spec

    def cardinality(self) -> tf.Tensor:
        """Counts the batches in an epoch, int64."""
        return self._one_epoch.cardinality()

    # As an iterator

    def __len__(self) -> int:
        return len(self._one_epoch)

    def _given_batches(self) -> Walk[Any]:
        return self._endless() if self._given_by() is None else super()._given_batches()

    def _endless(self) -> Walk[Any]:
        while self.n:
            for batch in self._one_epoch:
                yield self._handed_over(batch)

    def _given_by(self) -> str | None:
        return next((name for name in ("__next__", "next", "__getitem__") if overridden(self, CompiledIterator, name)), None)

    def _end_epoch(self) -> None:
        epoch = self._epoch()
        self.on_epoch_end()
        if self._epoch() == epoch:  # a subclass overrides it without a call of `super`
            CompiledIterator.on_epoch_end(self)

    def next(self) -> Any:
        """Reads the next batch; the same as `next(it)`."""
        with self.lock:
            if self._walk is None:
                self._walk = self._endless()
            batch = next(self._walk)
            self.batch_index = (self.batch_index + 1) % len(self)
            self.total_batches_seen += 1
            return batch

    def __getitem__(self, index: int) -> Any:
        """Makes a batch of the current epoch, in any order and from any thread; sequential access is fastest.

        Raises:
            ValueError: For an index out of range.
        """
        self._check_index(index)
        return self._handed_over(self.pipeline._engine.requested(self._split).at(Position(self._epoch(), index)))

    def _epoch(self) -> int:
        return int(self.pipeline._engine.train_progress().position()[0]) if self._split == "train" and self.n else 0

    def reset(self) -> None:
        """Makes `next` restart the current epoch."""
        with self.lock:
            self._walk = None
            self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Moves to the next epoch, with a new order and new draws."""
        if self._split == "train" and self.n:
            self.pipeline.seek(self._epoch() + 1, 0)
        self.reset()


def _widened(*parts: Any) -> Any:
    wide = tuple(tf.cast(part, tf.float64) if part.dtype.is_floating else part for part in parts)
    return wide if len(wide) > 1 else wide[0]
