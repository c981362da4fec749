"""`PipelineDataset`, its iterators and the datasets derived from it: errors name files, and waits are measured."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.progress import Progress
from pipegen.backend.datasets.sharing import ShareCheck
from pipegen.backend.process.devices import InTurn, Once, variable
from pipegen.backend.process.graphs import plain, plain_map
from pipegen.backend.running.failures import explain_failure
from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.diagnostics.foreign import member
from pipegen.errors import StateError
from pipegen.ops.families.combining import GROUP
from pipegen.page import box, notebook_table
from pipegen.physical.extent import FIRST, Position
from pipegen.physical.nodes import FIXED, TRAINING
from pipegen.private.autograph import untraced
from pipegen.private.tensorflow import CustomDataset
from pipegen.waiting import Waiting

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor
    from pipegen.backend.service.feed import Feed
    from pipegen.physical.nodes import Form


FAILURES = (tf.errors.OpError, UnicodeDecodeError)
"""Exceptions of TensorFlow for a failed batch; `UnicodeDecodeError` if its message quotes bytes of a damaged record."""


class BareIterator(Iterator[Any]):
    """An iterator over a dataset of dense tensors on TensorFlow's raw operations: its Python class costs 0.3 ms a batch."""

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
    """An iterator that can be moved to any position between epochs: its graph is optimised once.

    Args:
        endless: Makes the repeating dataset from a dataset of start positions: epoch, first step, and `(origin, shift)`.
    """

    def __init__(self, endless: Callable[[tf.data.Dataset], tf.data.Dataset]) -> None:
        self._start = start = variable([0, 0, 0, 0], tf.int64, "pipegen_from")

        def entering(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            at = start.read_value()
            return at[0], at[1], at[2:]

        self._dataset = endless(plain_map(tf.data.Dataset.from_tensors(0), entering))
        super().__init__(self._dataset)

    def move(self, at: Position) -> None:
        """Starts the next epoch at a position. Call it only between epochs."""
        self._start.assign(at)


def _packer(places: Any) -> Callable[[Sequence[tf.Tensor]], Any]:
    """Builds a function that packs a flat list into the structure `places`, whose leaves are indices into the list."""
    if isinstance(places, dict):
        parts = {key: _packer(place) for key, place in places.items()}
        return lambda flat: {key: part(flat) for key, part in parts.items()}
    if isinstance(places, (tuple, list)):
        listed = [_packer(place) for place in places]
        return lambda flat: tuple(part(flat) for part in listed)
    return lambda flat: flat[places]


class TranslatingIterator(InTurn):
    """An iterator that measures the wait for each element and translates errors."""

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
        """Shapes and dtypes of an element."""
        return self._dataset.element_spec

    def _take_uncounted(self, elements: Iterator[Any]) -> Any:
        try:
            return next(elements)
        except FAILURES as error:
            raise self._dataset._pipegen_translate(error, None) from None


class EpochIterator(TranslatingIterator):
    """An iterator over the rest of one epoch, whose batches carry their step.

    TensorFlow's iterator is borrowed from the dataset and returned at the end of the epoch.
    """

    def __init__(self, dataset: PipelineDataset) -> None:
        super().__init__(dataset)
        dataset._pipegen_check()
        self._inner: BareIterator | None = dataset._pipegen_lend()
        self._at: Position | None = None
        """The next position; unknown before the first batch."""
        self._in_graphs: Iterator[Any] | None = None
        """TensorFlow's own iterator, once a `tf.function` has asked for a batch: Python cannot count what a graph takes later."""

    def _take(self) -> Any:
        if not tf.executing_eagerly():
            self._move_into_graphs()
        if self._in_graphs is not None:
            return self._take_uncounted(self._in_graphs)
        if self._inner is None:
            raise StopIteration
        if self._at is None:
            self._begin(self._inner)
        assert self._at is not None  # noqa: S101 - set by `_begin`
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
        """Reads the start of the epoch, as the graph is about to do."""
        if self._dataset._pipegen_begin is not None:
            self._dataset._pipegen_begin()
        self._at = self._dataset._pipegen_first()
        other = self._dataset._pipegen_for(self._at)
        if other is not self._dataset:
            self._dataset._pipegen_take_back(lent)
            self._dataset, self._inner = other, other._pipegen_lend()

    @property
    def is_over(self) -> bool:
        """Whether the last batch has been handed over."""
        return self._inner is None and self._in_graphs is None

    def _move_into_graphs(self) -> None:
        """Switches to TensorFlow's own iterator.

        Raises:
            RuntimeError: If batches were taken before.
        """
        if self._in_graphs is not None:
            return
        if self._at is not None or self._inner is None:
            raise RuntimeError("this iterator was started outside of `tf.function` and cannot continue inside; make a new one with `iter`")
        with tf.init_scope():
            self._in_graphs = iter(self._dataset._pipegen_for(self._dataset._pipegen_first())._pipegen_plain)
        self._dataset._pipegen_take_back(self._inner)
        self._inner = None

    def _go_on(self, at: Position) -> bool:
        """Moves past the batch at a position; returns False at the end of the epoch."""
        self._at = self._dataset._pipegen_after(at)
        return self._at.epoch == at.epoch


class CountingIterator(TranslatingIterator):
    """An iterator over batches without their step: Python counts."""

    def __init__(self, dataset: PipelineDataset, batches: tf.data.Dataset) -> None:
        super().__init__(dataset)
        self._at: Position | None = None
        self._inner = iter(batches)
        self._counts = True
        """False once a `tf.function` has asked for a batch: Python cannot count what a graph takes later."""

    def _take(self) -> Any:
        if not tf.executing_eagerly():
            self._counts = False
            if self._dataset._pipegen_commit is not None:
                raise RuntimeError("with `prefetch: {device: …}`, take batches outside of `tf.function` and pass them to it")
        if not self._counts:
            return self._take_uncounted(self._inner)
        if self._at is None:  # read when the first batch of an epoch is asked for, as the graph does
            self._dataset._pipegen_check()
            self._at = self._dataset._pipegen_first()
            if self._dataset._pipegen_for(self._at) is not self._dataset:
                raise StateError("the batch size of the training has changed since this iterator was made; make a new one with `iter`")
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


Translate = Callable[[Exception, "Position | None"], Exception]
"""A function from an error and the position of its batch, if known, to the error that a user sees."""


@untraced
class Explains(CustomDataset):
    """A dataset whose errors are translated, also after `repeat`, `map`, `prefetch`, `take` and `skip`, some of which `fit` calls.

    After other transformations the error is TensorFlow's and quotes ours.
    """

    _pipegen_translate: Translate
    _pipegen_waiting: Waiting
    _pipegen_check: Callable[[], None]
    _pipegen_sharing: ShareCheck

    if not TYPE_CHECKING:  # or type checkers accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raises an error that names the pipeline's counterpart of another library's member, such as `class_names`."""
            meant = "" if name.startswith("_") else member(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name=name, obj=self)

    def _pipegen_source(self) -> tf.data.Dataset:
        """Returns the dataset to derive from. Its length is not asserted: the first epoch after a resume is shorter."""
        raise NotImplementedError

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """Repeats like `tf.data.Dataset.repeat`, through the following epochs."""
        return DerivedDataset(self._pipegen_source().repeat(*args, **options), self)

    def map(self, *args: Any, **options: Any) -> DerivedDataset:
        """Maps like `tf.data.Dataset.map`."""
        return DerivedDataset(self._pipegen_source().map(*args, **options), self, self.cardinality())

    def prefetch(self, *args: Any, **options: Any) -> DerivedDataset:
        """Prefetches like `tf.data.Dataset.prefetch`."""
        return DerivedDataset(self._pipegen_source().prefetch(*args, **options), self, self.cardinality())

    def take(self, *args: Any, **options: Any) -> DerivedDataset:
        """Takes the first elements like `tf.data.Dataset.take`."""
        length = super().take(*args, **options).cardinality()
        return DerivedDataset(self._pipegen_source().take(*args, **options), self, length)

    def skip(self, *args: Any, **options: Any) -> DerivedDataset:
        """Skips elements like `tf.data.Dataset.skip`."""
        length = super().skip(*args, **options).cardinality()
        return DerivedDataset(self._pipegen_source().skip(*args, **options), self, length)


@untraced
class DerivedDataset(Explains):
    """A dataset derived from one of ours; its errors are translated."""

    def __init__(self, inner: tf.data.Dataset, source: Explains, length: tf.Tensor | None = None) -> None:
        self._pipegen_inner = inner
        self._pipegen_length = inner.cardinality() if length is None else length
        self._pipegen_translate, self._pipegen_waiting = source._pipegen_translate, source._pipegen_waiting
        self._pipegen_check, self._pipegen_sharing = source._pipegen_check, source._pipegen_sharing
        super().__init__(tf.data.experimental.to_variant(inner))

    def _pipegen_variant(self) -> tf.Tensor:
        self._pipegen_sharing.check()
        return super()._pipegen_variant()

    def _pipegen_inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_inner]

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_inner

    def cardinality(self) -> tf.Tensor:
        """Returns the number of elements, int64; negative if infinite or unknown."""
        return self._pipegen_length

    def __len__(self) -> int:
        length = int(self._pipegen_length)
        if length < 0:
            raise TypeError("this dataset has no length: it is infinite, or its length is unknown")
        return length

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of an element."""
        return self._pipegen_inner.element_spec

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return _DerivedIterator(self)


class _DerivedIterator(TranslatingIterator):
    def __init__(self, dataset: DerivedDataset) -> None:
        super().__init__(dataset)
        dataset._pipegen_check()
        self._inner = iter(dataset._pipegen_inner)

    def _take(self) -> Any:
        return self._take_uncounted(self._inner)


@untraced
class PipelineDataset(Explains):
    """A `tf.data.Dataset` of known length whose errors name the damaged file.

    Python iteration, `fit`, `evaluate`, `predict` and `.repeat()` run the plain pipeline and search for the damaged record after a
    failure. A dataset derived in another way (`.map`, `.take`, a distribution strategy) fails where Python cannot search, so it guards
    each record, which takes about 50 µs.

    Args:
        executor: The executor of the split.
        form: The form of the physical plan.
        entering: Makes a dataset of start positions: epoch, first step, and `(origin, shift)`.
        first: Returns the start of the next iterator.
        steps: Number of batches.
        iterators: Makes TensorFlow's iterators over batches with their step, for Python; by default over this dataset.
        idle: A finished iterator to reuse; datasets with the same list share their iterators.
        progress: The training position, for a form that updates it.
        moved: Makes the dataset for epochs begun with another batch size, if those need another executor.
        feed: Batches made by other machines, in place of the executor's.
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
        # Functions capture these in place of this object: a cycle would keep it until the garbage collector runs.
        made = partial(batches_of, executor) if feed is None else feed.batches
        self._pipegen_numbered = numbered = made(entering(), form)
        handed = partial(handed_over, executor, progress=progress)
        self._pipegen_steps = steps
        self._pipegen_sharing = ShareCheck(executor.order.shard, executor.steps if progress is not None else 0)
        self._pipegen_after = executor.order.after
        self._pipegen_first = first
        self._pipegen_moved = None if moved is None else Once(moved)
        self._pipegen_begin = progress.check if progress is not None and progress.stretch.end is not None else None
        """Called before the first batch of an epoch: raises if no epoch is left."""
        self._pipegen_translate = partial(explain_failure, executor)
        self._pipegen_check = _checks(executor, first, feed)
        """Called at the start of an epoch that Python iterates: raises if files have changed."""
        self._pipegen_waiting = executor.waiting
        self._pipegen_commit = progress.note if progress is not None and form.device is not None else None
        """Called for each batch that Python hands over if the graph cannot note it, since it prefetches to a device."""
        self._pipegen_marked = marked = numbered if form.device is not None else handed(numbered, form)
        """The batches with their step; without it for a device."""
        self._pipegen_counts = form.device is not None
        """Whether Python counts the batches, which come without their step."""
        endless = Once(marked.repeat)
        self._pipegen_iterators = iterators or (lambda: BareIterator(endless()))
        self._pipegen_idle: list[BareIterator] = [] if idle is None else idle
        self._pipegen_latest: weakref.ref[EpochIterator] | None = None
        self._pipegen_unnumbered = Once(lambda: handed(numbered, form.bare()))
        derived = partial(_derived, made, form, entering, first, self._pipegen_moved)
        self._pipegen_guarded = guarded = Once(lambda: handed(derived(), form.bare()))
        self._pipegen_made: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda entering: made(entering, form.built_on())
        """Makes the dataset to derive from, for a dataset of start positions."""
        self._pipegen_counted = Once(lambda: _counted(guarded(), steps))
        super().__init__(tf.data.experimental.to_variant(numbered))

    @property
    def _pipegen_plain(self) -> tf.data.Dataset:
        """The batches without their step."""
        return self._pipegen_unnumbered()

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    def _pipegen_variant(self) -> tf.Tensor:
        self._pipegen_sharing.check()
        return tf.data.experimental.to_variant(self._pipegen_counted())

    def _pipegen_inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_marked]

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of a batch."""
        return self._pipegen_numbered.element_spec[2]

    def cardinality(self) -> tf.Tensor:
        """Returns the number of batches, int64."""
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
        """Returns the dataset for an epoch: another one if combined groups are aligned differently to its batches."""
        return self._pipegen_moved() if self._pipegen_moved is not None and at.origin % GROUP else self

    def _pipegen_lend(self) -> BareIterator:
        """Lends an iterator of TensorFlow at the start of an epoch.

        Making one takes tens of milliseconds, since TensorFlow instantiates each function. A repeating dataset does that once, so an
        iterator at the end of its epoch is kept and reused.
        """
        try:
            iterator = self._pipegen_idle.pop()  # not checked first: two threads may ask at a time
        except IndexError:
            iterator = self._pipegen_iterators()
        if isinstance(iterator, MovableIterator):
            iterator.move(self._pipegen_first())
        return iterator

    def _pipegen_take_back(self, iterator: BareIterator) -> None:
        """Keeps a finished iterator; only one, since each has its threads."""
        if not self._pipegen_idle:
            self._pipegen_idle.append(iterator)

    def _pipegen_is_over(self) -> bool:
        """Checks for a latest iterator that is still held and at its end."""
        latest = self._pipegen_latest() if self._pipegen_latest is not None else None
        return latest is not None and latest.is_over

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """Repeats like `tf.data.Dataset.repeat`, through the following epochs."""
        if self._pipegen_commit is not None or not tf.executing_eagerly():
            return super().repeat(*args, **options)
        return RepeatedDataset(self, *args, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._pipegen_steps} batches of {self.element_spec}>"

    def _repr_html_(self) -> str:
        return batches_html(f"{self._pipegen_steps:,} batches", self.element_spec)


@untraced
class RepeatedDataset(DerivedDataset):
    """A repeated `PipelineDataset`; like its source it guards records only if something else is derived from it."""

    def __init__(self, source: PipelineDataset, *args: Any, **options: Any) -> None:
        self._pipegen_of = source
        self._pipegen_guarded = Once(lambda: source._pipegen_source().repeat(*args, **options))
        super().__init__(source._pipegen_plain.repeat(*args, **options), source)

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded()

    def _pipegen_variant(self) -> tf.Tensor:
        self._pipegen_sharing.check()
        return tf.data.experimental.to_variant(self._pipegen_source())

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
    """Makes the dataset of the training split: each iteration is the epoch at `progress`.

    Args:
        executor: The executor of the split.
        progress: The training position.
        device: The device to prefetch to.
        other: Returns the executor and feed for epochs begun with another batch size, for a plan that combines examples.
        feed: Batches made by other machines.
        sends: Whether the last kernels are left to a device.
    """
    form = _form(TRAINING, device, sends=sends)

    def moved() -> PipelineDataset:
        assert other is not None  # noqa: S101 - checked below
        executor, feed = other()
        return training_dataset(executor, progress, device, None, None if sends else feed, sends=sends)

    given = executor, form, progress.head, progress.next_start, executor.steps
    return PipelineDataset(*given, progress=progress, moved=None if other is None else moved, feed=feed)


def _form(form: Form, device: str | None, *, sends: bool) -> Form:
    form = form.sending() if sends else form
    return form if device is None else form.bare(device)


def fixed_dataset(executor: Executor, at: Position = FIRST, device: str | None = None, *, sends: bool = False) -> PipelineDataset:
    """Makes a dataset of one epoch from one step on. It holds no variable, so it may be iterated anywhere and any number of times.

    With `sends` the last kernels are left to a device.
    """

    def entering() -> tf.data.Dataset:
        epoch, step, *since = (tf.constant(number, tf.int64) for number in at)
        return tf.data.Dataset.from_tensors((epoch, step, tf.stack(since)))

    form = _form(FIXED, device, sends=sends)

    def iterators() -> BareIterator:
        return MovableIterator(lambda entering: handed_over(executor, batches_of(executor, entering, form), form).repeat())

    # The first dataset of an executor may be its only one, as in prediction: another graph would cost more than it saves.
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
    """The batches to derive from.

    If the next epoch was begun with another batch size and needs another executor, the graph holds the batches of both. Otherwise it
    raises when it meets such an epoch.
    """
    if moved is None:
        return made(entering(), form.built_on())
    if not first().origin % GROUP:
        return made(plain_map(entering(), _as_begun), form.built_on())
    own = entering().filter(plain(lambda _epoch, _step, since: tf.equal(since[0] % GROUP, 0)))
    other = entering().filter(plain(lambda _epoch, _step, since: tf.not_equal(since[0] % GROUP, 0)))
    return made(own, form.built_on()).concatenate(moved()._pipegen_made(other))


def _as_begun(epoch: tf.Tensor, step: tf.Tensor, since: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Raises in an epoch that was begun with another batch size."""
    message = (
        "pipegen: this dataset was derived before the batch size changed in the middle of an epoch that combines examples: call "
        "`pipe.restore` first, then derive from `pipe.train`"
    )
    begun = tf.raw_ops.Assert(condition=tf.equal(since[0] % GROUP, 0), data=[message])
    with tf.control_dependencies([begun]):
        return tf.identity(epoch), step, since


