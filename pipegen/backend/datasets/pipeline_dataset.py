"""`PipelineDataset`, its iterators and the datasets derived from it: errors name files, and waits are measured."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.progress import Progress, entering
from pipegen.backend.process.devices import InTurn, Once, variable
from pipegen.backend.process.traced_functions import plain, plain_map
from pipegen.backend.running.damaged_record import explain_failure
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.backend.service.feed import Feed
from pipegen.diagnostics.suggest import member
from pipegen.errors import StateError
from pipegen.ops.families.combining import GROUP
from pipegen.page import box, notebook_table
from pipegen.physical.extent import FIRST, Position
from pipegen.physical.nodes import FIXED, TRAINING, Form
from pipegen.private import keras, tensorflow
from pipegen.private.functions import callers, untraced

FAILURES = (tf.errors.OpError, UnicodeDecodeError)
"""Exceptions of TensorFlow for a failed batch; `UnicodeDecodeError` if its message quotes bytes of a damaged record."""


_AHEAD = 8  # steps that a strategy may read ahead of training: four were seen, with 2 and with 3 replicas


def check_deriving(share: tuple[int, int], steps: int) -> None:
    """Checks that the calling functions may derive a dataset from one with this `share` of each batch, and the number of shares.

    `steps` are the batches of an epoch of training, which is over once its last batch is read; 0 for other splits. Raises `RuntimeError`
    if the callers would shard a share again: every process would train on a part of its share, and the rest would be lost; `StateError` if
    a strategy would read a whole epoch ahead, so that `fit` skips the first one.
    """
    if share[1] == 1 and not 0 < steps <= _AHEAD:
        return
    found = list(callers())
    for caller in found if share[1] > 1 else ():
        by_strategy = tensorflow.shards_dataset(caller)
        if by_strategy or keras.shards_dataset(caller):
            who = "`strategy.experimental_distribute_dataset`" if by_strategy else "Keras' `auto_shard_dataset`"
            raise RuntimeError(
                f"{who} would shard these batches among the processes, but they are share {share[0]} of {share[1]} already: "
                "use `pipe.distribute(strategy)`, or with Keras on JAX `DataParallel(auto_shard_dataset=False)`, or give each process "
                "whole batches with `runtime: {shard: none}`"
            )
    fits = next((given for given in map(keras.callbacks_of_fit, found) if given is not None), None)
    if fits is None or not 0 < steps <= _AHEAD or not any(map(tensorflow.distributes_dataset, found)):
        return
    if not any(getattr(type(one), "_pipegen_counts_epochs", False) for one in fits):  # of `pipe.callback()`
        raise StateError(
            f"a distribution strategy may read all {steps} steps of an epoch ahead, and `fit` would then skip the first epoch: "
            "pass it `pipe.distribute(strategy)`, or add `pipe.callback()` to `callbacks`, which sets the epoch"
        )


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
        self._start = variable([0, 0, 0, 0], tf.int64, "pipegen_from")
        self._dataset = endless(entering(self._start.read_value))
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


@untraced
class Batches:
    """The batches of a split in one form: TensorFlow's datasets of them, and its iterators, which are lent.

    It knows none of the datasets that have it: a cycle would keep both until the garbage collector runs.

    Args:
        executor: The executor of the split.
        form: The form of the physical plan.
        entering: Makes a dataset of start positions: epoch, first step, and `(origin, shift)`.
        first: Returns the start of the next iterator.
        steps: Number of batches.
        idle: Finished iterators that can be moved, to share them with other datasets; without them, it has its own.
        progress: The training position, for a form that updates it.
        moved: Makes the batches of epochs begun with another batch size, if those need another executor.
        feed: Batches made by other machines, in place of the executor's.

    Attributes:
        translate: Translates an error to the one that a user sees; takes also the position of its batch, if known.
        waiting: The time that Python waits for batches.
        after: Returns the position after the batch at a position.
        commit: Called for each batch that Python hands over if the graph cannot note it, since it prefetches to a device.
        counts: Whether Python counts the batches, which come without their step.
        check_deriving: Checks that the calling functions may derive a dataset.
        numbered: The batches as they are made, with epoch and step.
        marked: Delivered batches with their step; for a device the same as `numbered`.
        latest: The latest iterator over one epoch.
    """

    def __init__(
        self,
        executor: Executor,
        form: Form,
        entering: Callable[[], tf.data.Dataset],
        first: Callable[[], Position],
        steps: int,
        *,
        idle: list[BareIterator] | None = None,
        progress: Progress | None = None,
        moved: Callable[[], Batches] | None = None,
        feed: Feed | None = None,
    ) -> None:
        self._form, self._entering, self.first, self.steps = form, entering, first, steps
        self._progress, self._move, self._feed = progress, moved, feed
        self._made = partial(batches_of, executor) if feed is None else feed.batches
        self._handed = partial(handed_over, executor, progress=progress)
        self._idle: list[BareIterator] = [] if idle is None else idle
        self._shares = idle is not None
        self._check = executor.records.reader.check
        self.translate = partial(explain_failure, executor)
        self.waiting, self.after = executor.waiting, executor.order.after
        self.counts = form.device is not None
        self.commit = progress.note if progress is not None and self.counts else None
        self.check_deriving = partial(check_deriving, executor.order.shard, executor.steps if progress is not None else 0)
        self.numbered = self._made(entering(), form)
        self.element_spec: Any = self.numbered.element_spec[2]  # shapes and dtypes of a batch
        self.marked = self.numbered if self.counts else self._handed(self.numbered, form)
        self.latest: weakref.ref[EpochIterator] | None = None

    @Once
    def unmarked(self) -> tf.data.Dataset:
        """The batches without their step."""
        return self._handed(self.numbered, self._form.bare())

    @Once
    def guarded(self) -> tf.data.Dataset:
        """The batches to derive from, without an asserted length: the first epoch after a resume is shorter.

        If the next epoch was begun with another batch size and needs another executor, the graph holds the batches of both. Otherwise it
        raises when it meets such an epoch.
        """
        if self._move is None:
            made = self._built_on(self._entering())
        elif not self.first().origin % GROUP:
            made = self._built_on(plain_map(self._entering(), _as_begun))
        else:
            own = self._entering().filter(plain(lambda _epoch, _step, since: tf.equal(since[0] % GROUP, 0)))
            other = self._entering().filter(plain(lambda _epoch, _step, since: tf.not_equal(since[0] % GROUP, 0)))
            made = self._built_on(own).concatenate(self._moved._built_on(other))
        return self._handed(made, self._form.bare())

    @Once
    def counted(self) -> tf.data.Dataset:
        """`guarded` with an asserted length."""
        return self.guarded.apply(tf.data.experimental.assert_cardinality(self.steps)).with_options(self.guarded.options())

    @Once
    def _endless(self) -> tf.data.Dataset:
        return self.marked.repeat()

    @Once
    def _moved(self) -> Batches:
        assert self._move is not None  # noqa: S101 - asked before
        return self._move()

    def _built_on(self, entering: tf.data.Dataset) -> tf.data.Dataset:
        return self._made(entering, self._form.built_on())

    def _repeated(self, entering: tf.data.Dataset) -> tf.data.Dataset:
        return self._handed(self._made(entering, self._form), self._form).repeat()

    def check(self) -> None:
        """Checks, at the start of an epoch that Python iterates, that files have not changed."""
        self._check()
        if self._feed is not None:
            self._feed.check(self.first())

    def begin(self) -> Position:
        """Returns the start of the next epoch; raises if none is left."""
        if self._progress is not None:
            self._progress.check()
        return self.first()

    def at(self, at: Position) -> Batches:
        """Returns the batches of an epoch: those of another executor if mixed groups are aligned differently to its batches."""
        return self._moved if self._move is not None and at.origin % GROUP else self

    def lend(self) -> BareIterator:
        """Lends an iterator of TensorFlow at the start of an epoch.

        Making one takes tens of milliseconds, since TensorFlow instantiates each function. A repeating dataset does that once, so an
        iterator at the end of its epoch is kept and reused.
        """
        try:
            iterator = self._idle.pop()  # not checked first: two threads may ask at a time
        except IndexError:
            iterator = MovableIterator(self._repeated) if self._shares else BareIterator(self._endless)
        if isinstance(iterator, MovableIterator):
            iterator.move(self.first())
        return iterator

    def take_back(self, iterator: BareIterator) -> None:
        """Keeps a finished iterator; only one, since each has its threads."""
        if not self._idle:
            self._idle.append(iterator)

    def is_over(self) -> bool:
        """Checks for a latest iterator that is still held and at its end."""
        latest = self.latest() if self.latest is not None else None
        return latest is not None and latest.is_over


class TranslatingIterator(InTurn):
    """An iterator that measures the wait for each element and translates errors."""

    def __init__(self, batches: Batches, element_spec: Any, elements: Iterable[Any] = ()) -> None:
        super().__init__(elements)
        self._batches = batches
        self.element_spec = element_spec  # shapes and dtypes of an element

    def __next__(self) -> Any:
        start = time.perf_counter()
        batch = super().__next__()
        self._batches.waiting.add(time.perf_counter() - start, batch)
        return batch

    def _next(self, elements: Iterator[Any], at: Position | None = None) -> Any:
        try:
            return next(elements)
        except FAILURES as error:
            raise self._batches.translate(error, at) from None

    def _take(self) -> Any:
        return self._next(self._elements)


class EpochIterator(TranslatingIterator):
    """An iterator over the rest of one epoch, whose batches carry their step.

    TensorFlow's iterator is borrowed and returned at the end of the epoch.
    """

    def __init__(self, batches: Batches) -> None:
        super().__init__(batches, batches.element_spec)
        batches.check()
        self._inner: BareIterator | None = batches.lend()
        self._at: Position | None = None  # the next position; unknown before the first batch
        self._in_graphs: Iterator[Any] | None = None
        """TensorFlow's own iterator, once a `tf.function` has asked for a batch: Python cannot count what a graph takes later."""
        batches.latest = weakref.ref(self)

    def _take(self) -> Any:
        if not tf.executing_eagerly():
            self._move_into_graphs()
        if self._in_graphs is not None:
            return self._next(self._in_graphs)
        if self._inner is None:
            raise StopIteration
        at = self._at = self._begin() if self._at is None else self._at
        try:
            epoch, step, batch = next(self._inner)
        except StopIteration:
            self._inner = None
            raise
        except FAILURES as error:
            if not self._go_on(at):
                self._inner = None
            raise self._batches.translate(error, at) from None
        if not self._go_on(at._replace(epoch=int(epoch), step=int(step))):
            self._give_back()
        return batch

    def _begin(self) -> Position:
        """Reads the start of the epoch, as the graph is about to do."""
        at = self._batches.begin()
        other = self._batches.at(at)
        if other is not self._batches:
            lent = other.lend()  # first: if it fails, this iterator begins anew at the next call
            self._give_back()
            self._batches, self._inner = other, lent
        return at

    def _give_back(self) -> None:
        assert self._inner is not None  # noqa: S101 - asked before
        self._batches.take_back(self._inner)
        self._inner = None

    @property
    def is_over(self) -> bool:
        """Whether the last batch has been handed over."""
        return self._inner is None and self._in_graphs is None

    def _move_into_graphs(self) -> None:
        """Switches to TensorFlow's own iterator. Raises `RuntimeError` if batches were taken before."""
        if self._in_graphs is not None:
            return
        if self._at is not None or self._inner is None:
            raise RuntimeError("this iterator was started outside of `tf.function` and cannot continue inside; make a new one with `iter`")
        with tf.init_scope():
            self._in_graphs = iter(self._batches.at(self._batches.first()).unmarked)
        self._give_back()

    def _go_on(self, at: Position) -> bool:
        """Moves past the batch at a position; returns False at the end of the epoch."""
        self._at = self._batches.after(at)
        return self._at.epoch == at.epoch


