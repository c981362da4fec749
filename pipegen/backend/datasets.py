"""The datasets that users hold: of known length, with the epoch rule, and with errors that name files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.options import make_options
from pipegen.backend.variables import variable
from pipegen.backend.walk import plain_map

if TYPE_CHECKING:
    from pipegen.backend.execute import Executor

Translate = Callable[[Exception, tuple[int, int] | None], Exception]
"""From an error, and the epoch and step where they are known, to the error that a user should see."""


class Progress:
    """Where the training split stands: which epoch an iterator starts, and what has been handed over.

    An iterator starts the first epoch whose last batch has not been delivered. The variables live in the graph, so
    this holds for iterators that Python never sees.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.start = variable([0, 0], tf.int64, "pipegen_start")
        self.delivered = variable([0, 0], tf.int64, "pipegen_delivered")

    def seek(self, epoch: int, step: int) -> None:
        """Let the next iterator start at `step` of `epoch`."""
        if step >= self.steps > 0:
            epoch, step = epoch + 1, 0
        self.start.assign([epoch, step])
        self.delivered.assign([epoch, step])

    def position(self) -> tuple[int, int]:
        """The epoch and the step that come next."""
        epoch, step = (int(v) for v in self.delivered.numpy())
        return epoch, step

    def head(self) -> tf.data.Dataset:
        """One element, read when an iterator starts: the epoch and its first step."""
        return plain_map(tf.data.Dataset.from_tensors(0), lambda _: tuple(tf.unstack(self.start.read_value())))

    def deliver(self, epoch: tf.Tensor, step: tf.Tensor, batch: Any) -> Any:
        """Note that a batch is handed over; the last one of an epoch lets the next iterator start the next epoch."""
        last = tf.equal(step, self.steps - 1)
        follows = tf.where(last, tf.stack([epoch + 1, tf.zeros_like(step)]), tf.stack([epoch, step + 1]))

        def note() -> tf.Operation:
            with tf.control_dependencies([self.delivered.assign(follows, read_value=False)]):
                return tf.cond(last, lambda: tf.group(self.start.assign(follows, read_value=False)), tf.no_op)

        # An iterator that lags behind, in an epoch that another one has ended, moves nothing back.
        noted = tf.cond(epoch >= self.start.read_value()[0], lambda: tf.group(note()), tf.no_op)
        with tf.control_dependencies([noted] if noted is not None else []):
            return tf.nest.map_structure(tf.identity, batch)


_NO_LENGTH = "this dataset has no length: it is repeated, or has no known end"


