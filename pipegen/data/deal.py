"""Deals records out to bins of given sizes: plainly, by class, by group, or by both.

Everywhere a record's rank is that of a hash of its path, so the outcome depends on paths and the split seed alone.
"""

from __future__ import annotations

from itertools import accumulate, compress
from typing import TYPE_CHECKING

import numpy as np

from pipegen.data.rounding import round_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.listing.strings import Ints


class Ranked:
    """Records in stretches of so many (`sizes`), those of one class or group after those of another, each by rank."""

    def __init__(self, records: Ints, of: Ints, order: Ints) -> None:
        """Takes ranked records, what each record of the source belongs to, and the order of what they belong to."""
        place: Ints = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        own = place[of[records]]
        self.records = records[np.argsort(own, kind="stable")]
        self.sizes: list[int] = np.bincount(own, minlength=len(order)).tolist()
        self._ends = [0, *accumulate(self.sizes)]

    def __getitem__(self, stretch: int) -> Ints:
        """The records of one stretch."""
        return self.records[self._ends[stretch] : self._ends[stretch + 1]]

    def picked(self, stretches: Sequence[int]) -> Ints:
        """The records of some stretches, which rise."""
        chosen: Ints = np.zeros(len(self.sizes), bool)
        chosen[stretches] = True
        return self.records[chosen.repeat(self.sizes)]


def deal_plain(ranked: Ints, sizes: Sequence[int]) -> list[Ints]:
    """Consecutive stretches of the ranked records, of exactly these sizes."""
    ends = list(accumulate(sizes))
    return [ranked[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def deal_by_class(classes: Ranked, sizes: Sequence[int]) -> list[Ints]:
    """Exactly these sizes, which sum to all, and of each class in each bin its share to less than one record.

    Ties are settled in the order of the classes.
    """
    table = round_table(classes.sizes, sizes)
    dealt = [deal_plain(classes[i], row) for i, row in enumerate(table)]
    return [np.concatenate([classes.records[:0], *(parts[b] for parts in dealt)]) for b in range(len(sizes))]


def deal_groups(groups: Ranked, sizes: Sequence[int]) -> list[Ints]:
    """Whole groups, which are ranked, with sizes close to these, which sum to all.

    Each bin but the last walks the groups in their order and takes what still fits, then one more if that brings it
    nearer to its size. The last takes what is left.
    """
    left = list(range(len(groups.sizes)))
    bins: list[Ints] = []
    for size in sizes[:-1]:
        room = size
        taken = bytearray(len(left))
        for i, g in enumerate(left):
            if groups.sizes[g] <= room:
                taken[i] = 1
                room -= groups.sizes[g]
        rest = [i for i, t in enumerate(taken) if not t]
        if room > 0 and rest:
            smallest = min(rest, key=lambda i: groups.sizes[left[i]])
            if groups.sizes[left[smallest]] - room <= room:
                taken[smallest] = 1
        bins.append(groups.picked(list(compress(left, taken))))
        left = [g for g, t in zip(left, taken, strict=True) if not t]
    bins.append(groups.picked(left))
    return bins


def deal_groups_evenly(groups: Ranked, sizes: Sequence[int], labels: Ints | None) -> list[Ints]:
    """Whole groups, so that each bin has about its size and about its share of each class; without labels sizes alone count.

    The largest groups go first, each to the bin where the sum of squared deviations, relative to what the bin should
    hold, grows least.
    """
    if not len(groups.records):
        return [groups.records] * len(sizes)
    total = sum(sizes)
    live = [b for b, size in enumerate(sizes) if size > 0]
    in_all = _tally(groups.records, labels)
    wanted = {label: [n * size / total for size in sizes] for label, n in in_all.items()}
    have = {label: [0] * len(sizes) for label in in_all}
    dealt: list[list[int]] = [[] for _ in sizes]
    for g in sorted(range(len(groups.sizes)), key=lambda g: (-groups.sizes[g], g)):
        tally = _tally(groups[g], labels)
        costs = [0.0] * len(sizes)
        for label, n in tally.items():
            has, wants = have[label], wanted[label]
            for b in live:
                costs[b] += n * (n + 2 * (has[b] - wants[b])) / wants[b]
        best = min(live, key=costs.__getitem__)
        for label, n in tally.items():
            have[label][best] += n
        dealt[best].append(g)
    return [groups.picked(sorted(part)) for part in dealt]


def _tally(records: Ints, labels: Ints | None) -> dict[int, int]:
    """Counts the records of each class, or all together; the classes in the order that the records name them."""
    if labels is None:
        return {0: len(records)}
    counts: dict[int, int] = {}
    for label in labels[records].tolist():
        counts[label] = counts.get(label, 0) + 1
    return counts