class CountingIterator(TranslatingIterator):
    """An iterator over batches without their step: Python counts."""

    def __init__(self, batches: Batches, inner: tf.data.Dataset) -> None:
        super().__init__(batches, inner.element_spec, inner)
        self._at: Position | None = None
        self._counts = True  # false once a `tf.function` has asked for a batch: Python cannot count what a graph takes later

    def _take(self) -> Any:
        batches = self._batches
        if not tf.executing_eagerly():
            self._counts = False
            if batches.commit is not None:
                raise RuntimeError("with `prefetch: {device: …}`, take batches outside of `tf.function` and pass them to it")
        if not self._counts:
            return super()._take()
        if self._at is None:  # read when the first batch of an epoch is asked for, as the graph does
            batches.check()
            self._at = batches.first()
            if batches.at(self._at) is not batches:
                raise StateError("the batch size of the training has changed since this iterator was made; make a new one with `iter`")
        at = self._at
        batch = self._next(self._elements, at)
        if batches.commit is not None:
            batches.commit(at)
        follows = batches.after(at)
        self._at = follows if follows.epoch == at.epoch else None
        return batch


@untraced
class Explains(tensorflow.CustomDataset):
    """A dataset whose errors are translated, also after `repeat`, `map`, `prefetch`, `take` and `skip`, some of which `fit` calls.

    After other transformations the error is TensorFlow's and quotes ours.
    """

    _pipegen: Batches

    if not TYPE_CHECKING:  # or type checkers accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raises an error that names the pipeline's counterpart of another library's member, such as `class_names`."""
            meant = "" if name.startswith("_") else member(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name=name, obj=self)

    def _pipegen_source(self) -> tf.data.Dataset:
        """Returns the dataset to derive from."""
        return self._pipegen.guarded

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
        self._pipegen, self._pipegen_inner = source._pipegen, inner
        self._pipegen_length = inner.cardinality() if length is None else length
        super().__init__(tf.data.experimental.to_variant(inner))

    def _pipegen_variant(self) -> tf.Tensor:
        self._pipegen.check_deriving()
        return super()._pipegen_variant()

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
        self._pipegen.check()
        return TranslatingIterator(self._pipegen, self._pipegen_inner.element_spec, self._pipegen_inner)


