"""Keeps the position in the training split, as variables of the graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain_map
from pipegen.backend.process.variables import variable


class Progress:
    """Keeps the position in the training split: which epoch an iterator starts, and what has been handed over.

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

    def note(self, epoch: int, step: int) -> None:
        """Notes in Python that a batch is handed over."""
        if step == self.steps - 1:
            self.seek(epoch + 1, 0)
        else:
            self.delivered.assign([epoch, step + 1])

    def position(self) -> tuple[int, int]:
        """The epoch and the step that come next."""
        # While one iterator ended the epoch, another one may have noted a batch of it.
        epoch, step = max(tuple(int(v) for v in noted.numpy()) for noted in (self.delivered, self.start))
        return epoch, step

    def next_start(self) -> tuple[int, int]:
        """Returns the epoch and the step that the next iterator starts with."""
        epoch, step = (int(v) for v in self.start.numpy())
        return epoch, step

    def head(self) -> tf.data.Dataset:
        """One element, read when an iterator starts: the epoch and its first step."""
        return plain_map(tf.data.Dataset.from_tensors(0), lambda _: tuple(tf.unstack(self.start.read_value())))

    def deliver(self, epoch: tf.Tensor, step: tf.Tensor, batch: Any) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Note that a batch is handed over; the last one of an epoch lets the next iterator start the next epoch."""
        last = tf.equal(step, self.steps - 1)
        follows = tf.where(last, tf.stack([epoch + 1, tf.zeros_like(step)]), tf.stack([epoch, step + 1]))

        def note() -> tf.Operation:
            with tf.control_dependencies([self.delivered.assign(follows, read_value=False)]):
                return tf.cond(last, lambda: tf.group(self.start.assign(follows, read_value=False)), tf.no_op)

        # An iterator that lags behind, in an epoch that another one has ended, moves nothing back.
        noted = tf.cond(epoch >= self.start.read_value()[0], lambda: tf.group(note()), tf.no_op)
        with tf.control_dependencies([noted] if noted is not None else []):
            return epoch, step, tf.nest.map_structure(tf.identity, batch)
