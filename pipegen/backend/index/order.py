"""From steps to records: the order of an epoch as a function of position, so that nothing is buffered and any step can
be started at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from pipegen.backend.index.draws import keys, permute
from pipegen.physical.extent import Extent

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.backend.reading.sampled import Sampled

STAND_INS = 8
"""Slots whose examples stand in for one another: as many, whatever batches and shares are, so that the same one does everywhere."""
_WHOLE = -1
"""Stands in the place of a window's number in the key of the order of the blocks: no split has 2^32 windows."""


class From(NamedTuple):
    """Says where an epoch is counted from that was begun with batches of another size; a slot of it is counted from step 0 of this one's.

    Attributes:
        origin: The slot that step 0 begins at, so that slots form the groups that they formed before: int64 scalar.
        shift: Where an epoch has a number of steps, how much later in the order it stands than without such a change: int64 scalar.
    """

    origin: tf.Tensor | int
    shift: tf.Tensor | int


START = From(0, 0)
"""Every epoch had batches of this size."""


class Found(NamedTuple):
    """The examples at some slots, `(n,)` each.

    Attributes:
        record: Their records, int64.
        cycle: The cycles through the data that they are of, int64.
        occurrence: How often each has stood in its cycle before, int64, where an epoch is sampled; else none has.
    """

    record: tf.Tensor
    cycle: tf.Tensor
    occurrence: tf.Tensor | None = None


