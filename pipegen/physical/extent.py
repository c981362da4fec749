"""`Extent`, the length of an epoch and this host's part of each batch; `Position`, a place between two batches."""

from __future__ import annotations

import math
from dataclasses import field
from itertools import accumulate
from typing import NamedTuple

from pipegen.frozen import dataclass
from pipegen.ops.families.combining import GROUP
from pipegen.spec.models import Remainder


class Position(NamedTuple):
    """A place between two batches.

    A slot of an epoch is a place in its order. With batches of one size, step `k` begins at slot `k` times that size; in an
    epoch that was begun with another size, at `origin` more. The next epoch begins at slot 0 again."""

    epoch: int  # the epoch
    step: int = 0  # its step
    origin: int = 0
    """The slot that step 0 begins at, or would: less than a batch. With `epoch: {steps: N}`, whose epochs have N steps of any size, it may
    be any number."""
    shift: int = 0
    """With `epoch: {steps: N}`, which continues through the order: how many places later a batch is than if all batches before it had had
    this size. It is the same for all later epochs."""

    def begin(self, epoch: int) -> Position:
        """The begin of another epoch."""
        return Position(epoch, 0, 0, self.shift)


FIRST = Position(0)  # the begin of a training


@dataclass(frozen=True)
class Extent:
    """The epochs of one split on one host."""

    num_examples: int  # examples in the split
    batch: int  # examples in a global batch
    remainder: Remainder  # the treatment of an incomplete last batch
    shard: tuple[int, int]  # this host's share of each global batch, and the number of shares
    epoch_steps: int | None  # steps in an epoch that continues through the permutation, or `None` for one cycle: every example once
    begin: tuple[int, int] = field(default=(0, 0), kw_only=True)
    """With `epoch_steps`, an epoch, and the number of examples of all epochs before it, whose batches may have differed."""
    anywhere: bool = field(default=False, kw_only=True)
    """Whether an epoch may have begun with batches of another size, so that its blocks have any offset to the combined groups. The slot of
    step 0 is then given at run time: see `Order`."""
    buckets: tuple[int, ...] = field(default=(), kw_only=True)
    """With buckets, the examples of each. A cycle has the full batches of every bucket, and with `keep` and `pad` the last one, too. With
    `epoch_steps`, a cycle leaves out examples that fill no batch. Such epochs end with batches of the size that they were begun with."""

    @property
    def bucket_steps(self) -> tuple[int, ...]:
        """Batches of each bucket in a cycle."""
        drops = self.remainder == "drop" or self.epoch_steps is not None
        return tuple(n // self.batch if drops else -(-n // self.batch) for n in self.buckets)

    @property
    def bucket_starts(self) -> tuple[int, ...]:
        """The first slot of each bucket in a cycle, and the end: each has room for its examples and batches, in whole combined groups."""
        room = (max(n, steps * self.batch) for n, steps in zip(self.buckets, self.bucket_steps, strict=True))
        return (0, *accumulate(-(-slots // GROUP) * GROUP for slots in room))

    @property
    def steps(self) -> int:
        """Steps in an epoch; the same on every host."""
        return self.steps_from(0)

    def steps_from(self, origin: int) -> int:
        """The steps of an epoch whose step 0 begins at slot `origin`; the same on every host."""
        if self.epoch_steps is not None:
            return self.epoch_steps
        if self.buckets:
            return sum(self.bucket_steps)
        left = max(self.num_examples - origin, 0)
        return left // self.batch if self.remainder == "drop" else math.ceil(left / self.batch)

    def settled(self, at: Position) -> Position:
        """The position itself, or after the last step of an epoch the begin of the next one."""
        return at.begin(at.epoch + 1) if at.step >= self.steps_from(at.origin) and self.steps else at

    def after(self, at: Position) -> Position:
        """The position after the batch at `at`."""
        return self.settled(at._replace(step=at.step + 1))

    def slot(self, at: Position) -> int:
        """The slot that a position is before."""
        return at.origin + at.step * self.batch

    def before(self, at: Position) -> int:
        """The number of examples of all epochs before that of `at`, with `epoch_steps`."""
        (first, before), examples = self.begin, (self.epoch_steps or 0) * self.batch
        return before + (at.epoch - first) * examples + at.shift - at.origin

    def position(self, epoch: int, step: int, slot: int, before: int) -> Position:
        """The position of a slot of an epoch, for batches of this size.

        With `epoch_steps`, the step is kept, and `before` counts the examples of all epochs before.
        """
        if self.epoch_steps is None:
            step, origin = divmod(slot, self.batch)
            return self.settled(Position(epoch, step, origin))
        at = Position(epoch, step, slot - step * self.batch)
        return self.settled(at._replace(shift=before - self.before(at)))

    def counted(self, epoch: int, step: int, origin: int, shift: int) -> Position:
        """The position of a step that is counted from slot `origin` of its epoch. Raises `ValueError` for an origin or a shift that these
        epochs cannot have."""
        if self.epoch_steps is not None:
            return Position(epoch, step, origin, shift)
        if origin < 0 or shift:
            raise ValueError(f"every epoch of this split has a new order: `origin` >= 0, `shift` = 0; got {origin} and {shift}")
        return Position(epoch, step + origin // self.batch, origin % self.batch)

    def missing(self, at: Position) -> int:
        """How many steps fewer its epoch has than others."""
        return self.steps - self.steps_from(at.origin)

    @property
    def local_batch(self) -> int:
        """Examples of a full batch on this host."""
        index, count = self.shard
        return self.batch * (index + 1) // count - self.batch * index // count

    @property
    def ends_short(self) -> bool:
        """Whether the last batch may be smaller than the others."""
        return self.remainder == "keep" and self.epoch_steps is None

    @property
    def pads(self) -> bool:
        """Whether the last batch may be padded with examples of weight 0."""
        return self.remainder == "pad" and self.epoch_steps is None

    @property
    def slots(self) -> int:
        """The number of examples in all steps of an epoch, on all hosts."""
        return self.num_examples if self.ends_short else self.steps * self.batch

    @property
    def grouped(self) -> int:
        """The number of slots in combined groups; padding after them is not combined."""
        return self.num_examples if self.epoch_steps is None else self.epoch_steps * self.batch

    @property
    def widened(self) -> int | None:
        """The rows of a block widened to whole combined groups, equal for every step; `None` if blocks are whole groups already."""
        if self.anywhere:
            return -(-(self.local_batch + GROUP - 1) // GROUP) * GROUP
        found, whole = [], True
        of = zip(self.bucket_steps, self.buckets, self.buckets, strict=True) if self.buckets else [(self.steps, self.grouped, None)]
        for steps, end, examples in of:
            # The offsets of blocks to groups repeat after at most `GROUP` steps; the last block can be smaller.
            known = {*range(min(steps, GROUP)), max(steps - 1, 0)}
            blocks = [self._block(step, self.num_examples if examples is None else examples) for step in known if step < steps]
            whole &= all(first % GROUP == 0 and (last % GROUP == 0 or last >= end) for first, last in blocks)
            found += [-(-last // GROUP) * GROUP - first // GROUP * GROUP for first, last in blocks]
        return None if whole else max(found)

    def _block(self, step: int, examples: int) -> tuple[int, int]:
        """The first slot of this host's block, and one past the last; `examples` is their number in the epoch."""
        index, count = self.shard
        here = min(self.batch, examples - step * self.batch) if self.ends_short else self.batch
        return step * self.batch + here * index // count, step * self.batch + here * (index + 1) // count
