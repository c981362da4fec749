"""Single batches, whichever are asked for, and several views of each example."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.pipeline_dataset import DerivedDataset, PipelineDataset
from pipegen.backend.process.graphs import plain_map
from pipegen.backend.running.failures import explain_failure
from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.physical.extent import Position
from pipegen.physical.nodes import REQUESTED

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor


_AHEAD = 2
"""Batches that are begun before they are asked for, where one follows the other."""


class RequestedBatches:
    """The batches of a split by epoch and step, in any order and from any thread.

    A dataset that starts at a step has to be traced, and its iterator to be optimised, which takes longer than most batches. Here the
    dataset takes the steps out of a queue, and waits where there is none.

    Args:
        executor: The split's executor.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = threading.Lock()
        self._last: Position | None = None
        self._start()

    def _start(self) -> None:
        """Make the dataset, which has been asked for nothing."""
        with tf.device("CPU:0"):
            # As many as can be asked for at a time: nobody ever waits for room.
            self._queue = tf.queue.FIFOQueue(_AHEAD + 1, [tf.int64], [[4]])
        queue = self._queue  # the dataset must not hold this object, or neither would ever go

        def asked(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            at = queue.dequeue()
            return at[0], at[1], at[2:]

        steps = plain_map(tf.data.Dataset.from_tensors(0).repeat(), asked)
        batches = batches_of(self._executor, steps, REQUESTED)
        self.element_spec = batches.element_spec[2]
        """The shapes and dtypes of a batch."""
        self._batches = iter(handed_over(self._executor, batches, REQUESTED))
        # TensorFlow crashes where the iterator or the queue goes while one waits for the other; when it is closed, the wait ends.
        self._close = weakref.finalize(self, _close, queue)
        self._asked: deque[Position] = deque()

    def __call__(self, epoch: int, step: int) -> Any:
        """A batch, as the model receives it.

        Args:
            epoch: The epoch, from 0.
            step: Its step; there must be one.

        Raises:
            DataError: For a record that cannot be read.
        """
        return self.at(Position(epoch, step))

    def at(self, at: Position) -> Any:
        """The same of a position, also in an epoch that was begun with batches of another size."""
        with self._lock:
            follows = self._last == at._replace(step=at.step - 1)
            if self._last is None or self._last.epoch != at.epoch:
                self._executor.records.reader.check()
            self._last = at
            self._leave_out(self._asked.index(at) if at in self._asked else len(self._asked))
            if at not in self._asked:
                self._ask(at)
            if follows:
                end = self._executor.order.steps_from(at.origin)
                for step in range(at.step + 1, min(at.step + 1 + _AHEAD, end)):
                    later = at._replace(step=step)
                    if later not in self._asked:
                        self._ask(later)
            return self._take()

    def _ask(self, at: Position) -> None:
        self._queue.enqueue(tf.constant(at, tf.int64))
        self._asked.append(at)

    def _leave_out(self, count: int) -> None:
        """Let go of batches that were begun in vain."""
        for _ in range(count):
            try:
                self._take()
            except Exception:  # what nobody has asked for concerns nobody; the others have gone with it
                return

    def _take(self) -> Any:
        at = self._asked.popleft()
        try:
            return next(self._batches)[2]
        except tf.errors.OpError as error:
            self._close()
            self._start()  # what is left of the batch would be taken for the next one
            raise explain_failure(self._executor, error, at) from None


def _close(queue: tf.queue.QueueBase) -> None:
    """Close a queue now, even where Python collects garbage while a graph is traced."""
    with tf.init_scope():
        queue.close()


class Augmented(DerivedDataset):
    """Batches of rows for `model.predict`: the views of an example stand behind one another, and examples in the order of their split.

    Attributes:
        views: How many views of each example there are.
    """

    def __init__(self, inner: tf.data.Dataset, source: PipelineDataset, views: int) -> None:
        self.views = views
        super().__init__(inner, source, source.cardinality())

    def __repr__(self) -> str:
        return f"<{int(self.cardinality())} batches of {self.views} views of each example: {self.element_spec}>"


def together(views: Sequence[PipelineDataset]) -> Augmented:
    """Puts the views of each example behind one another.

    Raises:
        ValueError: Where views have other shapes than the first one.
    """
    first = views[0].element_spec
    for number, other in enumerate(views[1:], 1):
        if other.element_spec != first:
            raise ValueError(f"view {number} gives {other.element_spec}, and the first one {first}: rows of a batch have one shape")

    def rows(*parts: Any) -> Any:
        return tf.nest.map_structure(_behind_one_another, *parts)

    joined = tf.data.Dataset.zip(tuple(views)).map(rows, num_parallel_calls=1, deterministic=True).prefetch(1)
    return Augmented(joined, views[0], len(views))


def _behind_one_another(*parts: tf.Tensor) -> tf.Tensor:
    """Interleaves the rows of several tensors; ragged ones too."""
    if isinstance(parts[0], tf.RaggedTensor):
        n = parts[0].nrows()
        order = tf.reshape(tf.transpose(tf.reshape(tf.range(n * len(parts)), [len(parts), n])), [-1])
        return tf.gather(tf.concat(parts, 0), order)
    stacked = tf.stack(parts, 1)
    rows = None if parts[0].shape[0] is None else parts[0].shape[0] * len(parts)
    done = tf.reshape(stacked, tf.concat([[-1], tf.shape(stacked)[2:]], 0))
    done.set_shape([rows, *parts[0].shape[1:]])
    return done
