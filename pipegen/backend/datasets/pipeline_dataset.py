"""The datasets that users hold: of known length, with the epoch rule, and with errors that name files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.derived import DerivedDataset, Explains
from pipegen.backend.datasets.iterators import BareIterator, CountingIterator, EpochIterator, MovableIterator
from pipegen.backend.datasets.progress import Progress
from pipegen.backend.datasets.sharing import Handed
from pipegen.backend.process.graphs import plain, plain_map
from pipegen.backend.process.once import Once
from pipegen.ops.families.mixing import GROUP
from pipegen.physical.nodes import FIXED, TRAINING
from pipegen.physical.position import FIRST, Position
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor
    from pipegen.backend.service.feed import Feed
    from pipegen.physical.nodes import Form


@untraced
class PipelineDataset(Explains):
    """A `tf.data.Dataset` of known length whose errors name the damaged file.

    Python iteration, `fit`, `evaluate` and `predict` run the plain pipeline and explain a failure by looking for the
    damaged record afterwards; so does `.repeat()`. A dataset derived in another way (`.map`, `.take`, a distribution
    strategy) runs where nobody can look, so it guards each record, which takes about 50 µs.

    Args:
        executor: Runs the plan of its split.
        form: The form that it is run in.
        entering: Makes what enters: an epoch, the step to begin with, and where steps are counted from.
        first: What the next iterator starts with.
        steps: Batches that it has.
        iterators: Makes TensorFlow's iterators over batches with their numbers, for Python; by default over this dataset.
        idle: Holds such an iterator that has come to its end; the datasets that share it share their iterators.
        progress: Where training stands, for a form that notes it.
        moved: Makes the same for epochs that were begun with batches of another size, where those need another executor.
        feed: Has the batches made by other machines, in place of the executor.
    """

    def __init__(
        self,
        executor: Executor,
        form: Form,
        entering: Callable[[], tf.data.Dataset],
        first: Callable[[], Position],
        steps: int,
        iterators: Callable[[], BareIterator] | None = None,
        idle: list[BareIterator] | None = None,
        progress: Progress | None = None,
        moved: Callable[[], PipelineDataset] | None = None,
        feed: Feed | None = None,
    ) -> None:
        # Functions hold these, and not this object, which could go only by a search for cycles then.
        made = executor.batches if feed is None else feed.batches
        self._pipegen_numbered = numbered = made(entering(), form)
        handed = partial(executor.delivered, progress=progress)
        self._pipegen_steps = steps
        self._pipegen_handed = Handed(executor.order.shard, executor.steps if progress is not None else 0)
        self._pipegen_after = executor.order.after
        self._pipegen_first = first
        self._pipegen_moved = None if moved is None else Once(moved)
        self._pipegen_begin = progress.check if progress is not None and progress.stretch.end is not None else None
        """Called before the first batch of an epoch, where the epochs may be over."""
        self._pipegen_translate = executor.explain
        self._pipegen_check = _checks(executor, first, feed)
        """Called at the start of an epoch that Python iterates: raises where files have changed."""
        self._pipegen_waiting = executor.waiting
        self._pipegen_commit = progress.note if progress is not None and form.device is not None else None
        """Called for each batch that Python iteration hands over, where the graph cannot note it: it takes batches ahead for a device."""
        self._pipegen_marked = marked = numbered if form.device is not None else handed(numbered, form)
        """The batches with their numbers; a device takes them without."""
        self._pipegen_counts = form.device is not None
        """Whether Python counts the batches, since they come without their numbers."""
        endless = Once(marked.repeat)
        self._pipegen_iterators = iterators or (lambda: BareIterator(endless()))
        self._pipegen_idle: list[BareIterator] = [] if idle is None else idle
        self._pipegen_latest: weakref.ref[EpochIterator] | None = None
        self._pipegen_unnumbered = Once(lambda: handed(numbered, form.bare()))
        derived = partial(_derived, made, form, entering, first, self._pipegen_moved)
        self._pipegen_guarded = guarded = Once(lambda: handed(derived(), form.bare()))
        self._pipegen_made: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda entering: made(entering, form.built_on())
        """Makes what is built on, of what enters."""
        self._pipegen_counted = Once(lambda: _counted(guarded(), steps))
        super().__init__(numbered._variant_tensor)

    @property
    def _pipegen_plain(self) -> tf.data.Dataset:
        """The batches without their numbers."""
        return self._pipegen_unnumbered()

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """Returns the tensor that derived datasets are built on."""
        self._pipegen_handed.check()
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
        if self._pipegen_counts:
            which = self._pipegen_for(self._pipegen_first())
            return CountingIterator(which, which._pipegen_plain)
        iterator = EpochIterator(self)
        self._pipegen_latest = weakref.ref(iterator)
        return iterator

    def _pipegen_for(self, at: Position) -> PipelineDataset:
        """Returns what makes the batches of an epoch: where its blocks lie otherwise towards groups that mix, another one."""
        return self._pipegen_moved() if self._pipegen_moved is not None and at.origin % GROUP else self

    def _pipegen_lend(self) -> BareIterator:
        """Lends an iterator of TensorFlow that is at the start of an epoch, which it has not begun.

        Making one takes some tens of milliseconds: TensorFlow makes each function ready anew. Within a dataset that
        repeats it does so once. So one that has come to the end of an epoch is kept, and begins the next when it is lent again.
        """
        try:
            iterator = self._pipegen_idle.pop()  # two threads may ask at a time
        except IndexError:
            iterator = self._pipegen_iterators()
        if isinstance(iterator, MovableIterator):
            iterator.move(self._pipegen_first())
        return iterator

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
class RepeatedDataset(DerivedDataset):
    """One of ours again and again; like its source it is guarded only where something else is built on it."""

    def __init__(self, source: PipelineDataset, *args: Any, **options: Any) -> None:
        self._pipegen_of = source
        self._pipegen_guarded = Once(lambda: source._pipegen_source().repeat(*args, **options))
        super().__init__(source._pipegen_plain.repeat(*args, **options), source)

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """Returns the tensor that derived datasets are built on."""
        self._pipegen_handed.check()
        return self._pipegen_source()._variant_tensor

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        source = self._pipegen_of
        if source._pipegen_for(source._pipegen_first()) is not source:
            return iter(DerivedDataset(self._pipegen_source(), self))
        return CountingIterator(source, self._pipegen_inner)


def _checks(executor: Executor, first: Callable[[], Position], feed: Feed | None) -> Callable[[], None]:
    check = executor.records.reader.check
    if feed is None:
        return check

    def both() -> None:
        check()
        feed.check(first())

    return both


def training_dataset(
    executor: Executor,
    progress: Progress,
    device: str | None,
    other: Callable[[], tuple[Executor, Feed | None]] | None = None,
    feed: Feed | None = None,
    *,
    sends: bool = False,
) -> PipelineDataset:
    """The training split: finite, re-iterable, each time the epoch that `progress` says.

    Args:
        executor: The split's.
        progress: Where training stands.
        device: Where batches are handed over.
        other: Gives the executor for epochs that were begun with batches of another size, of a plan that mixes examples, and its feed.
        feed: Has the batches made by other machines.
        sends: Whether the last kernels are left to a device.
    """
    form = _form(TRAINING, device, sends=sends)

    def moved() -> PipelineDataset:
        assert other is not None  # noqa: S101 - given to the dataset only where there is another one
        executor, feed = other()
        return training_dataset(executor, progress, device, None, None if sends else feed, sends=sends)

    again = None if other is None else moved
    given = executor, form, progress.head, progress.next_start, executor.steps
    return PipelineDataset(*given, progress=progress, moved=again, feed=feed)


def _form(form: Form, device: str | None, *, sends: bool) -> Form:
    form = form.sending() if sends else form
    return form if device is None else form.bare(device)


def fixed_dataset(executor: Executor, at: Position = FIRST, device: str | None = None, *, sends: bool = False) -> PipelineDataset:
    """One epoch from one step on; holds no variable, so it may be iterated anywhere and any number of times.

    With `sends` the last kernels are left to a device.
    """

    def entering() -> tf.data.Dataset:
        epoch, step, *since = (tf.constant(number, tf.int64) for number in at)
        return tf.data.Dataset.from_tensors((epoch, step, tf.stack(since)))

    form = _form(FIXED, device, sends=sends)

    def iterators() -> BareIterator:
        return MovableIterator(lambda entering: executor.delivered(executor.batches(entering, form), form).repeat())

    # An executor may well have this dataset alone, as in prediction: then another graph would cost more than it saves.
    shared = (iterators, executor.idle) if executor.ran_once and not sends else ()
    executor.ran_once = executor.ran_once or not sends
    steps = max(executor.order.steps_from(at.origin) - at.step, 0)
    return PipelineDataset(executor, form, entering, lambda: at, steps, *shared)


def _derived(
    made: Callable[[tf.data.Dataset, Form], tf.data.Dataset],
    form: Form,
    entering: Callable[[], tf.data.Dataset],
    first: Callable[[], Position],
    moved: Callable[[], PipelineDataset] | None,
) -> tf.data.Dataset:
    """The batches that more is built on.

    Where an epoch that was begun with batches of another size needs another executor, a graph has that one's, too, if such an epoch is the
    next one; else it says so when it meets one.
    """
    if moved is None:
        return made(entering(), form.built_on())
    if not first().origin % GROUP:
        return made(plain_map(entering(), _as_begun), form.built_on())
    own = entering().filter(plain(lambda _epoch, _step, since: tf.equal(since[0] % GROUP, 0)))
    other = entering().filter(plain(lambda _epoch, _step, since: tf.not_equal(since[0] % GROUP, 0)))
    return made(own, form.built_on()).concatenate(moved()._pipegen_made(other))


def _as_begun(epoch: tf.Tensor, step: tf.Tensor, since: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Fails in an epoch that was begun with batches of another size."""
    said = (
        "pipegen: this dataset was built before training went on with batches of another size, in the middle of an epoch that mixes "
        "examples: call `pipe.restore` first, and then build on `pipe.train`"
    )
    begun = tf.raw_ops.Assert(condition=tf.equal(since[0] % GROUP, 0), data=[said])
    with tf.control_dependencies([begun]):
        return tf.identity(epoch), step, since


def _counted(ds: tf.data.Dataset, steps: int) -> tf.data.Dataset:
    """The batches as a dataset of known length."""
    return ds.apply(tf.data.experimental.assert_cardinality(steps)).with_options(ds.options())
