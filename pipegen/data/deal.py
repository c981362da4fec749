"""Deals records out to bins of given sizes: plainly, by class, by group, or by both.

Everywhere a record's rank is that of a hash of its path, so the outcome depends on paths and the split seed alone.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from pipegen.data.rounding import round_table

if TYPE_CHECKING:
    from collections.abc import Sequence

Bins = list[list[int]]
"""For each bin, the records in it."""


def deal_plain(ranked: Sequence[int], sizes: Sequence[int]) -> Bins:
    """Consecutive stretches of the ranked records, of exactly these sizes."""
    ends = list(accumulate(sizes))
    return [list(ranked[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def deal_by_class(ranked: Sequence[int], sizes: Sequence[int], labels: Sequence[int], order: Sequence[int]) -> Bins:
    """Exactly these sizes, and of each class in each bin its share to less than one record.

    Args:
        ranked: The records by rank.
        sizes: Records for each bin; they sum to all.
        labels: The class of every record of the source.
        order: The classes, in the order in which ties are settled.
    """
    of_class: dict[int, list[int]] = {label: [] for label in order}
    for record in ranked:
        of_class[labels[record]].append(record)
    bins: Bins = [[] for _ in sizes]
    for records, row in zip(of_class.values(), round_table([len(r) for r in of_class.values()], sizes), strict=True):
        for part, dealt in zip(bins, deal_plain(records, row), strict=True):
            part.extend(dealt)
    return bins


def deal_groups(groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> Bins:
    """Whole groups, with sizes close to these.

    Each bin but the last walks the groups in their order and takes what still fits, then one more if that brings it
    nearer to its size. The last takes what is left.

    Args:
        groups: The records of each group, the groups by rank.
        sizes: Records wanted for each bin; they sum to all.
    """
    left = list(range(len(groups)))
    bins: Bins = []
    for size in sizes[:-1]:
        room = size
        taken: set[int] = set()
        for g in left:
            if len(groups[g]) <= room:
                taken.add(g)
                room -= len(groups[g])
        rest = [g for g in left if g not in taken]
        if room > 0 and rest:
            smallest = min(rest, key=lambda g: len(groups[g]))
            if len(groups[smallest]) - room <= room:
                taken.add(smallest)
        bins.append([record for g in left if g in taken for record in groups[g]])
        left = [g for g in left if g not in taken]
    bins.append([record for g in left for record in groups[g]])
    return bins


def deal_groups_evenly(groups: Sequence[Sequence[int]], sizes: Sequence[int], labels: Sequence[int] | None) -> Bins:
    """Whole groups, so that each bin has about its size and about its share of each class.

    The largest groups go first, each to the bin where the sum of squared deviations, relative to what the bin should
    hold, grows least.

    Args:
        groups: The records of each group, the groups by rank.
        sizes: Records wanted for each bin; they sum to all.
        labels: The class of every record of the source; without it sizes alone count.
    """
    if not groups:
        return [[] for _ in sizes]
    total = sum(sizes)
    live = [b for b, size in enumerate(sizes) if size > 0]
    in_all = _tally([record for group in groups for record in group], labels)
    wanted = {label: [n * size / total for size in sizes] for label, n in in_all.items()}
    have = {label: [0] * len(sizes) for label in in_all}
    dealt: list[list[int]] = [[] for _ in sizes]
    for g in sorted(range(len(groups)), key=lambda g: (-len(groups[g]), g)):
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
    return [[record for g in sorted(part) for record in groups[g]] for part in dealt]


def _tally(records: Sequence[int], labels: Sequence[int] | None) -> dict[int, int]:
    """Counts the records of each class, or all together."""
    if labels is None:
        return {0: len(records)}
    counts: dict[int, int] = {}
    for record in records:
        counts[labels[record]] = counts.get(labels[record], 0) + 1
    return counts
