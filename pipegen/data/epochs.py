"""The epochs of a sampled split: how many examples they have, and which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BITS = 16
UNIT = 1 << BITS
"""Units in one visit of an example."""


def settled(units: Array, examples: int) -> Array:
    """Adjusts the units of groups as little as possible, so that they sum to whole `examples`: int64 `(groups,)`.

    Each group stays between its value rounded down and rounded up to whole visits, so that whole values stay. The difference (less
    than a visit if `examples` is the rounded sum) is spread over the others in proportion to their room.
    """
    low = units >> BITS << BITS
    high = low + UNIT * (units > low)
    missing = examples * UNIT - int(units.sum())
    while True:
        room = high - units if missing > 0 else units - low
        if room.sum() >= abs(missing):
            return units + int(np.sign(missing)) * _spread(abs(missing), room)
        low, high = np.maximum(low - UNIT, 0), high + UNIT  # only for weights, if thousands are almost whole


def _spread(amount: int, room: Array) -> Array:
    """Spreads an amount in proportion to the room of each group, to within a unit and never above the room."""
    if amount == 0:
        return np.zeros_like(room)
    ends = np.cumsum(room)
    total = int(ends[-1])
    # `ends * amount // total` in two parts, since the product can be longer than 63 bits.
    high, rest = np.divmod(ends * (amount >> BITS), total)
    return np.diff((high << BITS) + ((rest << BITS) + ends * (amount & UNIT - 1)) // total, prepend=0)


GOLDEN = 40503
"""2¹⁶ over the golden ratio, odd: its multiples modulo 2¹⁶ meet every value once, and spread evenly from the first on."""


@dataclass(frozen=True, eq=False)
class Repeats:
    """Epochs that repeat each example a set number of times, on average over epochs.

    The groups lie one behind the other on a line, with the `bounds` in units of 2⁻¹⁶ visits. Slot s of an epoch is the group at s
    visits, plus a phase that changes from epoch to epoch, so that a group of t visits has ⌊t⌋ or ⌈t⌉ slots. These slots walk the
    group's records in a fixed order and continue in the next epoch, so that each of n records is seen ⌊t/n⌋ or ⌈t/n⌉ times.

    Attributes:
        bounds: The beginning of each group, and the end of the last, in units: int64 `(groups + 1,)`, rising from 0 to whole visits.
        sizes: The records of each group: int64 `(groups,)`; `None` if each is one record, in source order.
        members: The records of all groups, group by group; `None` if they are stored so.
        seed: The spec's seed.
    """

    bounds: Array
    sizes: Array | None
    members: Array | None
    seed: int

    @property
    def size(self) -> int:
        """Number of examples of an epoch."""
        return int(self.bounds[-1]) >> BITS

    @cached_property
    def firsts(self) -> Array | None:
        """Position of each group's first record among the members: int64 `(groups,)`."""
        return None if self.sizes is None else np.cumsum(self.sizes) - self.sizes

    @cached_property
    def phase(self) -> int:
        """Phase of epoch 0, in units."""
        return int.from_bytes(hashlib.blake2b(f"pipegen sampling {self.seed}".encode(), digest_size=2).digest(), "big")

    @property
    def visits(self) -> Array:
        """Mean visits of a record of each group in an epoch: float64 `(groups,)`."""
        length = np.diff(self.bounds) / UNIT
        return length if self.sizes is None else length / np.maximum(self.sizes, 1)

    def each(self, records: int) -> Array:
        """Computes the mean visits of each record in an epoch: float64 `(records,)`."""
        if self.sizes is None:
            return self.visits
        found: Array = np.empty(records)
        found[slice(None) if self.members is None else self.members] = np.repeat(self.visits, self.sizes)
        return found


@dataclass(frozen=True, eq=False)
class Easiest:
    """Epochs that sample from the easiest records: of k records, each is seen ⌊size/k⌋ or ⌈size/k⌉ times.

    Attributes:
        size: Number of examples of an epoch.
        members: All records, the easiest first.
        counts: The k of each epoch from 0 on; the last one holds for all later epochs: int64.
        seed: The spec's seed.
    """

    size: int
    members: Array
    counts: Array
    seed: int


@dataclass(frozen=True, eq=False)
class Paced:
    """Passes of a part of a mix through its easiest records.

    A stretch is a run of epochs that draw from the same number of records, pass after pass. Of m examples in a stretch of k records,
    each record is ⌊m/k⌋ or ⌈m/k⌉. A pass that the end of a stretch cuts short does not continue.

    Attributes:
        size: Number of records of the part, which count as one pass through it.
        members: All records, the easiest first.
        begins: Examples of the part before each stretch, from 0 on: int64 `(stretches,)`.
        counts: Records that each stretch draws from: int64, like `begins`.
        passes: Number of the first pass of each stretch: int64, like `begins`.
        seed: The part's seed.
    """

    size: int
    members: Array
    begins: Array
    counts: Array
    passes: Array
    seed: int


Epochs = Repeats | Easiest
