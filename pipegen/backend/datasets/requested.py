"""Single batches, whichever are asked for: one dataset and one iterator serve them all."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain_map
from pipegen.physical.nodes import REQUESTED
from pipegen.physical.position import Position

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
        batches = self._executor.batches(steps, REQUESTED)
        self.element_spec = batches.element_spec[2]
        """The shapes and dtypes of a batch."""
        self._batches = iter(self._executor.delivered(batches, REQUESTED))
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
            raise self._executor.explain(error, at) from None


def _close(queue: tf.queue.QueueBase) -> None:
    """Close a queue now, even where Python collects garbage while a graph is traced."""
    with tf.init_scope():
        queue.close()
