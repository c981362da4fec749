"""Records and occurrences at the slots of a sampled epoch, for a whole batch at once: functions of slot and epoch only."""

from __future__ import annotations

import tensorflow as tf

from pipegen.backend.features import last_begun
from pipegen.backend.index.draws import permuted
from pipegen.backend.reading.manifest_columns import Column
from pipegen.data.sampling import GOLDEN, UNIT, Easiest, Epochs, Paced, Repeats

_WITHIN = -2
_EASIEST = -3  # in place of a window's number in the keys of the orders within groups, and of the easiest examples


class RepeatTensors:
    """`Repeats` in the graph."""

    def __init__(self, repeats: Repeats) -> None:
        self.size = repeats.size
        self._seed, self._phase = repeats.seed, repeats.phase
        self._bounds, others = Column(repeats.bounds), (repeats.sizes, repeats.firsts, repeats.members)
        self._sizes, self._firsts, self._members = (None if column is None else Column(column) for column in others)

    def visit(self, epoch: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the records at slots of epochs, and their earlier occurrences in the epoch: int64 `(n,)`, as are the arguments."""
        phase = tf.bitwise.bitwise_and(self._phase + epoch * GOLDEN, UNIT - 1)
        group = self._bounds.search(slot * UNIT + phase)
        start = self._bounds(group)
        rank = slot - (start - phase + UNIT - 1) // UNIT
        if self._sizes is None or self._firsts is None:
            return group, rank
        size = self._sizes(group)
        length = self._bounds(group + 1) - start
        walked = epoch * (length // UNIT) + epoch * (length % UNIT) // UNIT  # `epoch * length / UNIT`, in parts that fit 63 bits
        place = (rank + walked) % size
        member = self._firsts(group) + permuted(place, self._seed, group, _WITHIN, size - 1)
        return (member if self._members is None else tf.cast(self._members(member), tf.int64)), rank // size


class EasiestTensors:
    """`Easiest` in the graph."""

    def __init__(self, easiest: Easiest) -> None:
        self.size = easiest.size
        self._seed, self._counts = easiest.seed, tf.constant(easiest.counts)
        self._members = Column(easiest.members)

    def visit(self, epoch: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the records at slots of epochs, and their earlier occurrences in the epoch: int64 `(n,)`, as are the arguments."""
        last = tf.size(self._counts, tf.int64) - 1
        count = tf.gather(self._counts, tf.minimum(epoch, last))
        place = permuted(slot % count, self._seed, epoch, _EASIEST, count - 1)
        return tf.cast(self._members(place), tf.int64), slot // count


class PacedTensors:
    """`Paced` in the graph."""

    def __init__(self, paced: Paced) -> None:
        self.size = paced.size
        self._seed = paced.seed
        self._begins, self._counts, self._passes = (tf.constant(numbers) for numbers in (paced.begins, paced.counts, paced.passes))
        self._members = Column(paced.members)

    def found(self, place: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the pass of each example of the part, counted from epoch 0, and its place in the pass: int64, like `place`."""
        stretch = last_begun(self._begins, place)
        count, done = tf.gather(self._counts, stretch), place - tf.gather(self._begins, stretch)
        return tf.gather(self._passes, stretch) + done // count, done % count

    def visit(self, cycle: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the records at places of passes; a pass has each record at most once: int64 `(n,)`, as are the arguments."""
        count = tf.gather(self._counts, last_begun(self._passes, cycle))
        place = permuted(slot, self._seed, cycle, _EASIEST, count - 1)
        return tf.cast(self._members(place), tf.int64), tf.zeros_like(slot)


Sampled = RepeatTensors | EasiestTensors | PacedTensors


def sampled(epochs: Epochs | Paced) -> Sampled:
    """Converts sampled epochs, or the passes through a part of a mix, to tensors."""
    if isinstance(epochs, Repeats):
        return RepeatTensors(epochs)
    return EasiestTensors(epochs) if isinstance(epochs, Easiest) else PacedTensors(epochs)
