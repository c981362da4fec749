"""From steps to records: the order of an epoch as a function of position, so that nothing is buffered and any step can start at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from pipegen.backend.index.draws import keys, permute
from pipegen.frozen import dataclass
from pipegen.ops.families.combining import GROUP
from pipegen.physical.extent import Extent

if TYPE_CHECKING:
    from pipegen.backend.reading.sampled import Sampled

STAND_INS = 8
"""Slots of a group whose examples may replace each other. It does not depend on batches and shares, so replacements do not, either."""
_WHOLE = -1  # in place of a window's number in the key of the order of the blocks: no split has 2^32 windows


class From(NamedTuple):
    """The start of an epoch that was begun with another batch size; its slots are counted from step 0 of this size."""

    origin: tf.Tensor | int  # the slot of step 0, which keeps the groups of combined examples: int64 scalar
    shift: tf.Tensor | int
    """With a fixed number of steps an epoch: slots that the order is ahead of one without such a change, int64 scalar."""


START = From(0, 0)  # the start of epochs that all had this batch size


class Found(NamedTuple):
    """The examples at some slots, `(n,)` each."""

    record: tf.Tensor  # their records, int64
    cycle: tf.Tensor  # their cycles through the data, int64
    occurrence: tf.Tensor | None = None  # the number of earlier occurrences in the cycle, int64, if an epoch is sampled; else `None`


@dataclass(frozen=True, eq=False)
class Order(Extent):
    """The order of one split on one host."""

    kind: str  # `stored`, `global` or `window`
    window: int  # examples in a window
    seed: int  # the spec's seed
    blocks: tf.Tensor | None = None
    """For many examples in a file: the first one of each file, int64 `(blocks + 1,)` with the end. `window` is then an order in two levels:
    whole blocks are permuted, and then examples within windows of the result."""
    sampled: Sampled | None = None  # the example at each place of an epoch that has some examples more than once, or not all of them
    passes: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]] | None = None
    """From examples of a part of a mix, counted over all passes, to their pass and their place in it, if passes differ in length."""

    def slots_of(self, step: tf.Tensor, since: From = START, epoch: tf.Tensor | int = 0) -> tf.Tensor:
        """Returns the slots of this host's block of the global batch of a step: int64 `(n,)`. The epoch matters for buckets."""
        low, high = self.block(step, since, epoch)
        return self.first_slot(step, epoch) + tf.range(low, high, dtype=tf.int64)

    def first_slot(self, step: tf.Tensor, epoch: tf.Tensor | int = 0) -> tf.Tensor:
        """Returns the slot of the first row of the global batch of a step, int64 like `step`; the epoch matters for buckets."""
        return step * self.batch

    def steps_of(self, since: From = START) -> tf.Tensor:
        """Returns the steps of an epoch, int64 scalar: see `steps_from`."""
        if self.epoch_steps is not None:
            return tf.constant(self.epoch_steps, tf.int64)
        left = tf.maximum(tf.constant(self.num_examples, tf.int64) - since.origin, 0)
        return (left if self.remainder == "drop" else left + (self.batch - 1)) // self.batch

    def block(self, step: tf.Tensor, since: From = START, epoch: tf.Tensor | int = 0) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns this host's rows of a global batch: the first, and one past the last, like `step`."""
        index, count = self.shard
        here = self._rows(step, since, epoch)
        return here * index // count, here * (index + 1) // count

    def _rows(self, step: tf.Tensor, since: From, epoch: tf.Tensor | int) -> tf.Tensor:
        """Returns the number of rows of a global batch, like `step`; 1 for a step past the end of the epoch."""
        here = tf.fill(tf.shape(step), tf.constant(self.batch, tf.int64))
        if self.ends_short:
            here = tf.maximum(tf.minimum(here, self.num_examples - since.origin - step * self.batch), 1)
        return here

    def at(self, epoch: tf.Tensor, slot: tf.Tensor, since: From = START) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the cycle through the data, the position in it, both int64, and the weight, float32, of each slot of an epoch.

        `epoch` is an int64 scalar or like `slot`, int64: the step times the global batch, plus the row.
        """
        if self.epoch_steps is not None:
            absolute = self._absolute(epoch, slot, since)
            return absolute // self.num_examples, absolute % self.num_examples, tf.ones_like(absolute, tf.float32)
        slot = slot + since.origin
        weight = tf.cast(slot < self.num_examples, tf.float32)
        return tf.zeros_like(slot) + epoch, slot % self.num_examples, weight

    def _absolute(self, epoch: tf.Tensor, slot: tf.Tensor, since: From) -> tf.Tensor:
        """Returns the positions of slots in the order that runs through all epochs: int64, like `slot`."""
        (first, before), examples = self.begin, (self.epoch_steps or 0) * self.batch
        moved = before - first * examples
        return epoch * examples + (slot + moved if moved else slot) + since.shift

    def member(self, slot: tf.Tensor, since: From = START) -> tf.Tensor:
        """Returns true for slots in a group that combines; the slots that `pad` adds do not: bool, like `slot`."""
        end = self.steps_of(since) * self.batch if self.epoch_steps is not None else self.num_examples - since.origin
        return slot < end

    def group(self, slot: tf.Tensor, since: From = START) -> tf.Tensor:
        """Returns the number of each slot's group: of `GROUP` consecutive positions of the epoch, on whatever host they are. int64, like
        `slot`."""
        return (slot + since.origin) // GROUP

    def bucket_of(self, slot: tf.Tensor) -> tf.Tensor:
        """Returns the bucket of each slot; 0 without buckets: int32, like `slot`."""
        return tf.zeros_like(slot, tf.int32)

    def every_slot(self) -> tf.Tensor:
        """Lists the slots of an epoch that form groups that are combined, ascending: int64 `(n,)`."""
        return tf.range(self.grouped, dtype=tf.int64)

    def delivered(self, epoch: int) -> tf.Tensor:
        """Lists the slots of an epoch that are delivered, on all hosts, in order, without padding: int64 `(n,)`."""
        return tf.range(min(self.slots, self.grouped), dtype=tf.int64)

    def step_at(self, epoch: int, slots: tf.Tensor) -> tf.Tensor:
        """Returns the step of each slot of an epoch: int64 `(n,)`."""
        return slots // self.batch

    def found(self, epoch: int | tf.Tensor, slot: tf.Tensor, since: From = START) -> Found:
        """Finds the examples at slots of an epoch, int64 `(n,)`."""
        cycle, position, _ = self.at(tf.convert_to_tensor(epoch, tf.int64), slot, since)
        return self.visits(cycle, position)

    def visits(self, cycle: tf.Tensor, position: tf.Tensor, *, laid: tuple[tf.Tensor, ...] = ()) -> Found:
        """Finds the examples at positions of cycles, int64 `(n,)` each; for the other arguments see `records`."""
        place = self.records(cycle, position, laid=laid)
        if self.sampled is None:
            return Found(place, cycle)
        record, occurrence = self.sampled.visit(cycle, place)
        return Found(record, cycle, occurrence)

    def alternates(self, epoch: tf.Tensor, slot: tf.Tensor, count: int, since: From = START) -> Found:
        """Finds `count` examples that may replace that of a slot, int64 scalar: the next ones in its group of `STAND_INS`, in any share."""
        behind = 1 + tf.range(count, dtype=tf.int64)
        if self.epoch_steps is not None:
            absolute = self._absolute(epoch, slot, since)
            first = absolute // STAND_INS * STAND_INS
            absolute = first + (absolute - first + behind) % STAND_INS
            return self.visits(absolute // self.num_examples, absolute % self.num_examples)
        position = (slot + since.origin) % self.num_examples
        size = min(STAND_INS, self.num_examples)
        first = tf.minimum(position // STAND_INS * STAND_INS, self.num_examples - size)
        return self.visits(tf.zeros_like(behind) + epoch, first + (position - first + behind) % size)

    def records(self, cycle: tf.Tensor, position: tf.Tensor, *, laid: tuple[tf.Tensor, ...] = ()) -> tf.Tensor:
        """Returns the record at each position of a cycle, or the place in it if it is sampled: int64 `(n,)` each, and so is the result.

        `laid` is the result of `laid` for the epoch; without it, it is computed again.
        """
        if self.kind == "stored" or self.num_examples == 1:
            return position
        key, size = keys(self.seed), self.window
        if self.kind == "global":
            (own,) = laid or (key(cycle, tf.zeros_like(cycle)),)
            return permute(position, own, tf.constant(self.num_examples - 1, tf.int64))
        window = position // size
        first = window * size
        last = tf.minimum(first + size, self.num_examples) - 1
        place = first + permute(position - first, key(cycle, window), last - first)
        if self.blocks is None:
            return place
        if not laid:
            cycles, which = tf.unique(cycle, tf.int64)
            laid, place = self._lay(self.blocks, cycles), place + which * self.num_examples
        starts, begins = laid
        at = tf.searchsorted(begins, place, side="right") - 1  # of empty blocks, none
        return tf.gather(starts, at) + place - tf.gather(begins, at)

    def laid(self, epoch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Computes the tensors that `records` shares among an epoch's steps, so that a step takes the logarithm of the number of blocks.
        Returns for a global order its key, uint32 `(3,)`; for blocks the first example of each and the place where it begins, in their
        order, int64 `(blocks,)`. Empty for other orders, or if an epoch is not one cycle."""
        if self.epoch_steps is not None:
            return ()
        if self.kind == "global":
            return (keys(self.seed)(epoch[None], tf.zeros([1], tf.int64))[0],)
        if self.blocks is None or self.kind != "window":
            return ()
        return self._lay(self.blocks, epoch[None])

    def _lay(self, blocks: tf.Tensor, cycles: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the first example of each block and the place where it begins, cycle by cycle: int64 `(cycles * blocks,)`."""
        count = tf.size(blocks, tf.int64) - 1
        key = keys(self.seed)(cycles, tf.zeros_like(cycles) + _WHOLE)
        order = permute(tf.range(tf.size(cycles, tf.int64) * count) % count, tf.repeat(key, count, axis=0), count - 1)
        starts = tf.gather(blocks, order)
        return starts, tf.cumsum(tf.gather(blocks, order + 1) - starts, exclusive=True)


def window_size(window_bytes: int | None, mean_bytes: float) -> int:
    """Returns the number of examples in a window, given in bytes of stored records."""
    return max(1, int((window_bytes or 0) / max(mean_bytes, 1.0)))