class _Explains(tf.data.Dataset):
    """What `fit` itself derives explains its errors as well: it repeats on request, maps and prefetches for `class_weight`.

    Behind other transformations the error is TensorFlow's, and holds ours.
    """

    _pipegen_translate: Translate

    def _pipegen_source(self) -> tf.data.Dataset:
        """What to build on: of a length that is not asserted, since the first pass after a resume is shorter."""
        raise NotImplementedError

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """As `tf.data.Dataset.repeat`; runs on through the epochs."""
        return DerivedDataset(self._pipegen_source().repeat(*args, **options), self._pipegen_translate)

    def map(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.map`."""
        return DerivedDataset(self._pipegen_source().map(*args, **options), self._pipegen_translate, self.cardinality())

    def prefetch(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.prefetch`."""
        return DerivedDataset(self._pipegen_source().prefetch(*args, **options), self._pipegen_translate, self.cardinality())

    def take(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.take`."""
        length = super().take(*args, **options).cardinality()
        return DerivedDataset(self._pipegen_source().take(*args, **options), self._pipegen_translate, length)

    def skip(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.skip`."""
        length = super().skip(*args, **options).cardinality()
        return DerivedDataset(self._pipegen_source().skip(*args, **options), self._pipegen_translate, length)


class DerivedDataset(_Explains):
    """A dataset built on one of ours: it runs as TensorFlow made it, and its errors are put in our words."""

    def __init__(self, inner: tf.data.Dataset, translate: Translate, length: tf.Tensor | None = None) -> None:
        self._pipegen_inner = inner
        self._pipegen_length = inner.cardinality() if length is None else length
        self._pipegen_translate = translate
        super().__init__(inner._variant_tensor)

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_inner]

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_inner

    def cardinality(self) -> tf.Tensor:
        """Elements in a whole pass, int64; negative when there is no end or it is not known."""
        return self._pipegen_length

    def __len__(self) -> int:
        length = int(self._pipegen_length)
        if length < 0:
            raise TypeError(_NO_LENGTH)
        return length

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of an element."""
        return self._pipegen_inner.element_spec

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return _DerivedIterator(self)


class _DerivedIterator(Iterator[Any]):
    """Hands over elements, and puts a failure in our words."""

    def __init__(self, dataset: DerivedDataset) -> None:
        self._translate = dataset._pipegen_translate
        self._inner = iter(dataset._pipegen_inner)

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of an element."""
        return self._inner.element_spec

    def __iter__(self) -> _DerivedIterator:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._inner)
        except tf.errors.OpError as error:
            raise self._translate(error, None) from None

    get_next = __next__


class PipelineDataset(_Explains):
    """A `tf.data.Dataset` of known length whose errors name the damaged file.

    Python iteration, `fit`, `evaluate` and `predict` run the plain pipeline and explain a failure by looking for the
    damaged record afterwards; so does `.repeat()`. A dataset derived in another way (`.map`, `.take`, a distribution
    strategy) runs where nobody can look, so it guards each record, which costs about half as much as decoding it.

    Args:
        make: Builds the inner dataset; called with whether to guard records.
        steps: Batches in a pass.
        first: The epoch and the step that the next pass starts with.
        translate: Explains an error.
        commit: Called with the epoch and step of each batch that Python iteration hands over, where the graph cannot
            note it (device prefetch).
    """

    def __init__(
        self,
        make: Callable[[bool], tf.data.Dataset],
        steps: int,
        first: Callable[[], tuple[int, int]],
        translate: Translate,
        commit: Callable[[int, int], None] | None = None,
    ) -> None:
        self._pipegen_make = make
        self._pipegen_steps = steps
        self._pipegen_first = first
        self._pipegen_translate = translate
        self._pipegen_commit = commit
        self._pipegen_plain = make(False)
        self._pipegen_guarded: tf.data.Dataset | None = None
        self._pipegen_derived: tf.data.Dataset | None = None
        super().__init__(self._pipegen_plain._variant_tensor)

    def _pipegen_source(self) -> tf.data.Dataset:
        if self._pipegen_guarded is None:
            self._pipegen_guarded = self._pipegen_make(True)
        return self._pipegen_guarded

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """What derived datasets are built on."""
        if self._pipegen_derived is None:
            guarded = self._pipegen_source()
            counted = guarded.apply(tf.data.experimental.assert_cardinality(self._pipegen_steps))
            self._pipegen_derived = counted.with_options(guarded.options())
        return self._pipegen_derived._variant_tensor

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_plain]

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch."""
        return self._pipegen_plain.element_spec

    def cardinality(self) -> tf.Tensor:
        """Batches in a pass, int64."""
        return tf.constant(self._pipegen_steps, tf.int64)

    def __len__(self) -> int:
        return self._pipegen_steps

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return _ExplainingIterator(self, self._pipegen_plain)

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """As `tf.data.Dataset.repeat`; runs on through the epochs."""
        if self._pipegen_commit is not None:
            return super().repeat(*args, **options)
        return RepeatedDataset(self, *args, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._pipegen_steps} batches of {self.element_spec}>"


class RepeatedDataset(_Explains):
    """One of ours again and again; like its source it is guarded only where something else is built on it."""

    def __init__(self, source: PipelineDataset, *args: Any, **options: Any) -> None:
        self._pipegen_of = source
        self._pipegen_translate = source._pipegen_translate
        self._pipegen_again = source._pipegen_plain.repeat(*args, **options)
        self._pipegen_guarded = cache(lambda: source._pipegen_source().repeat(*args, **options))
        super().__init__(self._pipegen_again._variant_tensor)

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """What derived datasets are built on."""
        return self._pipegen_guarded()._variant_tensor

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_again]

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch."""
        return self._pipegen_again.element_spec

    def cardinality(self) -> tf.Tensor:
        """Batches in all, int64; negative when there is no end or it is not known."""
        return self._pipegen_again.cardinality()

    def __len__(self) -> int:
        length = int(self.cardinality())
        if length < 0:
            raise TypeError(_NO_LENGTH)
        return length

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return _ExplainingIterator(self._pipegen_of, self._pipegen_again)


class _ExplainingIterator(Iterator[Any]):
    """Hands over batches, of one pass or of several, and turns a failure into one that names the file."""

    def __init__(self, dataset: PipelineDataset, batches: tf.data.Dataset) -> None:
        self._dataset = dataset
        self._at: tuple[int, int] | None = None
        self._inner = iter(batches)

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch."""
        return self._dataset.element_spec

    def __iter__(self) -> _ExplainingIterator:
        return self

    def __next__(self) -> Any:
        if self._at is None:  # read when the first batch of a pass is asked for, as the graph does
            self._at = self._dataset._pipegen_first()
        epoch, step = self._at
        try:
            batch = next(self._inner)
        except tf.errors.OpError as error:
            raise self._dataset._pipegen_translate(error, (epoch, step)) from None
        commit = self._dataset._pipegen_commit
        if commit is not None:
            commit(epoch, step)
        self._at = (epoch, step + 1) if step + 1 < self._dataset._pipegen_steps else None
        return batch

    get_next = __next__


def training_dataset(executor: Executor, progress: Progress, translate: Translate, device: str | None) -> PipelineDataset:
    """The training split: finite, re-iterable, each pass the epoch that `progress` says."""
    options = make_options(executor.job.spec.runtime)

    def make(guarded: bool) -> tf.data.Dataset:
        ds = executor.batches(progress.head(), name_damaged=guarded)
        if device is None:
            return plain_map(ds, progress.deliver).with_options(options)
        plain = plain_map(ds, lambda _epoch, _step, batch: batch).with_options(options)
        return plain.apply(tf.data.experimental.prefetch_to_device(device, 2))

    def first() -> tuple[int, int]:
        epoch, step = (int(v) for v in progress.start.numpy())
        return epoch, step

    def commit(epoch: int, step: int) -> None:
        last = step == progress.steps - 1
        if last:
            progress.seek(epoch + 1, 0)
        else:
            progress.delivered.assign([epoch, step + 1])

    return PipelineDataset(make, executor.steps, first, translate, commit if device is not None else None)


def fixed_dataset(executor: Executor, epoch: int, step: int, translate: Translate, device: str | None = None) -> PipelineDataset:
    """One epoch from one step on; holds no variable, so it may be iterated anywhere and any number of times."""
    options = make_options(executor.job.spec.runtime)

    def make(guarded: bool) -> tf.data.Dataset:
        head = tf.data.Dataset.from_tensors((tf.constant(epoch, tf.int64), tf.constant(step, tf.int64)))
        ds = plain_map(executor.batches(head, name_damaged=guarded), lambda _epoch, _step, batch: batch).with_options(options)
        return ds if device is None else ds.apply(tf.data.experimental.prefetch_to_device(device, 2))

    return PipelineDataset(make, max(executor.steps - step, 0), lambda: (epoch, step), translate)