@untraced
class PipelineDataset(Explains):
    """A `tf.data.Dataset` of known length whose errors name the damaged file.

    Python iteration, `fit`, `evaluate`, `predict` and `.repeat()` run the plain pipeline and search for the damaged record after a
    failure. A dataset derived in another way (`.map`, `.take`, a distribution strategy) fails where Python cannot search, so it guards
    each record, which takes about 50 µs.
    """

    def __init__(self, batches: Batches) -> None:
        self._pipegen, self._pipegen_inner = batches, batches.marked
        super().__init__(tf.data.experimental.to_variant(batches.numbered))

    def _pipegen_variant(self) -> tf.Tensor:
        self._pipegen.check_deriving()
        return tf.data.experimental.to_variant(self._pipegen.counted)

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of a batch."""
        return self._pipegen.element_spec

    def cardinality(self) -> tf.Tensor:
        """Returns the number of batches, int64."""
        return tf.constant(len(self), tf.int64)

    def __len__(self) -> int:
        return self._pipegen.steps

    def __iter__(self) -> Iterator[Any]:
        batches = self._pipegen
        if not tf.executing_eagerly():
            return super().__iter__()
        if not batches.counts:
            return EpochIterator(batches)
        of_epoch = batches.at(batches.first())
        return CountingIterator(of_epoch, of_epoch.unmarked)

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """Repeats like `tf.data.Dataset.repeat`, through the following epochs."""
        if self._pipegen.commit is not None or not tf.executing_eagerly():
            return super().repeat(*args, **options)
        return RepeatedDataset(self, *args, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} batches of {self.element_spec}>"

    def _repr_html_(self) -> str:
        rows = [row for name, part in parts(self.element_spec) for row in leaves(name, part)]
        return box(f"{len(self):,} batches", "", notebook_table((), rows))


@untraced
class RepeatedDataset(DerivedDataset):
    """A repeated `PipelineDataset`; like its source it guards records only if something else is derived from it."""

    def __init__(self, source: PipelineDataset, *args: Any, **options: Any) -> None:
        self._pipegen_repeats = args, options
        super().__init__(source._pipegen.unmarked.repeat(*args, **options), source)

    @Once
    def _pipegen_guarded(self) -> tf.data.Dataset:
        args, options = self._pipegen_repeats
        return self._pipegen.guarded.repeat(*args, **options)

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_guarded

    def _pipegen_variant(self) -> tf.Tensor:
        self._pipegen.check_deriving()
        return tf.data.experimental.to_variant(self._pipegen_guarded)

    def __iter__(self) -> Iterator[Any]:
        batches = self._pipegen
        if not tf.executing_eagerly():
            return super().__iter__()
        if batches.at(batches.first()) is not batches:
            return iter(DerivedDataset(self._pipegen_guarded, self))
        return CountingIterator(batches, self._pipegen_inner)


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

    `other` returns the executor and feed for epochs begun with another batch size, for a plan that combines examples; `feed` has batches
    made by other machines. With `sends` the last kernels are left to a device.
    """
    form = _form(TRAINING, device, sends=sends)

    def batches(executor: Executor, feed: Feed | None, moved: Callable[[], Batches] | None = None) -> Batches:
        given = executor, form, progress.head, progress.next_start, executor.steps
        return Batches(*given, progress=progress, moved=moved, feed=None if sends else feed)

    return PipelineDataset(batches(executor, feed, None if other is None else lambda: batches(*other())))


