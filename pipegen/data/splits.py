"""Assigns each record to a split.

Membership depends on relative paths, labels and `splits` alone, not on the top-level seed, nor on the order of the parts.
Bins are filled in a canonical order: the parts other than `train` by name, then the unused rest, then `train`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain, compress
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from pipegen.data.fingerprint import split_hashes
from pipegen.data.rounding import SLACK, apportion, exact, round_table
from pipegen.errors import InternalError, OpError
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.fields.strings import Ints, as_places, decode
from pipegen.ops.sampling_sections import ByColumn, Folds, PathGroup, Splits
from pipegen.ops.sources.listing.base import PREDICTED, Listing
from pipegen.patterns import compile_pattern


class Ranked:
    """Records class by class or group by group, by rank within each; `sizes` counts them."""

    def __init__(self, records: Ints, of: Ints, order: Ints) -> None:
        """Takes ranked records, the class or group of each record of the source, and the order of these."""
        place: Ints = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        own = place[of[records]]
        self.records = records[np.argsort(own, kind="stable")]
        self.sizes: list[int] = np.bincount(own, minlength=len(order)).tolist()
        self._ends = [0, *accumulate(self.sizes)]

    def __getitem__(self, stretch: int) -> Ints:
        """The records of one class or group."""
        return self.records[self._ends[stretch] : self._ends[stretch + 1]]

    def picked(self, stretches: Sequence[int]) -> Ints:
        """The records of some classes or groups, which rise."""
        chosen: Ints = np.zeros(len(self.sizes), bool)
        chosen[stretches] = True
        return self.records[chosen.repeat(self.sizes)]


def deal_plain(ranked: Ints, sizes: Sequence[int]) -> list[Ints]:
    """Cuts ranked records into consecutive bins of exactly these sizes."""
    return [ranked[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def deal_by_class(classes: Ranked, sizes: Sequence[int]) -> list[Ints]:
    """Deals records to bins of exactly these sizes, which sum to all; each bin has its share of each class to within one record.

    Ties are settled in the order of the classes.
    """
    table = round_table(classes.sizes, sizes)
    dealt = [deal_plain(classes[i], row) for i, row in enumerate(table)]
    return [np.concatenate([classes.records[:0], *(parts[b] for parts in dealt)]) for b in range(len(sizes))]


def deal_groups(groups: Ranked, sizes: Sequence[int]) -> list[Ints]:
    """Deals whole groups, in their order, to bins of about these sizes, which sum to all.

    Each bin but the last takes the groups that still fit, then one more if that brings it nearer to its size. The last bin takes
    the rest.
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
    """Deals whole groups so that each bin has about its size and about its share of each class; without labels only sizes count.

    The largest groups go first, each to the bin where the sum of squared deviations, relative to the bin's target, grows least.
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
    """Counts the records of each class, in order of appearance; without labels, all together."""
    return {0: len(records)} if labels is None else Counter(labels[records].tolist())


Members: TypeAlias = dict[str, Ints]
"""The indices of each split's records, rising: int32, or int64 from 2³¹ records on."""
T = TypeVar("T")
N = TypeVar("N", int, Fraction)

_SHOWN = 4  # values of a part that a message lists

_REST = ""


def assign(splits: Splits, listing: Listing, names: Sequence[str], unlabelled: Ints | None = None) -> Members:
    """Assigns the records of a listing to splits; records that no part asks for are in none. `unlabelled` ones, bool `(n,)`, are `predict`.

    Raises `OpError`: `PG409` if the parts ask for more than there is, `PG105` if the pattern of `group` does not match every path, `PG302`
    if splits given by the data divide a group, `PG404` if no row has the value of a part, `PG420` if it has no label, `PG421` if a table
    lacks a column. `field` is relative to `splits`."""
    if unlabelled is None or not unlabelled.any():
        return _assign(splits, listing, names)
    if places_each(splits, listing):
        members = _assign(splits, listing, names)
        for name, own in members.items():
            refuse_unlabelled(name, listing.location.paths.take(own[unlabelled[own]]))
    else:
        known = np.flatnonzero(~unlabelled)
        members = {name: known[own] for name, own in _assign(splits, listing.take(known), names).items()}
    together = np.union1d(members[PREDICTED], np.flatnonzero(unlabelled))
    return {**members, PREDICTED: as_places(together, len(unlabelled))}


