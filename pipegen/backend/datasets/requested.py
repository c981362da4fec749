"""Random access to batches, and several views of each example."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import tensorflow as tf

from pipegen.backend.datasets.pipeline_dataset import DerivedDataset, PipelineDataset
from pipegen.backend.datasets.progress import entering
from pipegen.backend.running.damaged_record import explain_failure
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.physical.extent import Position
from pipegen.physical.nodes import REQUESTED, Form

_AHEAD = 2  # batches that are started ahead during sequential access


class RequestedBatches:
    """The batches of a split by epoch and step, in any order and from any thread.

    Tracing a dataset for each step and optimising its iterator would take longer than most batches. So one dataset takes the steps from
    a queue. `form` is that of the physical plan.
    """

    def __init__(self, executor: Executor, form: Form = REQUESTED) -> None:
        self._executor, self._form = executor, form
        self._lock = threading.Lock()
        self._last: Position | None = None
        self._start()

    def _start(self) -> None:
        """Makes the dataset and an empty queue."""
        with tf.device("CPU:0"):
            # Large enough for all requests at a time, so that `enqueue` never blocks.
            self._queue = tf.queue.FIFOQueue(_AHEAD + 1, [tf.int64], [[4]])
        # The queue is captured in place of this object, which would never be freed.
        batches = batches_of(self._executor, entering(self._queue.dequeue, endless=True), self._form)
        self.element_spec = batches.element_spec[2]  # shapes and dtypes of a batch
        self._batches = iter(handed_over(self._executor, batches, self._form))
        # TensorFlow crashes if the iterator or the queue is deleted while one waits for the other; closing the queue ends the wait.
        self._close = weakref.finalize(self, _close, self._queue)
        self._asked: deque[Position] = deque()

    def at(self, at: Position) -> Any:
        """Computes the batch at a position, which must exist, as the model receives it, also in an epoch begun with another batch size.
        Raises `DataError` for a record that cannot be read."""
        with self._lock:
            follows = self._last == at._replace(step=at.step - 1)
            if self._last is None or self._last.epoch != at.epoch:
                self._executor.records.reader.check()
            self._last = at
            with suppress(Exception):  # of a batch that was started ahead in vain; the queue is empty after one
                for _ in range(self._asked.index(at) if at in self._asked else len(self._asked)):
                    self._take()
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

    def _take(self) -> Any:
        at = self._asked.popleft()
        try:
            return next(self._batches)[2]
        except tf.errors.OpError as error:
            self._close()
            self._start()  # the rest of the failed batch would be taken for the next one
            raise explain_failure(self._executor, error, at) from None


def _close(queue: tf.queue.QueueBase) -> None:
    """Closes a queue eagerly, even if Python collects garbage while a graph is traced."""
    with tf.init_scope():
        queue.close()


class Augmented(DerivedDataset):
    """Batches for `model.predict`: the views of an example are consecutive rows, examples in the order of their split.

    Attributes:
        views: Number of views of each example.
    """

    def __init__(self, inner: tf.data.Dataset, source: PipelineDataset, views: int) -> None:
        self.views = views
        super().__init__(inner, source, source.cardinality())

    def __repr__(self) -> str:
        return f"<{int(self.cardinality())} batches of {self.views} views of each example: {self.element_spec}>"


def together(views: Sequence[PipelineDataset]) -> Augmented:
    """Interleaves views, so that those of one example are consecutive. Raises `ValueError` if the shapes of views differ."""
    first = views[0].element_spec
    for number, other in enumerate(views[1:], 1):
        if other.element_spec != first:
            raise ValueError(f"view {number} has {other.element_spec}, but the first one {first}: rows of a batch have one shape")

    rows = partial(tf.nest.map_structure, _interleave)
    joined = tf.data.Dataset.zip(tuple(views)).map(rows, num_parallel_calls=1, deterministic=True).prefetch(1)
    return Augmented(joined, views[0], len(views))


def _interleave(*parts: tf.Tensor) -> tf.Tensor:
    """Interleaves the rows of several dense or ragged tensors."""
    if isinstance(parts[0], tf.RaggedTensor):
        n = parts[0].nrows()
        order = tf.reshape(tf.transpose(tf.reshape(tf.range(n * len(parts)), [len(parts), n])), [-1])
        return tf.gather(tf.concat(parts, 0), order)
    stacked = tf.stack(parts, 1)
    rows = None if parts[0].shape[0] is None else parts[0].shape[0] * len(parts)
    done = tf.reshape(stacked, tf.concat([[-1], tf.shape(stacked)[2:]], 0))
    done.set_shape([rows, *parts[0].shape[1:]])
    return done
