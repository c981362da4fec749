"""The datasets that users hold: of known length, with the epoch rule, and with errors that name files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.derived import NO_LENGTH, DerivedDataset, Explains, Translate
from pipegen.backend.datasets.iterators import BareIterator, CountingIterator, EpochIterator
from pipegen.backend.datasets.progress import Progress
from pipegen.backend.process.once import Once
from pipegen.physical.nodes import FIXED, TRAINING
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor

Finish = Callable[[tf.data.Dataset], tf.data.Dataset]
"""From the steps of an epoch to what is handed over."""


@untraced
class PipelineDataset(Explains):
    """A `tf.data.Dataset` of known length whose errors name the damaged file.

    Python iteration, `fit`, `evaluate` and `predict` run the plain pipeline and explain a failure by looking for the
    damaged record afterwards; so does `.repeat()`. A dataset derived in another way (`.map`, `.take`, a distribution
    strategy) runs where nobody can look, so it guards each record, which costs about half as much as decoding it.

    Args:
        batches: Builds the steps of an epoch, or of what is left of one, `(epoch, step, batch)`; called with whether to guard records.
        finish: What leaves the batches of those steps alone.
        marked: What hands the steps over with their numbers, for iteration in Python. `None` where only batches can be handed
            over, as from a device.
        steps: Batches that it has.
        end: Steps in a whole epoch.
        first: The epoch and the step that the next iterator starts with.
        translate: Explains an error.
        commit: Called with the epoch and step of each batch that Python iteration hands over, where the graph cannot
            note it (device prefetch).
    """

    def __init__(
        self,
        batches: Callable[[bool], tf.data.Dataset],
        finish: Finish,
        marked: Finish | None,
        *,
        steps: int,
        end: int,
        first: Callable[[], tuple[int, int]],
        translate: Translate,
        commit: Callable[[int, int], None] | None = None,
    ) -> None:
        self._pipegen_numbered = numbered = batches(False)
        self._pipegen_steps = steps
        self._pipegen_end = end
        self._pipegen_first = first
        self._pipegen_translate = translate
        self._pipegen_commit = commit
        self._pipegen_marked = numbered if marked is None else marked(numbered)
        self._pipegen_endless = None if marked is None else self._pipegen_marked.repeat()
        self._pipegen_idle: list[BareIterator] = []
        self._pipegen_latest: weakref.ref[EpochIterator] | None = None
        # Without a reference to this object, which could go only by a search for cycles then.
        self._pipegen_unnumbered = Once(lambda: finish(numbered))
        self._pipegen_guarded = guarded = Once(lambda: finish(batches(True)))
        self._pipegen_counted = Once(lambda: _counted(guarded(), steps))
        super().__init__(self._pipegen_numbered._variant_tensor)

    @property
    def _pipegen_plain(self) -> tf.data.Dataset:
        """The batches without their numbers."""
        return self._pipegen_unnumbered()

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """Returns the tensor that derived datasets are built on."""
        return self._pipegen_counted()._variant_tensor

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_marked]

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch."""
        return self._pipegen_numbered.element_spec[2]

    def cardinality(self) -> tf.Tensor:
        """Batches that it has, int64."""
        return tf.constant(self._pipegen_steps, tf.int64)

    def __len__(self) -> int:
        return self._pipegen_steps

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        if self._pipegen_endless is None:
            return CountingIterator(self, self._pipegen_plain)
        iterator = EpochIterator(self)
        self._pipegen_latest = weakref.ref(iterator)
        return iterator

    def _pipegen_lend(self) -> BareIterator:
        """Lends an iterator of TensorFlow that is at the start of an epoch, which it has not begun.

        Making one takes a third of a second and more: TensorFlow optimises and places each function anew. Within a dataset that
        repeats it does so once. So one that has come to the end of an epoch is kept, and begins the next when it is lent again.
        """
        with suppress(IndexError):  # two threads may ask at a time
            return self._pipegen_idle.pop()
        return BareIterator(self._pipegen_endless)

    def _pipegen_take_back(self, iterator: BareIterator) -> None:
        """Keeps an iterator that has handed over the last batch of an epoch; one, since each has its threads."""
        if not self._pipegen_idle:
            self._pipegen_idle.append(iterator)

    def _pipegen_is_over(self) -> bool:
        """Returns whether the latest iterator is still held, and at its end."""
        latest = self._pipegen_latest() if self._pipegen_latest is not None else None
        return latest is not None and latest.is_over

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """As `tf.data.Dataset.repeat`; runs on through the epochs."""
        if self._pipegen_commit is not None or not tf.executing_eagerly():
            return super().repeat(*args, **options)
        return RepeatedDataset(self, *args, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._pipegen_steps} batches of {self.element_spec}>"

    def _repr_html_(self) -> str:
        from pipegen.backend.datasets.batch_type import batches_html

        return batches_html(f"{self._pipegen_steps:,} batches", self.element_spec)


@untraced
class RepeatedDataset(Explains):
    """One of ours again and again; like its source it is guarded only where something else is built on it."""

    def __init__(self, source: PipelineDataset, *args: Any, **options: Any) -> None:
        self._pipegen_of = source
        self._pipegen_translate = source._pipegen_translate
        self._pipegen_again = source._pipegen_plain.repeat(*args, **options)
        self._pipegen_guarded = Once(lambda: source._pipegen_source().repeat(*args, **options))
        super().__init__(self._pipegen_again._variant_tensor)

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """Returns the tensor that derived datasets are built on."""
        return self._pipegen_source()._variant_tensor

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
            raise TypeError(NO_LENGTH)
        return length

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return CountingIterator(self._pipegen_of, self._pipegen_again)


def training_dataset(executor: Executor, progress: Progress, device: str | None) -> PipelineDataset:
    """The training split: finite, re-iterable, each time the epoch that `progress` says."""
    form = TRAINING if device is None else TRAINING.bare(device)

    def commit(epoch: int, step: int) -> None:
        last = step == progress.steps - 1
        if last:
            progress.seek(epoch + 1, 0)
        else:
            progress.delivered.assign([epoch, step + 1])

    return PipelineDataset(
        lambda guarded: executor.batches(progress.head(), form.built_on() if guarded else form),
        lambda ds: executor.delivered(ds, form.bare(), progress),
        (lambda ds: executor.delivered(ds, form, progress)) if device is None else None,
        steps=executor.steps,
        end=executor.steps,
        first=progress.next_start,
        translate=executor.explain,
        commit=commit if device is not None else None,
    )


def fixed_dataset(executor: Executor, epoch: int, step: int, device: str | None = None) -> PipelineDataset:
    """One epoch from one step on; holds no variable, so it may be iterated anywhere and any number of times."""
    form = FIXED if device is None else FIXED.bare(device)

    def batches(guarded: bool) -> tf.data.Dataset:
        head = tf.data.Dataset.from_tensors((tf.constant(epoch, tf.int64), tf.constant(step, tf.int64)))
        return executor.batches(head, form.built_on() if guarded else form)

    return PipelineDataset(
        batches,
        lambda ds: executor.delivered(ds, form.bare()),
        (lambda ds: executor.delivered(ds, form)) if device is None else None,
        steps=max(executor.steps - step, 0),
        end=executor.steps,
        first=lambda: (epoch, step),
        translate=executor.explain,
    )


def _counted(ds: tf.data.Dataset, steps: int) -> tf.data.Dataset:
    """The batches as a dataset of known length."""
    return ds.apply(tf.data.experimental.assert_cardinality(steps)).with_options(ds.options())