def places_each(splits: Splits, listing: Listing) -> bool:
    """Decides if the data names the split of each record, by a folder or the value of a column."""
    return listing.parts is not None or splits.column is not None or splits.method == "folder"


def refuse_unlabelled(split: str, places: Sequence[str]) -> None:
    """Raises `PG420` for records without a label, at some places, unless the split is `predict`."""
    if split != PREDICTED and len(places):
        message = f"{count(len(places), 'record')} of `{split}` {'has' if len(places) == 1 else 'have'} no label, such as {places[0]}"
        help_ = "examples without a label belong to `predict`: list their values of the column there, or leave them out by `where`"
        raise OpError("PG420", message, field=f"parts.{split}", help=help_)


def _assign(splits: Splits, listing: Listing, names: Sequence[str]) -> Members:
    groups = _groups(splits, listing)
    n = len(listing.keys)
    bins: Mapping[str, Ints]
    if listing.parts is not None:
        bins = {name: listing.parts.records(name) for name in listing.parts.names}
        _refuse_leaks(bins, groups, listing)
    elif splits.folds is not None:
        bins = _cut_folds(splits, splits.folds, listing, groups)
    elif splits.column is not None:
        bins = _named(splits, splits.column, listing)
        _refuse_leaks(bins, groups, listing)
    elif not splits.parts:
        bins = {names[0]: np.arange(n)}
    elif splits.method == "keras":
        bins = _keras(splits, listing)
    elif splits.method == "keras_utility":
        bins = _keras_utility(splits, listing)
    elif splits.method == "hash":
        # Each part is an interval of hashes, so that records never move when others are added.
        share = shares(splits.parts)
        own = intervals(split_hashes(groups.names if groups is not None else listing.keys, splits.seed), share.values())
        own = own if groups is None else own[groups.of]
        bins = {part: np.flatnonzero(own == i) for i, part in enumerate(share)}
    else:
        bins = _Dealer(splits, listing, groups).parts()
    return {name: np.sort(as_places(bins.get(name, np.arange(0)), n)) for name in names}


def shares(parts: Mapping[str, object]) -> dict[str, Fraction]:
    """Computes the share of each part, in canonical order; the unused rest is named "". They sum to 1."""
    given = {name: exact(value) for name, value in parts.items() if isinstance(value, float)}
    total = sum(given.values(), Fraction(0))
    if abs(1 - total) <= SLACK:
        given, total = {name: value / total for name, value in given.items()}, Fraction(1)
    return _canonical({**given, _REST: 1 - total})


def _canonical(parts: Mapping[str, N]) -> dict[str, N]:
    rank = {_REST: 1, "train": 2}
    return {name: parts[name] for name in sorted(parts, key=lambda n: (rank.get(n, 0), n)) if name or parts[name] > 0}


class _Groups(NamedTuple):
    """The names of the groups that stay whole, and the index of each record's group."""

    names: tuple[str, ...]
    of: Ints