def _form(form: Form, device: str | None, *, sends: bool) -> Form:
    form = form.sending() if sends else form
    return form if device is None else form.bare(device)


def fixed_dataset(executor: Executor, at: Position = FIRST, device: str | None = None, *, sends: bool = False) -> PipelineDataset:
    """Makes a dataset of one epoch from one step on. It holds no variable, so it may be iterated anywhere and any number of times.

    With `sends` the last kernels are left to a device.
    """

    def start() -> tf.data.Dataset:
        epoch, step, *since = (tf.constant(number, tf.int64) for number in at)
        return tf.data.Dataset.from_tensors((epoch, step, tf.stack(since)))

    # The first dataset of an executor may be its only one, as in prediction: another graph would cost more than it saves.
    idle = None if sends else executor.idle
    if executor.idle is None and not sends:
        executor.idle = []
    steps = max(executor.order.steps_from(at.origin) - at.step, 0)
    return PipelineDataset(Batches(executor, _form(FIXED, device, sends=sends), start, lambda: at, steps, idle=idle))


def _as_begun(epoch: tf.Tensor, step: tf.Tensor, since: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Raises in an epoch that was begun with another batch size."""
    message = (
        "pipegen: this dataset was derived before the batch size changed in the middle of an epoch that combines examples: call "
        "`pipe.restore` first, then derive from `pipe.train`"
    )
    begun = tf.raw_ops.Assert(condition=tf.equal(since[0] % GROUP, 0), data=[message])
    with tf.control_dependencies([begun]):
        return tf.identity(epoch), step, since


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
