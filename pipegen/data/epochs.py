"""Describes the epochs of a sampled split: how many examples they have, and which."""

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
    """Moves what groups have by as little as it takes for all to sum to whole `examples`: int64 `(groups,)`.

    Each group stays between its own value rounded down and rounded up to whole visits, so that what was whole stays as it is; the
    difference, which is less than a visit where `examples` is the rounded sum, is spread over the others in proportion to their room.
    """
    low = units >> BITS << BITS
    high = low + UNIT * (units > low)
    missing = examples * UNIT - int(units.sum())
    while True:
        room = high - units if missing > 0 else units - low
        if room.sum() >= abs(missing):
            return units + int(np.sign(missing)) * _spread(abs(missing), room)
        low, high = np.maximum(low - UNIT, 0), high + UNIT  # of weights alone, where thousands are all but whole


def _spread(amount: int, room: Array) -> Array:
    """Cuts an amount in proportion to the room of each group, to less than a unit and never above it."""
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
    """Lets an epoch have each example a set number of times, on average over epochs.

    The groups lie one behind the other on a line, each as long as its `bounds` say, in units of 2⁻¹⁶ visits. Slot s of an epoch is the
    group at s visits, plus a phase that changes from epoch to epoch, so that a group of t visits has ⌊t⌋ or ⌈t⌉ slots. These walk its
    records in a fixed order, go on in the next epoch where they ended, and so see each of n records ⌊t/n⌋ or ⌈t/n⌉ times.

    Attributes:
        bounds: Where each group begins, and where the last one ends, in units: int64 `(groups + 1,)`, rising from 0 to whole visits.
        sizes: The records of each group: int64 `(groups,)`; `None` where each is one record, in source order.
        members: The records of all groups, one group behind the other; `None` where they are stored so.
        seed: The spec's seed.
    """

    bounds: Array
    sizes: Array | None
    members: Array | None
    seed: int

    @property
    def size(self) -> int:
        """Counts the examples of an epoch."""
        return int(self.bounds[-1]) >> BITS

    @cached_property
    def firsts(self) -> Array | None:
        """Returns the place of each group's first record among the members: int64 `(groups,)`."""
        return None if self.sizes is None else np.cumsum(self.sizes) - self.sizes

    @cached_property
    def phase(self) -> int:
        """Returns the phase of epoch 0, in units."""
        return int.from_bytes(hashlib.blake2b(f"pipegen sampling {self.seed}".encode(), digest_size=2).digest(), "big")

    @property
    def visits(self) -> Array:
        """Computes how often a record of each group is seen in an epoch, on average: float64 `(groups,)`."""
        length = np.diff(self.bounds) / UNIT
        return length if self.sizes is None else length / np.maximum(self.sizes, 1)

    def each(self, records: int) -> Array:
        """Computes how often each of so many records is seen in an epoch, on average: float64 `(records,)`."""
        if self.sizes is None:
            return self.visits
        found: Array = np.empty(records)
        found[slice(None) if self.members is None else self.members] = np.repeat(self.visits, self.sizes)
        return found


@dataclass(frozen=True, eq=False)
class Easiest:
    """Lets an epoch draw its examples from the easiest ones: of k records, each is seen ⌊size/k⌋ or ⌈size/k⌉ times.

    Attributes:
        size: The examples of an epoch.
        members: All records, the easiest first.
        counts: Of how many an epoch draws, for each epoch from 0 on; the last one stays: int64.
        seed: The spec's seed.
    """

    size: int
    members: Array
    counts: Array
    seed: int


@dataclass(frozen=True, eq=False)
class Paced:
    """Lets a part of a mix draw from its easiest records, through which it goes pass after pass as long as their number stays.

    A stretch is a row of epochs that draw from as many records. Of m examples that the part has had in a stretch of k records, each was
    one ⌊m/k⌋ or ⌈m/k⌉ times. A pass that the end of a stretch cuts short is not gone on with.

    Attributes:
        size: The records of the part, which are what counts as once through it.
        members: All records, the easiest first.
        begins: How many examples the part has had before each stretch, from 0 on: int64 `(stretches,)`.
        counts: Of how many records each stretch draws: int64, like `begins`.
        passes: The number of the first pass of each stretch: int64, like `begins`.
        seed: The part's seed.
    """

    size: int
    members: Array
    begins: Array
    counts: Array
    passes: Array
    seed: int


Epochs = Repeats | Easiest
