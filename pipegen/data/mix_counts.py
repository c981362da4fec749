"""The number of examples of each part of a mix in an epoch: whole numbers by largest remainder, without drift over epochs."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

from pipegen.data.rounding import exact
from pipegen.errors import OpError
from pipegen.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


UNIT = 2**31
"""The largest denominator of a share. A remainder below it, times an epoch's number up to 2^32, stays below 2^63."""
COUNTED = 2**10
"""Settled epochs that are counted one by one if shares are less than an example an epoch."""
LONGEST = 2**31
"""The most examples of an epoch, so that a position times a count stays below 2^63."""


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
            more = _nested(later * self.examples, self.shares)
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
    lasts = [exact(own[-1]) for own in weights]
    unit, shares = _final(lasts)
    earlier = range(max(map(len, weights)) - 1)
    changing = [_shares([exact(own[min(epoch, len(own) - 1)]) for own in weights], unit) for epoch in earlier]
    table, owed = _counted(examples, unit, changing, len(weights))
    owed = _handed_on(owed, shares)
    if all(not share or examples * share + min(carry, 0) >= unit for share, carry in zip(shares, owed, strict=True)):
        return Mixture(examples, unit, tuple(table), tuple(shares), tuple(owed))
    period = _period(examples, unit, shares)
    if not period:
        begun, _ = _counted(examples, unit, [shares] * COUNTED, len(shares))
        table = [*table[:-1], *(tuple(a + b for a, b in zip(table[-1], more, strict=True)) for more in begun)]
    return Mixture(examples, unit, tuple(table), tuple(shares), (0,) * len(shares), period, not period)


def _period(examples: int, unit: int, shares: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Counts the examples of parts before each epoch until all have what they are owed; empty if that takes many epochs."""
    length = lcm(*(unit // gcd(unit, examples * share) for share in shares))
    table = _counted(examples, unit, [shares] * length, len(shares))[0] if length <= COUNTED else [()]
    met = [unit * had == length * examples * share for had, share in zip(table[-1], shares, strict=False)]
    return tuple(table) if met and all(met) else ()


def _counted(examples: int, unit: int, shares: Sequence[Sequence[int]], parts: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """Counts the examples of parts before each epoch of these shares, with the end; also returns what is owed at the end."""
    owed, table = [0] * parts, [(0,) * parts]
    for now in shares:
        owed, counts = _next_epoch(owed, now, unit, examples)
        table.append(tuple(had + count for had, count in zip(table[-1], counts, strict=True)))
    return table, owed


def _next_epoch(owed: Sequence[int], shares: Sequence[int], unit: int, examples: int) -> tuple[list[int], list[int]]:
    """Counts the examples of the next epoch; returns what is owed after it, and the counts."""
    owed = _handed_on([o + examples * share for o, share in zip(owed, shares, strict=True)], shares)
    counts = _apportioned(owed, shares, unit, examples)
    return [o - unit * count for o, count in zip(owed, counts, strict=True)], counts


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


def _nested(total: int, shares: Sequence[int]) -> list[int]:
    """Splits `total` by shares into whole numbers that never fall as it grows: each is the floor of its part of the rest."""
    found, left = [], sum(shares)
    for share in shares:
        count = total * share // left if left else 0
        found.append(count)
        total, left = total - count, left - share
    return found


def epoch_examples(epoch: int | str, sizes: Mapping[str, int], weights: Mapping[str, float]) -> int:
    """Counts the examples of an epoch, from those of each part and the final weights.

    `epoch` is a count; or `shortest`, `longest` or the name of a part: the epoch then goes once through the examples of that part.

    Raises:
        OpError: `PG464` if the epoch would have no example, or too many.
    """
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
