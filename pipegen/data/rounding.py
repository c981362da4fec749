"""Whole numbers in given proportions: of one row, of a table whose margins are fixed, and of the parts of a mix over epochs."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

from pipegen.errors import OpError
from pipegen.frozen import dataclass

SLACK = Fraction(1, 10**6)  # tolerance for a sum of fractions that should be 1


def exact(value: float) -> Fraction:
    """Converts a float to the decimal fraction that was written, so that 0.1 of 30 is 3."""
    return Fraction(repr(value))


def spread(count: int, most: int | None) -> list[int]:
    """Picks at most `most` of `count` things, evenly spread; all of them for `None`."""
    taken = count if most is None else min(most, count)
    return [i * count // taken for i in range(taken)]


def apportion(total: int, shares: Sequence[Fraction]) -> list[int]:
    """Splits `total` into whole numbers, each less than one away from its share (largest remainder).

    The shares sum to 1. On a tie the larger share wins, then the later one.
    """
    ranked = sorted(range(len(shares)), key=lambda i: (shares[i], i), reverse=True)
    sizes = dict(zip(ranked, _rounded([shares[i] * total for i in ranked], 1, total), strict=True))
    return [sizes[i] for i in range(len(shares))]


def round_table(rows: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """Computes a table with these sums of rows and columns, each cell less than one away from its proportional value.

    Such a table always exists. Rows are rounded up one after the other where their remainders are largest; where every
    such column is full, a unit is moved along rows that were rounded before (an augmenting path of a flow).
    """
    total = sum(rows)
    if total == 0:
        return [[0] * len(columns) for _ in rows]
    table = [[row * column // total for column in columns] for row in rows]
    remainders = [[row * column % total for column in columns] for row in rows]
    rounding = _Rounding(remainders, [column - sum(line[j] for line in table) for j, column in enumerate(columns)])
    for i, row in enumerate(rows):
        for _ in range(row - sum(table[i])):
            rounding.round_up(i)
    for j, holders in enumerate(rounding.holders):
        for i in holders:
            table[i][j] += 1
    return table


class _Rounding:
    """Chooses the cells to round up; `holders` has the rows of these cells for each column, in order."""

    def __init__(self, remainders: list[list[int]], room: list[int]) -> None:
        self.remainders = remainders
        self.room = room
        self.holders: list[dict[int, None]] = [{} for _ in room]

    def _may(self, row: int, column: int) -> bool:
        return self.remainders[row][column] > 0 and row not in self.holders[column]

    def round_up(self, row: int) -> None:
        """Rounds up one more cell of a row."""
        starts = [j for j in range(len(self.room)) if self._may(row, j)]
        starts.sort(key=lambda j: -self.remainders[row][j])
        came: dict[int, tuple[int, int] | None] = dict.fromkeys(starts)  # column -> (the column before, the row that moves)
        queue = deque(starts)
        while queue:
            column = queue.popleft()
            if self.room[column] > 0:
                self.room[column] -= 1
                while (step := came[column]) is not None:
                    before, moves = step
                    del self.holders[before][moves]
                    self.holders[column][moves] = None
                    column = before
                self.holders[column][row] = None
                return
            for other in range(len(self.room)):
                mover = None if other in came else next((r for r in self.holders[column] if self._may(r, other)), None)
                if mover is not None:
                    came[other] = (column, mover)
                    queue.append(other)
        raise ArithmeticError("the margins of the table do not agree")


UNIT = 2**31  # the largest denominator of a share. A remainder below it, times an epoch's number up to 2^32, stays below 2^63.
COUNTED = 2**10  # settled epochs that are counted one by one if shares are less than an example an epoch
LONGEST = 2**31  # the most examples of an epoch, so that a position times a count stays below 2^63


@dataclass(frozen=True)
class Mixture:
    """The number of examples of each part of a mix in each epoch.

    Up to the end of an epoch, a part is owed the sum of its shares times `examples`. The examples that it has had by then are that sum,
    rounded by largest remainder over all parts (Hamilton): less than one example away, and the rest is carried over to the next epoch.
    Largest remainders alone would take back examples of earlier epochs in two cases, which therefore differ. If a share falls to 0, the
    others take over what its part is owed. If a share is less than one example an epoch, no count is rounded below 0, and the settled
    epochs repeat once all parts have had what they are owed.

    Attributes:
        examples: Examples of an epoch, N.
        unit: The denominator of the shares.
        table: The examples of each part before each epoch up to `settled`; begins with zeros.
        settled: The first epoch from which on shares do not change.
        shares: Those shares, as numerators.
        carried: The examples owed to each part at the beginning of `settled`, times `unit`; they sum to 0.
        period: The examples of each part before each of the settled epochs that repeat, with the end; empty if largest remainders suffice.
        nested: The period is too long: the table has its first epochs, and later ones are rounded down part by part.
    """

    examples: int
    unit: int
    table: tuple[tuple[int, ...], ...]
    shares: tuple[int, ...]
    carried: tuple[int, ...]
    period: tuple[tuple[int, ...], ...] = ()
    nested: bool = False

    @property
    def settled(self) -> int:
        return len(self.table) - 1

    def before(self, epoch: int) -> tuple[int, ...]:
        """Counts the examples of each part in all epochs before `epoch`."""
        if epoch <= self.settled:
            return self.table[epoch]
        later = epoch - self.settled
        if self.period:
            whole, left = divmod(later, len(self.period) - 1)
            more = [whole * a + b for a, b in zip(self.period[-1], self.period[left], strict=True)]
        elif self.nested:
            # Counts that never fall: each is the floor of its part of the rest.
            more, total, left = [], later * self.examples, sum(self.shares)
            for share in self.shares:
                more.append(total * share // left if left else 0)
                total, left = total - more[-1], left - share
        else:
            owed = [carry + later * self.examples * share for carry, share in zip(self.carried, self.shares, strict=True)]
            more = _rounded(owed, self.unit, later * self.examples)
        return tuple(a + b for a, b in zip(self.table[-1], more, strict=True))

    def counts(self, epoch: int) -> tuple[int, ...]:
        """Counts the examples of each part in one epoch; they sum to `examples`."""
        return tuple(b - a for a, b in zip(self.before(epoch), self.before(epoch + 1), strict=True))


def mixture(examples: int, weights: Sequence[Sequence[float]]) -> Mixture:
    """Computes the counts of a mix from the examples of an epoch and the weights of each part by epoch.

    The last weight of a part holds for all later epochs; in each epoch one is above 0.
    """
    unit, shares = _final([exact(own[-1]) for own in weights])
    earlier = range(max(map(len, weights)) - 1)
    changing = [_shares([exact(own[min(epoch, len(own) - 1)]) for own in weights], unit) for epoch in earlier]
    table, owed = _counted(examples, unit, changing, len(weights))
    owed = _handed_on(owed, shares)
    if all(not share or examples * share + min(carry, 0) >= unit for share, carry in zip(shares, owed, strict=True)):
        return Mixture(examples, unit, tuple(table), tuple(shares), tuple(owed))
    length = lcm(*(unit // gcd(unit, examples * share) for share in shares))  # of the period, until all have what they are owed
    every = _counted(examples, unit, [shares] * length, len(shares))[0] if length <= COUNTED else []
    met = bool(every) and all(unit * had == length * examples * share for had, share in zip(every[-1], shares, strict=True))
    period = tuple(every) if met else ()
    if not met:
        begun, _ = _counted(examples, unit, [shares] * COUNTED, len(shares))
        table = [*table[:-1], *(tuple(a + b for a, b in zip(table[-1], more, strict=True)) for more in begun)]
    return Mixture(examples, unit, tuple(table), tuple(shares), (0,) * len(shares), period, not met)


def _counted(examples: int, unit: int, shares: Sequence[Sequence[int]], parts: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """Counts the examples of parts before each epoch of these shares, with the end; also returns what is owed at the end."""
    owed, table = [0] * parts, [(0,) * parts]
    for now in shares:
        owed = _handed_on([o + examples * share for o, share in zip(owed, now, strict=True)], now)
        counts = _apportioned(owed, now, unit, examples)
        owed = [o - unit * count for o, count in zip(owed, counts, strict=True)]
        table.append(tuple(had + count for had, count in zip(table[-1], counts, strict=True)))
    return table, owed


def _final(weights: Sequence[Fraction]) -> tuple[int, list[int]]:
    """Computes the denominator of all shares, and the shares of the settled epochs: exact if the denominator is small enough."""
    total = sum(weights, Fraction(0))
    common = 1
    for weight in weights:
        common = lcm(common, (weight / total).denominator)
        if common > UNIT:
            return UNIT, _shares(weights, UNIT)
    unit = UNIT // common * common
    return unit, [int(weight / total * unit) for weight in weights]


def _shares(weights: Sequence[Fraction], unit: int) -> list[int]:
    """Turns weights into shares: numerators that sum to `unit`, above 0 for weights above 0 unless they are tiny."""
    total = sum(weights, Fraction(0))
    return _rounded([weight / total * unit for weight in weights], 1, unit)


def _rounded(owed: Sequence[int | Fraction], unit: int, total: int) -> list[int]:
    """Rounds `owed / unit` to whole numbers that sum to `total`: up where the remainder is largest, the first on a tie."""
    found = [int(o // unit) for o in owed]
    for i in sorted(range(len(owed)), key=lambda i: (-(owed[i] % unit), i))[: total - sum(found)]:
        found[i] += 1
    return found


def _apportioned(owed: Sequence[int], shares: Sequence[int], unit: int, total: int) -> list[int]:
    """Counts the examples of one epoch: as `_rounded`, but never below 0, and 0 for a part without a share."""
    active = [i for i, share in enumerate(shares) if share]
    found = [0] * len(owed)
    for i in active:
        found[i] = max(0, owed[i] // unit)
    left = total - sum(found)
    for i in sorted(active, key=lambda i: (found[i] * unit - owed[i], i))[: max(0, left)]:
        found[i] += 1
    for _ in range(-left):
        i = min((i for i in active if found[i]), key=lambda i: (owed[i] - found[i] * unit, i))
        found[i] -= 1
    return found


def _handed_on(owed: Sequence[int], shares: Sequence[int]) -> list[int]:
    """Moves what parts without a share are owed to the others, in proportion to their shares."""
    idle = sum(o for o, share in zip(owed, shares, strict=True) if not share)
    if not idle:
        return [o if share else 0 for o, share in zip(owed, shares, strict=True)]
    given, left = [], sum(shares)
    for o, share in zip(owed, shares, strict=True):
        part = idle * share // left if left else 0
        idle, left = idle - part, left - share
        given.append(o + part if share else 0)
    return given


def epoch_examples(epoch: int | str, sizes: Mapping[str, int], weights: Mapping[str, float]) -> int:
    """Counts the examples of an epoch, from those of each part and the final weights.

    `epoch` is a count; or `shortest`, `longest` or the name of a part: the epoch then goes once through the examples of that part. Raises
    `OpError`: `PG464` if the epoch would have no example, or too many."""
    if isinstance(epoch, int):
        return epoch
    total = sum(map(exact, weights.values()), Fraction(0))
    once = {name: sizes[name] * total / exact(weight) for name, weight in weights.items() if weight}
    if epoch == "shortest":
        found = min(int(n) for n in once.values())
    elif epoch == "longest":
        found = max(-int(-n // 1) for n in once.values())
    else:
        found = int(once[epoch] + Fraction(1, 2))
    if not 0 < found <= LONGEST:
        message = f"with `epoch: {epoch}` an epoch has {found:,} examples" + (f", more than {LONGEST:,}" if found else "")
        raise OpError("PG464", message, field="epoch", help="give it a count of examples, such as `epoch: 10000`")
    return found


def part_seed(seed: int, name: str) -> int:
    """Derives the seed of a part, so that parts of equal size have different orders."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, person=b"pipegen.part", salt=seed.to_bytes(8, "big"))
    return int.from_bytes(digest.digest(), "big") >> 1
