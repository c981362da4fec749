"""The training position as variables of the graph: the four numbers of a `Position`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pipegen.backend.index.order import From, Order
from pipegen.backend.process.devices import variable
from pipegen.backend.process.traced_functions import plain, plain_map
from pipegen.errors import StateError
from pipegen.physical.extent import Position
from pipegen.spec.models import ALWAYS, Stretch


def entering(position: Callable[[], tf.Tensor], *, endless: bool = False) -> tf.data.Dataset:
    """One start position, or endless ones, each read when it is asked for: epoch, first step, and `(origin, shift)`.

    `position` returns its four numbers, int64 `(4,)`.
    """

    def read(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        at = position()
        return at[0], at[1], at[2:]

    once = tf.data.Dataset.from_tensors(0)
    return plain_map(once.repeat() if endless else once, read)


class Progress:
    """The position in the training split: the epoch that the next iterator starts, and the last batch handed over.

    An iterator starts the first epoch whose last batch has not been delivered. The variables live in the graph, so
    this holds for iterators that Python never sees. Stages of a training share the position of the `whole`, which has no order.
    """

    def __init__(self, order: Order | None, stretch: Stretch = ALWAYS, whole: Progress | None = None) -> None:
        self.order = order
        self.stretch = stretch
        self.start: Any = variable([0, 0, 0, 0], tf.int64, "pipegen_start") if whole is None else whole.start
        self.delivered: Any = variable([0, 0, 0, 0], tf.int64, "pipegen_delivered") if whole is None else whole.delivered

    def seek(self, at: Position) -> None:
        """Starts the next iterator at a position."""
        at = at if self.order is None else self.order.settled(at)
        self.start.assign(at)
        self.delivered.assign(at)

    def note(self, at: Position) -> None:
        """Moves past the batch at a position."""
        follows = self._order.after(at)
        if follows.epoch > at.epoch:
            self.seek(follows)
        else:
            self.delivered.assign(follows)

    def position(self) -> Position:
        """Returns the position of the next batch."""
        # While one iterator ended the epoch, another may have noted a batch of it.
        return max(_read(noted) for noted in (self.delivered, self.start))

    def next_start(self) -> Position:
        """Returns the position that the next iterator starts at."""
        at = _read(self.start)
        return at if at.epoch >= self.stretch.first else at.begin(self.stretch.first)

    @property
    def _order(self) -> Order:
        assert self.order is not None  # noqa: S101 - each stage counts its own batches
        return self.order

    def check(self) -> None:
        """Checks that an epoch is left for the next iterator. Raises `StateError` if the stage is over."""
        end = self.stretch.end
        if end is not None and (epoch := self.next_start().epoch) >= end:
            raise StateError(
                f"this stage ends before epoch {end}, but the training is at epoch {epoch}: continue with the next stage, or restart this "
                f"one with `pipe.seek({self.stretch.first})`"
            )

    def head(self) -> tf.data.Dataset:
        """One element, read when an iterator starts: epoch, first step, and `(origin, shift)`; empty if no epoch is left."""
        first, end, _ = self.stretch

        def start() -> tf.Tensor:
            at = self.start.read_value()
            return tf.where(at[0] < first, tf.stack([tf.constant(first, tf.int64), 0, 0, at[3]]), at) if first else at

        found = entering(start)
        return found if end is None else found.filter(plain(lambda epoch, *_: epoch < end))

    def deliver(self, epoch: tf.Tensor, step: tf.Tensor, batch: Any) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Moves past a batch, in the graph; after the last one of an epoch, the next iterator starts the next epoch."""
        begun, _, origin, shift = tf.unstack(self.start.read_value())
        origin, zero = tf.where(epoch == begun, origin, 0), tf.zeros_like(step)
        last = tf.equal(step, self._order.steps_of(From(origin, shift)) - 1)
        follows = tf.where(last, tf.stack([epoch + 1, zero, zero, shift]), tf.stack([epoch, step + 1, origin, shift]))
        # An iterator in an epoch that another one has ended must not move the position back.
        current = epoch >= begun
        with tf.control_dependencies([_assign_where(current, self.delivered, follows)]):
            noted = _assign_where(current & last, self.start, follows)
        with tf.control_dependencies([noted]):
            return epoch, step, tf.nest.map_structure(tf.identity, batch)


def _read(noted: Any) -> Position:
    return Position(*(int(number) for number in noted.numpy()))


def _assign_where(condition: tf.Tensor, position: Any, value: tf.Tensor) -> tf.Operation:
    """Assigns to a variable `(4,)` if a condition holds. A branch would add two functions to every graph."""
    rows = tf.where(tf.fill([4], condition))
    return tf.raw_ops.ResourceScatterNdUpdate(ref=position.handle, indices=rows, updates=tf.gather_nd(value, rows))
