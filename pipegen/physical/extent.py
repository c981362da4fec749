"""Says how long an epoch is, and which part of each batch is this host's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipegen.ops.families.mixing import GROUP

if TYPE_CHECKING:
    from pipegen.spec.models import Remainder


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
    """

    num_examples: int
    batch: int
    remainder: Remainder
    shard: tuple[int, int]
    epoch_steps: int | None
    begin: tuple[int, int] = field(default=(0, 0), kw_only=True)

    @property
    def steps(self) -> int:
        """Steps in an epoch; the same on every host."""
        if self.epoch_steps is not None:
            return self.epoch_steps
        if self.remainder == "drop":
            return self.num_examples // self.batch
        return math.ceil(self.num_examples / self.batch)

    @property
    def local_batch(self) -> int:
        """Examples of a full batch on this host."""
        return self.batch // self.shard[1]

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
        steps, end = self.steps, self.grouped
        # Blocks lie alike towards the groups after at most `GROUP` steps; the last step's can be smaller.
        blocks = [self._block(step) for step in {*range(min(steps, GROUP)), max(steps - 1, 0)} if step < steps]
        if all(first % GROUP == 0 and (last % GROUP == 0 or last >= end) for first, last in blocks):
            return None
        return max(-(-last // GROUP) * GROUP - first // GROUP * GROUP for first, last in blocks)

    def _block(self, step: int) -> tuple[int, int]:
        """The slots of this host's block: the first, and one past the last."""
        index, count = self.shard
        here = min(self.batch, self.num_examples - step * self.batch) if self.ends_short else self.batch
        return step * self.batch + here * index // count, step * self.batch + here * (index + 1) // count