class _Dealer:
    """The method `random`: exact sizes by the rank of hashes."""

    def __init__(self, splits: Splits, listing: Listing, groups: _Groups | None) -> None:
        self._splits = splits
        self._classes, self._labels = listing.class_names, listing.labels if splits.stratify == "label" else None
        if isinstance(splits.stratify, ByColumn):
            self._classes, self._labels = numbered(_cells(listing, splits.stratify.column, "stratify.column"), len(listing.keys))
        self._groups = groups
        self.ranked = as_places(split_hashes(listing.keys, splits.seed).argsort(kind="stable"), len(listing.keys))

    def parts(self) -> dict[str, Ints]:
        """Deals the records to the parts; the unused rest is named ""."""
        n, counts = len(self.ranked), {name: value for name, value in self._splits.parts.items() if isinstance(value, int)}
        if sum(counts.values()) > n:
            message = f"the parts ask for {sum(counts.values())} examples and there are {n}"
            raise OpError("PG409", message, field="parts", help="lower the counts, or write fractions such as 0.8")
        if counts:
            sizes = _canonical({**counts, _REST: n - sum(counts.values())})
        else:
            share = shares(self._splits.parts)
            sizes = dict(zip(share, apportion(n, list(share.values())), strict=True))
        return dict(zip(sizes, self.deal(self.ranked, list(sizes.values())), strict=True))

    def deal(self, ranked: Ints, sizes: Sequence[int], *, folds: bool = False) -> list[Ints]:
        """Deals ranked records to bins of about these sizes, as `stratify` and `group` ask."""
        seed = self._splits.seed
        if self._groups is not None:
            # Sorted by name first, so that groups of equal hash keep that order.
            named = sorted(range(len(self._groups.names)), key=self._groups.names.__getitem__)
            hashes = split_hashes([self._groups.names[g] for g in named], seed)
            groups = Ranked(ranked, self._groups.of, as_places(named, len(named))[hashes.argsort(kind="stable")])
            if folds or self._labels is not None:
                return deal_groups_evenly(groups, sizes, self._labels)
            return deal_groups(groups, sizes)
        if self._labels is not None:
            return deal_by_class(Ranked(ranked, self._labels, split_hashes(self._classes, seed).argsort(kind="stable")), sizes)
        return deal_plain(ranked, sizes)