@dataclass(frozen=True, eq=False)
class Order(Extent):
    """The order of one split on one host.

    Attributes:
        kind: `stored`, `global` or `window`.
        window: Examples in a window.
        seed: The spec's seed.
        blocks: For examples that lie many in a file: the first one of each file, int64 `(blocks + 1,)` with the end. `window` is then an
            order in two levels: the blocks are permuted whole, and windows of what stands there one after another are permuted within.
    """

    kind: str
    window: int
    seed: int
    blocks: tf.Tensor | None = None
    sampled: Sampled | None = None
    """Of an epoch that has some examples more than once, or not all of them: which one is at each place of it."""
    passes: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]] | None = None
    """Of a part of a mix whose passes are not all of one length: the pass that each of its examples is of, and its place there."""

    def positions(self, epoch: tf.Tensor, step: tf.Tensor, since: From = START) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The positions of this host's block of one global batch, as `at` says them; `epoch` and `step` are int64 scalars."""
        return self.at(epoch, self.slots_of(step, since, epoch), since)

    def slots_of(self, step: tf.Tensor, since: From = START, epoch: tf.Tensor | int = 0) -> tf.Tensor:
        """The slots of this host's block of the global batch of a step: int64 `(n,)`. The epoch matters where batches are of buckets."""
        low, high = self.block(step, since, epoch)
        return self.first_slot(step, epoch) + tf.range(low, high, dtype=tf.int64)

    def first_slot(self, step: tf.Tensor, epoch: tf.Tensor | int = 0) -> tf.Tensor:
        """The slot of the first row of the global batch of a step, int64 like `step`; the epoch matters where batches are of buckets."""
        return step * self.batch

    def steps_of(self, since: From = START) -> tf.Tensor:
        """The steps of an epoch, int64 scalar: see `steps_from`."""
        if self.epoch_steps is not None:
            return tf.constant(self.epoch_steps, tf.int64)
        left = tf.maximum(tf.constant(self.num_examples, tf.int64) - since.origin, 0)
        return (left if self.remainder == "drop" else left + (self.batch - 1)) // self.batch

    def ends_of(self, since: From = START) -> tf.Tensor:
        """One past the last slot of an epoch's steps, on all hosts: int64 scalar."""
        return tf.constant(self.num_examples, tf.int64) - since.origin if self.ends_short else self.steps_of(since) * self.batch

    def block(self, step: tf.Tensor, since: From = START, epoch: tf.Tensor | int = 0) -> tuple[tf.Tensor, tf.Tensor]:
        """The rows of a global batch that this host takes: the first, and one past the last, like `step`."""
        index, count = self.shard
        here = self._rows(step, since, epoch)
        return here * index // count, here * (index + 1) // count

    def _rows(self, step: tf.Tensor, since: From, epoch: tf.Tensor | int) -> tf.Tensor:
        """The rows of a global batch, like `step`; one of a step behind the end of the epoch."""
        here = tf.fill(tf.shape(step), tf.constant(self.batch, tf.int64))
        if self.ends_short:
            here = tf.maximum(tf.minimum(here, self.num_examples - since.origin - step * self.batch), 1)
        return here

    def at(self, epoch: tf.Tensor, slot: tf.Tensor, since: From = START) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The cycle through the data, the position in it, both int64, and the weight, float32, of each slot of an epoch.

        Args:
            epoch: int64 scalar, or like `slot`.
            slot: int64: the step times the global batch, plus the row.
            since: Where steps are counted from.
        """
        if self.epoch_steps is not None:
            absolute = self._absolute(epoch, slot, since)
            return absolute // self.num_examples, absolute % self.num_examples, tf.ones_like(absolute, tf.float32)
        slot = slot + since.origin
        weight = tf.cast(slot < self.num_examples, tf.float32)
        return tf.zeros_like(slot) + epoch, slot % self.num_examples, weight

    def _absolute(self, epoch: tf.Tensor, slot: tf.Tensor, since: From) -> tf.Tensor:
        """Finds where slots stand in the order of all epochs, which goes on from one to the next: int64, like `slot`."""
        (first, before), examples = self.begin, (self.epoch_steps or 0) * self.batch
        moved = before - first * examples
        return epoch * examples + (slot + moved if moved else slot) + since.shift

    def member(self, slot: tf.Tensor, since: From = START) -> tf.Tensor:
        """Tells which slots are in a mix group; what `pad` adds behind them mixes with nothing: bool, like `slot`."""
        end = self.steps_of(since) * self.batch if self.epoch_steps is not None else self.num_examples - since.origin
        return slot < end

    def bucket_of(self, slot: tf.Tensor) -> tf.Tensor:
        """The bucket of each slot, of which there are several where batches are of buckets: int32, like `slot`."""
        return tf.zeros_like(slot, tf.int32)

    def every_slot(self) -> tf.Tensor:
        """The slots of an epoch that form mix groups, rising: int64 `(n,)`."""
        return tf.range(self.grouped, dtype=tf.int64)

    def delivered(self, epoch: int) -> tf.Tensor:
        """The slots of an epoch that are handed over, on all hosts, in that order: int64 `(n,)`; what pads a batch is left out."""
        return tf.range(min(self.slots, self.grouped), dtype=tf.int64)

    def step_at(self, epoch: int, slots: tf.Tensor) -> tf.Tensor:
        """The step of an epoch that each slot is of: int64 `(n,)`."""
        return slots // self.batch

    def found(self, epoch: int | tf.Tensor, slot: tf.Tensor, since: From = START) -> Found:
        """The examples at slots of an epoch, int64 `(n,)`."""
        cycle, position, _ = self.at(tf.convert_to_tensor(epoch, tf.int64), slot, since)
        return self.visits(cycle, position)

    def visits(self, cycle: tf.Tensor, position: tf.Tensor, *, jit: bool = False, laid: tuple[tf.Tensor, ...] = ()) -> Found:
        """The examples at positions of cycles, int64 `(n,)` each; for the other arguments see `records`."""
        place = self.records(cycle, position, jit=jit, laid=laid)
        if self.sampled is None:
            return Found(place, cycle)
        record, occurrence = self.sampled.visit(cycle, place, jit=jit)
        return Found(record, cycle, occurrence)

    def alternates(self, epoch: tf.Tensor, slot: tf.Tensor, count: int, since: From = START) -> Found:
        """The `count` examples that may take the place of a damaged one: those behind it among `STAND_INS` that stand together in the
        order, whichever batches and shares they are in.

        `epoch` and `slot` are int64 scalars.
        """
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

    def records(self, cycle: tf.Tensor, position: tf.Tensor, *, jit: bool = False, laid: tuple[tf.Tensor, ...] = ()) -> tf.Tensor:
        """The record at each position of a cycle, or where it is sampled the place in it: int64 `(n,)` each, and so is the result.

        `jit` lets XLA compile the cipher. `laid` is what `laid` gives for the epoch that these are of, and else worked out again.
        """
        if self.kind == "stored" or self.num_examples == 1:
            return position
        key, size = keys(self.seed, jit=jit), self.window
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
            laid, place = self._lay(self.blocks, cycles, jit), place + which * self.num_examples
        starts, begins = laid
        at = tf.searchsorted(begins, place, side="right") - 1  # of empty blocks, none
        return tf.gather(starts, at) + place - tf.gather(begins, at)

    def laid(self, epoch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns what `records` of an epoch's steps have in common, worked out once: where the order has two levels, a step then takes the
        logarithm of the number of the blocks.

        Returns:
            Of the global order its key, uint32 `(3,)`; of blocks the first example of each and the place where it begins, in their order,
            int64 `(blocks,)`. Nothing of other orders, or where an epoch is not one cycle.
        """
        if self.epoch_steps is not None:
            return ()
        if self.kind == "global":
            return (keys(self.seed)(epoch[None], tf.zeros([1], tf.int64))[0],)
        if self.blocks is None or self.kind != "window":
            return ()
        return self._lay(self.blocks, epoch[None], False)

    def _lay(self, blocks: tf.Tensor, cycles: tf.Tensor, jit: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """The first example of each block and where it begins, one cycle behind the other: int64 `(cycles * blocks,)`."""
        count = tf.size(blocks, tf.int64) - 1
        key = keys(self.seed, jit=jit)(cycles, tf.zeros_like(cycles) + _WHOLE)
        order = permute(tf.range(tf.size(cycles, tf.int64) * count) % count, tf.repeat(key, count, axis=0), count - 1)
        starts = tf.gather(blocks, order)
        return starts, tf.cumsum(tf.gather(blocks, order + 1) - starts, exclusive=True)


def window_size(window_bytes: int | None, mean_bytes: float) -> int:
    """Examples in a window of so many bytes of stored records."""
    return max(1, int((window_bytes or 0) / max(mean_bytes, 1.0)))
