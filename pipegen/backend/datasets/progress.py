"""Keeps the position in the training split, as variables of the graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain, plain_map
from pipegen.backend.process.variables import variable
from pipegen.errors import StateError
from pipegen.spec.models import ALWAYS, Stretch


class Progress:
    """Keeps the position in the training split: which epoch an iterator starts, and what has been handed over.

    An iterator starts the first epoch whose last batch has not been delivered. The variables live in the graph, so
    this holds for iterators that Python never sees.

    Args:
        steps: Batches in an epoch.
        stretch: The epochs that there are: of a stage of training, its own.
        whole: The position of the whole training, for one of its stages; it is this one's, too.
    """

    def __init__(self, steps: int, stretch: Stretch = ALWAYS, whole: Progress | None = None) -> None:
        self.steps = steps
        self.stretch = stretch
        self.start: Any = variable([0, 0], tf.int64, "pipegen_start") if whole is None else whole.start
        self.delivered: Any = variable([0, 0], tf.int64, "pipegen_delivered") if whole is None else whole.delivered

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
        return max((epoch, step), (self.stretch.first, 0))

    def check(self) -> None:
        """Checks that there is an epoch for the next iterator.

        Raises:
            StateError: When the stage is over.
        """
        epoch, end = self.next_start()[0], self.stretch.end
        if end is not None and epoch >= end:
            raise StateError(
                f"this stage ends before epoch {end}, and the training is at epoch {epoch}: go on with the next stage, or with "
                f"`pipe.seek({self.stretch.first})` begin this one again"
            )

    def head(self) -> tf.data.Dataset:
        """One element, read when an iterator starts: the epoch and its first step; none once the stage is over."""
        first, end, _ = self.stretch

        def start(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            epoch, step = tf.unstack(self.start.read_value())
            if not first:
                return epoch, step
            early = epoch < first
            return tf.where(early, tf.constant(first, tf.int64), epoch), tf.where(early, tf.zeros_like(step), step)

        found = plain_map(tf.data.Dataset.from_tensors(0), start)
        return found if end is None else found.filter(plain(lambda epoch, _: epoch < end))

    def deliver(self, epoch: tf.Tensor, step: tf.Tensor, batch: Any) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Note that a batch is handed over; the last one of an epoch lets the next iterator start the next epoch."""
        last = tf.equal(step, self.steps - 1)
        follows = tf.where(last, tf.stack([epoch + 1, tf.zeros_like(step)]), tf.stack([epoch, step + 1]))
        # An iterator that lags behind, in an epoch that another one has ended, moves nothing back.
        current = epoch >= self.start.read_value()[0]
        with tf.control_dependencies([_assign_where(current, self.delivered, follows)]):
            noted = _assign_where(current & last, self.start, follows)
        with tf.control_dependencies([noted]):
            return epoch, step, tf.nest.map_structure(tf.identity, batch)


def _assign_where(condition: tf.Tensor, position: Any, value: tf.Tensor) -> tf.Operation:
    """Assigns to a variable `(2,)`, or to no row of it: a branch would be two functions more in every graph."""
    rows = tf.where(tf.stack([condition, condition]))
    return tf.raw_ops.ResourceScatterNdUpdate(ref=position.handle, indices=rows, updates=tf.gather_nd(value, rows))