def _cut_folds(splits: Splits, folds: Folds, listing: Listing, groups: _Groups | None) -> dict[str, Ints]:
    """Deals `parts` first, alike for every fold, then cuts the rest into folds of cross-validation."""
    dealer = _Dealer(splits, listing, groups)
    first = dealer.parts() if splits.parts else {_REST: dealer.ranked}
    pool: Ints = np.zeros(len(listing.keys), bool)
    pool[first.pop(_REST, dealer.ranked[:0])] = True
    ranked = dealer.ranked[pool[dealer.ranked]]
    sizes = [len(ranked) // folds.count + (i < len(ranked) % folds.count) for i in range(folds.count)]
    bins = dealer.deal(ranked, sizes, folds=True)
    validation = bins.pop(folds.fold)
    return {**first, "train": np.concatenate(bins), "validation": validation}


def intervals(hashes: Ints, shares: Iterable[Fraction]) -> Ints:
    """Finds the interval of each 64-bit hash, where intervals are as long as the shares: int16 `(n,)`."""
    found: Ints = np.zeros(len(hashes), np.int16)
    for total in accumulate(shares):
        if total < 1:  # the last interval ends at 2⁶⁴, which no hash reaches and no uint64 holds
            found += hashes >= np.uint64(int(total * 2**64))
    return found


def _keras(splits: Splits, listing: Listing) -> dict[str, Ints]:
    """The method `keras`: the first files of each class, sorted by folder and then by name, are validation; else the first rows."""
    other, fraction = _other_part(splits)
    classes = _classes_as_keras(listing)
    cuts = [int(fraction * len(records)) for records in classes]  # in binary floating point, as Keras computes it
    validation = [records[:cut] for records, cut in zip(classes, cuts, strict=True)]
    train = [records[cut:] for records, cut in zip(classes, cuts, strict=True)]
    return {"train": np.concatenate(train), other: np.concatenate(validation)}


def _keras_utility(splits: Splits, listing: Listing) -> dict[str, Ints]:
    """The method `keras_utility`: shuffles all files, class by class, with NumPy's legacy generator; the last ones are validation."""
    other, fraction = _other_part(splits)
    records = np.concatenate(_classes_as_keras(listing))
    np.random.RandomState(splits.seed).shuffle(records)  # Keras draws from it, and NumPy has frozen its stream
    cut = len(records) - int(fraction * len(records))
    return {"train": records[:cut], other: records[cut:]}


def _other_part(splits: Splits) -> tuple[str, float]:
    other = next(name for name in splits.parts if name != "train")
    share = splits.parts[other]
    return other, share if isinstance(share, float) else 0.0


def _classes_as_keras(listing: Listing) -> list[Ints]:
    """The records of each class in Keras' order, by folder and then by name; rows are one class in their own order."""
    folders = listing.location.kind != "row" and not listing.in_table
    everything = np.arange(len(listing.keys))
    of = listing.labels if folders and listing.labels is not None else np.zeros(len(everything), np.int32)
    ranked = Ranked(everything, of, np.arange(int(of.max(initial=0)) + 1))
    classes = [ranked[i] for i in range(len(ranked.sizes))]
    if folders:
        for i, records in enumerate(classes):
            names = [key.rpartition("/")[::2] for key in listing.keys.take(records)]
            classes[i] = records[sorted(range(len(names)), key=names.__getitem__)]
    return classes


def _named(splits: Splits, column: str | int, listing: Listing) -> dict[str, Ints]:
    """Each part is the records with its values in a column; records with another value are in none."""
    values = _cells(listing, column, splits.column_field)
    wanted = splits.values()
    of = {value: i for i, own in enumerate(wanted.values()) for value in own}
    own = np.fromiter((of.get(value, -1) for value in values), np.int16, len(values))
    bins = {name: np.flatnonzero(own == i) for i, name in enumerate(wanted)}
    for name, records in bins.items():
        if not len(records):
            said = f"a value of {splits.files[name].file!r}" if name in splits.files else " or ".join(map(repr, wanted[name][:_SHOWN]))
            message = f"no record has {said} in the column {column!r}, so `{name}` would be empty"
            raise OpError("PG404", message, field=f"parts.{name}", help=f"the column holds {quoted(sorted(set(values)))}")
    return bins


def _cells(listing: Listing, column: str | int, field: str) -> tuple[str, ...]:
    if listing.cells is None:
        raise InternalError("a column of records without columns")
    return listing.cells(column, field)


def count_groups(splits: Splits, listing: Listing) -> int:
    """Counts the groups that stay whole."""
    groups = _groups(splits, listing)
    return len(groups.names) if groups is not None else 0


def _groups(splits: Splits, listing: Listing) -> _Groups | None:
    if splits.group is None:
        return None
    n = len(listing.keys)
    if not isinstance(splits.group, PathGroup):
        cells = _cells(listing, splits.group, "group")
        return _Groups(*numbered(cells, len(cells)))
    names, of = numbered(compile_pattern(splits.group.path).first_groups(chain.from_iterable(listing.keys.blocks())), n)
    if None in names:
        without = (of == names.index(None)).nonzero()[0]
        first = listing.keys[int(without[0])]
        message = f"the pattern of `group` matches {n - len(without)} of {n} paths, and a record without a group is {first!r}"
        help_ = "write a regular expression that is found in every relative path; with `|$` at its end, all others are one group"
        raise OpError("PG105", message, field="group.path", help=help_)
    return _Groups(tuple(decode(name) for name in names if name is not None), of)


def numbered(names: Iterable[T], count: int) -> tuple[tuple[T, ...], Ints]:
    """Numbers distinct names in order of appearance; returns them, and the number of each record's name."""
    place: dict[T, int] = {}
    of = np.fromiter((place.setdefault(name, len(place)) for name in names), np.int32 if count < 2**31 else np.int64, count)
    return tuple(place), of


def _refuse_leaks(bins: Mapping[str, Ints], groups: _Groups | None, listing: Listing) -> None:
    if groups is None:
        return
    home: Ints = np.full(len(groups.names), -1, np.int16)
    first: Ints = np.zeros(len(groups.names), np.int64)
    names = tuple(bins)
    for part, records in enumerate(bins.values()):
        of = groups.of[records]
        torn = np.flatnonzero((home[of] >= 0) & (home[of] != part))
        if len(torn):
            group, record = int(of[torn[0]]), int(records[torn[0]])
            files = f"{listing.keys[int(first[group])]!r} and {listing.keys[record]!r}"
            message = f"the group {groups.names[group]!r} is in `{names[home[group]]}` and in `{names[part]}`: {files}"
            help_ = "here the data says which split a record is in; move the records, or drop `group`"
            raise OpError("PG302", message, field="group", help=help_)
        home[of], first[of[::-1]] = part, records[::-1]
