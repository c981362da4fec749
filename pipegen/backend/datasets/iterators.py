"""Iterators over our datasets in Python: they turn a failure into one that names the file, and count what is handed over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain_map
from pipegen.backend.process.once import InTurn
from pipegen.backend.process.variables import variable

if TYPE_CHECKING:
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset


FAILURES = (tf.errors.OpError, UnicodeDecodeError)
"""What TensorFlow raises where a batch fails: the second where its message quotes bytes of a damaged record."""


class BareIterator(Iterator[Any]):
    """TensorFlow's iterator over a dataset of dense tensors, without its Python class, which costs a third of a millisecond a batch."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        specs = tf.nest.flatten(dataset.element_spec)
        self._types: dict[str, Any] = {"output_types": [t.dtype for t in specs], "output_shapes": [t.shape for t in specs]}
        self._packed = _packer(tf.nest.pack_sequence_as(dataset.element_spec, range(len(specs))))
        with tf.device("CPU:0"):
            self._resource = tf.raw_ops.AnonymousIteratorV3(**self._types)
            tf.raw_ops.MakeIterator(dataset=tf.data.experimental.to_variant(dataset), iterator=self._resource)

    def __next__(self) -> Any:
        try:
            return self._packed(tf.raw_ops.IteratorGetNext(iterator=self._resource, **self._types))
        except tf.errors.OutOfRangeError:
            raise StopIteration from None


class MovableIterator(BareIterator):
    """Runs epochs from wherever it is moved to, one after another, in one graph: what TensorFlow optimised for one serves for all.

    Args:
        endless: Makes the dataset, which repeats, of the `(epoch, first step)` that enters.
    """

    def __init__(self, endless: Callable[[tf.data.Dataset], tf.data.Dataset]) -> None:
        self._start = start = variable([0, 0], tf.int64, "pipegen_from")
        self._dataset = endless(plain_map(tf.data.Dataset.from_tensors(0), lambda _: tuple(tf.unstack(start.read_value()))))
        super().__init__(self._dataset)

    def move(self, epoch: int, step: int) -> None:
        """Lets it begin at `step` of `epoch`; only between two epochs."""
        self._start.assign([epoch, step])


def _packer(places: Any) -> Callable[[Sequence[tf.Tensor]], Any]:
    """Returns a function that arranges a flat list like the structure `places`, whose leaves are positions in the list."""
    if isinstance(places, dict):
        parts = {key: _packer(place) for key, place in places.items()}
        return lambda flat: {key: part(flat) for key, part in parts.items()}
    if isinstance(places, (tuple, list)):
        listed = [_packer(place) for place in places]
        return lambda flat: tuple(part(flat) for part in listed)
    return lambda flat: flat[places]


class TranslatingIterator(InTurn):
    """Hands over elements of a dataset, measures how long that takes, and puts a failure in our words."""

    def __init__(self, dataset: Any) -> None:
        super().__init__()
        self._dataset = dataset

    def __next__(self) -> Any:
        start = time.perf_counter()
        batch = super().__next__()
        self._dataset._pipegen_waiting.add(time.perf_counter() - start, batch)
        return batch

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of an element."""
        return self._dataset.element_spec

    def _take_uncounted(self, elements: Iterator[Any]) -> Any:
        try:
            return next(elements)
        except FAILURES as error:
            raise self._dataset._pipegen_translate(error, None) from None


class EpochIterator(TranslatingIterator):
    """Hands over one epoch, or what is left of it; its batches say themselves which step they are.

    TensorFlow's iterator is lent by the dataset, and goes back at the end of the epoch.
    """

    def __init__(self, dataset: PipelineDataset) -> None:
        super().__init__(dataset)
        dataset._pipegen_check()
        self._inner: BareIterator | None = dataset._pipegen_lend()
        self._at: tuple[int, int] | None = None
        """The epoch and the step that come next; not known before the first batch."""
        self._in_graphs: Iterator[Any] | None = None
        """TensorFlow's own iterator, once a `tf.function` has asked for a batch: what it runs later, nobody here can count."""

    def _take(self) -> Any:
        if not tf.executing_eagerly():
            self._move_into_graphs()
        if self._in_graphs is not None:
            return self._take_uncounted(self._in_graphs)
        if self._inner is None:
            raise StopIteration
        if self._at is None and self._dataset._pipegen_begin is not None:
            self._dataset._pipegen_begin()
        try:
            epoch, step, batch = next(self._inner)
        except StopIteration:
            self._inner = None
            raise
        except FAILURES as error:
            at = self._at or self._dataset._pipegen_first()
            self._at = self._after(*at)
            if self._at is None:
                self._inner = None
            raise self._dataset._pipegen_translate(error, at) from None
        self._at = self._after(int(epoch), int(step))
        if self._at is None:
            self._dataset._pipegen_take_back(self._inner)
            self._inner = None
        return batch

    @property
    def is_over(self) -> bool:
        """Returns whether the last batch has been handed over."""
        return self._inner is None and self._in_graphs is None

    def _move_into_graphs(self) -> None:
        """Goes over to an iterator that ends by itself.

        Raises:
            RuntimeError: If batches were taken before.
        """
        if self._in_graphs is not None:
            return
        if self._at is not None or self._inner is None:
            raise RuntimeError("this iterator has begun outside of `tf.function`, and cannot go on inside; take another one, by `iter`")
        with tf.init_scope():
            self._in_graphs = iter(self._dataset._pipegen_plain)
        self._dataset._pipegen_take_back(self._inner)
        self._inner = None

    def _after(self, epoch: int, step: int) -> tuple[int, int] | None:
        """Returns the epoch and the step that follow in the epoch; `None` after the last step."""
        return (epoch, step + 1) if step + 1 < self._dataset._pipegen_end else None


class CountingIterator(TranslatingIterator):
    """Hands over the batches of one epoch or of several as they come: their steps are counted here."""

    def __init__(self, dataset: PipelineDataset, batches: tf.data.Dataset) -> None:
        super().__init__(dataset)
        self._at: tuple[int, int] | None = None
        self._inner = iter(batches)
        self._counts = True
        """Until a `tf.function` has asked for a batch: what it runs later, nobody here can count."""

    def _take(self) -> Any:
        if not tf.executing_eagerly():
            self._counts = False
            if self._dataset._pipegen_commit is not None:
                raise RuntimeError("with `prefetch: {device: …}`, batches are taken outside of `tf.function`, and handed to it")
        if not self._counts:
            return self._take_uncounted(self._inner)
        if self._at is None:  # read when the first batch of an epoch is asked for, as the graph does
            self._dataset._pipegen_check()
            self._at = self._dataset._pipegen_first()
        epoch, step = self._at
        try:
            batch = next(self._inner)
        except FAILURES as error:
            raise self._dataset._pipegen_translate(error, (epoch, step)) from None
        commit = self._dataset._pipegen_commit
        if commit is not None:
            commit(epoch, step)
        self._at = (epoch, step + 1) if step + 1 < self._dataset._pipegen_end else None
        return batch
