"""Says how long an epoch is, and which part of each batch is this host's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from pipegen.ops.families.mixing import GROUP

if TYPE_CHECKING:
    from pipegen.spec.models import Remainder


class Position(NamedTuple):
    """A place between two batches.

    A slot of an epoch is a place in its order. Where all batches have been of one size, step `k` begins at slot `k` times that; where the
    epoch was begun with others, at `origin` more. The next epoch begins at slot 0 again.

    Attributes:
        epoch: The epoch.
        step: Its step.
        origin: The slot of the epoch that its step 0 begins at, or would: less than a batch. With `epoch: {steps: N}`, whose epochs are N
            steps whatever their size, it may be any number.
        shift: With `epoch: {steps: N}`, which goes on through the order: how many places later a batch stands there than if all before
            it had been of this size. It stays.
    """

    epoch: int
    step: int = 0
    origin: int = 0
    shift: int = 0

    def begin(self, epoch: int) -> Position:
        """Returns the begin of another epoch."""
        return Position(epoch, 0, 0, self.shift)


FIRST = Position(0)
"""The begin of a training."""


@dataclass(frozen=True)
class Extent:
    """The epochs of one split on one host.

    Attributes:
        num_examples: Examples in the split.
        batch: Examples in a global batch.
        remainder: What happens to a last batch that is not full.
        shard: Which share of each global batch, and of how many.
        epoch_steps: Steps in an epoch that goes on through the permutation, or `None` for one cycle: every example once.
        begin: With `epoch_steps`, an epoch, and how many examples all epochs before it have together: those may have had other batches.
        anywhere: Whether an epoch may have begun with batches of another size, so that the blocks of this one lie anywhere towards the
            groups that mix. Where steps are counted from then is said when it runs: see `Order`.
        buckets: Where each batch is of one bucket: the examples of each. A cycle then has the whole batches of every bucket, and by `keep`
            and `pad` its last one too. With `epoch_steps`, what fills no batch is left out of a cycle. Such epochs end with batches of
            the size that they were begun with.
    """

    num_examples: int
    batch: int
    remainder: Remainder
    shard: tuple[int, int]
    epoch_steps: int | None
    begin: tuple[int, int] = field(default=(0, 0), kw_only=True)
    anywhere: bool = field(default=False, kw_only=True)
    buckets: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def bucket_steps(self) -> tuple[int, ...]:
        """Batches of each bucket in a cycle."""
        drops = self.remainder == "drop" or self.epoch_steps is not None
        return tuple(n // self.batch if drops else -(-n // self.batch) for n in self.buckets)

    @property
    def bucket_starts(self) -> tuple[int, ...]:
        """The first slot of each bucket in a cycle, and the end: each has room for its examples and its batches, in whole mix groups."""
        room = (max(n, steps * self.batch) for n, steps in zip(self.buckets, self.bucket_steps, strict=True))
        return (0, *accumulate(-(-slots // GROUP) * GROUP for slots in room))

    @property
    def steps(self) -> int:
        """Steps in an epoch; the same on every host."""
        return self.steps_from(0)

    def steps_from(self, origin: int) -> int:
        """Counts the steps of an epoch of which step 0 begins at slot `origin`; the same on every host."""
        if self.epoch_steps is not None:
            return self.epoch_steps
        if self.buckets:
            return sum(self.bucket_steps)
        left = max(self.num_examples - origin, 0)
        return left // self.batch if self.remainder == "drop" else math.ceil(left / self.batch)

    def settled(self, at: Position) -> Position:
        """Returns a position, or behind the last step of an epoch the begin of the next one."""
        return at.begin(at.epoch + 1) if at.step >= self.steps_from(at.origin) and self.steps else at

    def after(self, at: Position) -> Position:
        """Returns the position behind the batch at one."""
        return self.settled(at._replace(step=at.step + 1))

    def slot(self, at: Position) -> int:
        """Returns the slot of its epoch that a position stands before."""
        return at.origin + at.step * self.batch

    def before(self, at: Position) -> int:
        """Counts the examples of all epochs before that of a position, where an epoch has a number of steps."""
        (first, before), examples = self.begin, (self.epoch_steps or 0) * self.batch
        return before + (at.epoch - first) * examples + at.shift - at.origin

    def position(self, epoch: int, step: int, slot: int, before: int) -> Position:
        """Returns the position of a slot of an epoch, for batches of this size.

        Args:
            epoch: The epoch.
            step: Its step, which stays what it is where an epoch has a number of steps.
            slot: The slot.
            before: The examples of all epochs before, where an epoch has a number of steps.
        """
        if self.epoch_steps is None:
            step, origin = divmod(slot, self.batch)
            return self.settled(Position(epoch, step, origin))
        at = Position(epoch, step, slot - step * self.batch)
        return self.settled(at._replace(shift=before - self.before(at)))

    def counted(self, epoch: int, step: int, origin: int, shift: int) -> Position:
        """Returns the position of a step that is counted from a slot of its epoch.

        Raises:
            ValueError: For an origin or a shift that no epoch of these has.
        """
        if self.epoch_steps is not None:
            return Position(epoch, step, origin, shift)
        if origin < 0 or shift:
            raise ValueError("each epoch of this split begins with its order, so that `origin` is 0 or more, and there is no `shift`")
        return Position(epoch, step + origin // self.batch, origin % self.batch)

    def missing(self, at: Position) -> int:
        """Returns how many steps fewer its epoch has than others."""
        return self.steps - self.steps_from(at.origin)

    @property
    def local_batch(self) -> int:
        """Examples of a full batch on this host."""
        index, count = self.shard
        return self.batch * (index + 1) // count - self.batch * index // count

    @property
    def ends_short(self) -> bool:
        """Returns whether the last batch may be smaller than the others."""
        return self.remainder == "keep" and self.epoch_steps is None

    @property
    def pads(self) -> bool:
        """Returns whether the last batch may hold examples that weigh nothing."""
        return self.remainder == "pad" and self.epoch_steps is None

    @property
    def slots(self) -> int:
        """Returns how many examples the steps of an epoch have together, on all hosts."""
        return self.num_examples if self.ends_short else self.steps * self.batch

    @property
    def grouped(self) -> int:
        """Returns how many slots of an epoch form mix groups; what `pad` adds behind them mixes with nothing."""
        return self.num_examples if self.epoch_steps is None else self.epoch_steps * self.batch

    @property
    def widened(self) -> int | None:
        """The rows of a block widened to whole mix groups, the same for every step; `None` where each holds whole groups as it is."""
        if self.anywhere:
            return -(-(self.local_batch + GROUP - 1) // GROUP) * GROUP
        found, whole = [], True
        of = zip(self.bucket_steps, self.buckets, self.buckets, strict=True) if self.buckets else [(self.steps, self.grouped, None)]
        for steps, end, examples in of:
            # Blocks lie alike towards the groups after at most `GROUP` steps; the last step's can be smaller.
            known = {*range(min(steps, GROUP)), max(steps - 1, 0)}
            blocks = [self._block(step, self.num_examples if examples is None else examples) for step in known if step < steps]
            whole &= all(first % GROUP == 0 and (last % GROUP == 0 or last >= end) for first, last in blocks)
            found += [-(-last // GROUP) * GROUP - first // GROUP * GROUP for first, last in blocks]
        return None if whole else max(found)

    def _block(self, step: int, examples: int) -> tuple[int, int]:
        """The slots of this host's block of so many examples: the first, and one past the last."""
        index, count = self.shard
        here = min(self.batch, examples - step * self.batch) if self.ends_short else self.batch
        return step * self.batch + here * index // count, step * self.batch + here * (index + 1) // count
