"""Iterators over our datasets in Python: they turn a failure into one that names the file, and count what is handed over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain_map
from pipegen.backend.process.once import InTurn
from pipegen.backend.process.variables import variable
from pipegen.errors import StateError

if TYPE_CHECKING:
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.physical.position import Position


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
        endless: Makes the dataset, which repeats, of what enters: an epoch, its first step, and where its steps are counted from.
    """

    def __init__(self, endless: Callable[[tf.data.Dataset], tf.data.Dataset]) -> None:
        self._start = start = variable([0, 0, 0, 0], tf.int64, "pipegen_from")

        def entering(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            at = start.read_value()
            return at[0], at[1], at[2:]

        self._dataset = endless(plain_map(tf.data.Dataset.from_tensors(0), entering))
        super().__init__(self._dataset)

    def move(self, at: Position) -> None:
        """Lets it begin at a position; only between two epochs."""
        self._start.assign(at)


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
        self._at: Position | None = None
        """What comes next; not known before the first batch."""
        self._in_graphs: Iterator[Any] | None = None
        """TensorFlow's own iterator, once a `tf.function` has asked for a batch: what it runs later, nobody here can count."""

    def _take(self) -> Any:
        if not tf.executing_eagerly():
            self._move_into_graphs()
        if self._in_graphs is not None:
            return self._take_uncounted(self._in_graphs)
        if self._inner is None:
            raise StopIteration
        if self._at is None:
            self._begin(self._inner)
        assert self._at is not None  # noqa: S101 - it has begun
        at = self._at
        try:
            epoch, step, batch = next(self._inner)
        except StopIteration:
            self._inner = None
            raise
        except FAILURES as error:
            if not self._go_on(at):
                self._inner = None
            raise self._dataset._pipegen_translate(error, at) from None
        if not self._go_on(at._replace(epoch=int(epoch), step=int(step))):
            self._dataset._pipegen_take_back(self._inner)
            self._inner = None
        return batch

    def _begin(self, lent: BareIterator) -> None:
        """Reads where the epoch begins, as the graph is about to do."""
        if self._dataset._pipegen_begin is not None:
            self._dataset._pipegen_begin()
        self._at = self._dataset._pipegen_first()
        other = self._dataset._pipegen_for(self._at)
        if other is not self._dataset:
            self._dataset._pipegen_take_back(lent)
            self._dataset, self._inner = other, other._pipegen_lend()

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
            self._in_graphs = iter(self._dataset._pipegen_for(self._dataset._pipegen_first())._pipegen_plain)
        self._dataset._pipegen_take_back(self._inner)
        self._inner = None

    def _go_on(self, at: Position) -> bool:
        """Notes the batch at a position; returns whether another one follows in the epoch."""
        self._at = self._dataset._pipegen_after(at)
        return self._at.epoch == at.epoch


class CountingIterator(TranslatingIterator):
    """Hands over the batches of one epoch or of several as they come: their steps are counted here."""

    def __init__(self, dataset: PipelineDataset, batches: tf.data.Dataset) -> None:
        super().__init__(dataset)
        self._at: Position | None = None
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
            if self._dataset._pipegen_for(self._at) is not self._dataset:
                raise StateError("training was moved to batches of another size since this iterator was made; take another one, by `iter`")
        at = self._at
        try:
            batch = next(self._inner)
        except FAILURES as error:
            raise self._dataset._pipegen_translate(error, at) from None
        commit = self._dataset._pipegen_commit
        if commit is not None:
            commit(at)
        follows = self._dataset._pipegen_after(at)
        self._at = follows if follows.epoch == at.epoch else None
        return batch