def _counted(ds: tf.data.Dataset, steps: int) -> tf.data.Dataset:
    """Asserts the length of a dataset."""
    return ds.apply(tf.data.experimental.assert_cardinality(steps)).with_options(ds.options())


def describe(spec: Any) -> str:
    """Formats nested tensor specs: `{picture: float32 64×224×224×3}`."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in spec.items()) + "}"
    if isinstance(spec, tuple):
        return "(" + ", ".join(describe(v) for v in spec) + ")"
    dims = "×".join("?" if d is None else str(d) for d in spec.shape)
    return f"{spec.dtype.name} {dims}"


def parts(spec: Any) -> list[tuple[str, Any]]:
    """Names the parts of a batch: `x`, `y` and `sample_weight`."""
    given = spec if isinstance(spec, tuple) else (spec,)
    return list(zip(("x", "y", "sample_weight"), given, strict=False))


def leaves(name: str, part: Any) -> Iterator[tuple[str, str]]:
    """Yields a name and a description of each tensor of a part."""
    if isinstance(part, dict):
        for key, inner in part.items():
            yield from leaves(f"{name}: {key}", inner)
    elif isinstance(part, tuple):
        for number, inner in enumerate(part):
            yield from leaves(f"{name}[{number}]", inner)
    else:
        yield name, describe(part)


def batches_html(title: str, spec: Any) -> str:
    """Renders the tensors of a batch as an HTML table for notebooks."""
    return box(title, "", notebook_table((), [row for name, part in parts(spec) for row in leaves(name, part)]))
