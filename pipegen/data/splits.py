"""Assigns each record to a split.

Membership depends on relative paths, labels and `splits` alone: not on the top-level seed, nor on the order of the parts.
Bins are filled in a canonical order: the parts other than `train` by name, then what no part asks for, then `train`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from pipegen.data.deal import deal_by_class, deal_groups, deal_groups_evenly, deal_plain
from pipegen.data.fingerprint import split_hashes
from pipegen.data.rounding import apportion
from pipegen.errors import Attempts, InternalError, OpError
from pipegen.ops.sources.reports import quoted
from pipegen.patterns import compile_pattern
from pipegen.spec.models import ColumnMethod, PathGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.data.deal import Bins
    from pipegen.ops.sources.base import Cells, Listing
    from pipegen.patterns import Found
    from pipegen.spec.models import Folds, Splits

Members = dict[str, tuple[int, ...]]
"""For each split, the indices of its records, rising."""

_REST = ""
SLACK = Fraction(1, 10**6)
"""How far from 1 a sum of fractions still counts as 1."""


def assign(splits: Splits, listing: Listing, names: Sequence[str]) -> Members:
    """Deal the records of a listing out to splits; what the parts do not ask for is in none.

    Args:
        splits: The section of the spec, which `check_splits` has found to be sound.
        listing: The records.
        names: The splits, in the order of the spec.

    Raises:
        OpError: `PG409` when the parts ask for more than there is, `PG105` when the pattern of `group` does not match
            every path, `PG302` when splits given by the data tear a group apart, `PG404` when no row has the value of a part, `PG421` when
            a table has no such column. `field` is relative to `splits`.
    """
    groups = _groups(splits, listing)
    if listing.parts is not None:
        bins = _given(listing.parts)
        _refuse_leaks(bins, groups, listing)
    elif splits.folds is not None:
        bins = _cut_folds(splits, splits.folds, listing, groups)
    elif isinstance(splits.method, ColumnMethod):
        bins = _named(splits, splits.method.column, listing)
        _refuse_leaks(bins, groups, listing)
    elif not splits.parts:
        bins = {names[0]: range(len(listing.keys))}
    elif splits.method == "keras":
        bins = _keras(splits, listing)
    elif splits.method == "hash":
        bins = _by_threshold(splits, groups if groups is not None else listing.keys)
    else:
        bins = _Dealer(splits, listing, groups).parts()
    return {name: tuple(sorted(bins.get(name, ()))) for name in names}


def exact(value: float) -> Fraction:
    """A fraction as it was written, so that 0.1 of 30 is 3."""
    return Fraction(repr(value))


def shares(parts: Mapping[str, object]) -> dict[str, Fraction]:
    """The share of each part in canonical order, and of what no part asks for under the empty name; they sum to 1."""
    given = {name: exact(value) for name, value in parts.items() if isinstance(value, float)}
    total = sum(given.values(), Fraction(0))
    if abs(1 - total) <= SLACK:
        given, total = {name: value / total for name, value in given.items()}, Fraction(1)
    return _canonical({**given, _REST: 1 - total})


def _canonical(parts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    rank = {_REST: 1, "train": 2}
    return {name: parts[name] for name in sorted(parts, key=lambda n: (rank.get(n, 0), n)) if name or parts[name] > 0}


def _sizes(splits: Splits, n: int) -> dict[str, int]:
    """Returns how many of `n` records each part gets, in canonical order."""
    counts = {name: value for name, value in splits.parts.items() if isinstance(value, int)}
    if not counts:
        share = shares(splits.parts)
        return dict(zip(share, apportion(n, list(share.values())), strict=True))
    if sum(counts.values()) > n:
        message = f"the parts ask for {sum(counts.values())} examples and there are {n}"
        raise OpError("PG409", message, field="parts", help="lower the counts, or write fractions such as 0.8")
    wanted = _canonical({**{name: Fraction(c) for name, c in counts.items()}, _REST: Fraction(n - sum(counts.values()))})
    return {name: int(size) for name, size in wanted.items()}


class _Dealer:
    """The method `random`: exact sizes by the rank of hashes."""

    def __init__(self, splits: Splits, listing: Listing, groups: Sequence[str] | None) -> None:
        self._splits = splits
        self._labels = listing.labels if splits.stratify is not None else None
        self._groups = groups
        hashes = split_hashes(listing.keys, splits.seed)
        self.ranked = sorted(range(len(hashes)), key=hashes.__getitem__)
        names = split_hashes(listing.class_names, splits.seed)
        self._class_order = sorted(range(len(names)), key=names.__getitem__)

    def parts(self) -> dict[str, Sequence[int]]:
        """The records of each part, and what is left over under the empty name."""
        sizes = _sizes(self._splits, len(self.ranked))
        return dict(zip(sizes, self.deal(self.ranked, list(sizes.values())), strict=True))

    def deal(self, ranked: Sequence[int], sizes: Sequence[int], *, folds: bool = False) -> Bins:
        """Deal ranked records out to bins of about these sizes, as `stratify` and `group` ask."""
        if self._groups is not None:
            groups = self._ranked_groups(ranked, self._groups)
            if folds or self._labels is not None:
                return deal_groups_evenly(groups, sizes, self._labels)
            return deal_groups(groups, sizes)
        if self._labels is not None:
            return deal_by_class(ranked, sizes, self._labels, self._class_order)
        return deal_plain(ranked, sizes)

    def _ranked_groups(self, ranked: Sequence[int], groups: Sequence[str]) -> list[list[int]]:
        members: dict[str, list[int]] = {}
        for record in ranked:
            members.setdefault(groups[record], []).append(record)
        names = sorted(members)
        hashes = dict(zip(names, split_hashes(names, self._splits.seed), strict=True))
        return [members[name] for name in sorted(names, key=hashes.__getitem__)]


def _cut_folds(splits: Splits, folds: Folds, listing: Listing, groups: Sequence[str] | None) -> dict[str, Sequence[int]]:
    """Cross-validation: what `parts` names is taken first, the same for every fold; the rest is cut into folds."""
    dealer = _Dealer(splits, listing, groups)
    first = dealer.parts() if splits.parts else {_REST: dealer.ranked}
    pool = set(first.pop(_REST, ()))
    ranked = [record for record in dealer.ranked if record in pool]
    sizes = [len(ranked) // folds.count + (i < len(ranked) % folds.count) for i in range(folds.count)]
    bins = dealer.deal(ranked, sizes, folds=True)
    validation = bins.pop(folds.fold)
    return {**first, "train": [record for fold in bins for record in fold], "validation": validation}


def _by_threshold(splits: Splits, names: Sequence[str]) -> dict[str, Sequence[int]]:
    """The method `hash`: each part is an interval of hashes, so that no record ever moves."""
    distinct = dict.fromkeys(names)
    hashes = dict(zip(distinct, split_hashes(distinct, splits.seed), strict=True))
    ends, total = [], Fraction(0)
    for part, share in shares(splits.parts).items():
        total += share
        ends.append((int(total * 2**64), part))
    bins: dict[str, list[int]] = {part: [] for _, part in ends}
    part_of = {name: next(part for end, part in ends if value < end) for name, value in hashes.items()}
    for record, name in enumerate(names):
        bins[part_of[name]].append(record)
    return dict(bins)


def _keras(splits: Splits, listing: Listing) -> dict[str, Sequence[int]]:
    """The method `keras`: of each class, sorted by folder and then by name, the first files are validation; else the first rows."""
    other = next(name for name in splits.parts if name != "train")
    fraction = float(splits.parts[other])
    of_class: dict[int, list[int]] = {}
    folders = listing.rows is None and not listing.in_table
    labels = listing.labels if folders else None
    for record in range(len(listing.keys)):
        of_class.setdefault(labels[record] if labels is not None else 0, []).append(record)
    bins: dict[str, list[int]] = {"train": [], other: []}
    for records in of_class.values():
        if folders:
            records.sort(key=lambda i: listing.keys[i].rpartition("/")[::2])
        cut = int(fraction * len(records))  # in binary floating point, as Keras computes it
        bins[other] += records[:cut]
        bins["train"] += records[cut:]
    return dict(bins)


def _named(splits: Splits, column: str | int, listing: Listing) -> dict[str, Sequence[int]]:
    """The method `{column: NAME}`: each part is the rows with its value there; rows with another value are in none."""
    values = _cells(listing, column, "method.column")
    of = {str(value): name for name, value in splits.parts.items()}
    bins: dict[str, list[int]] = {name: [] for name in splits.parts}
    for record, value in enumerate(values):
        if value in of:
            bins[of[value]].append(record)
    for name, records in bins.items():
        if not records:
            there = sorted(set(values))
            message = f"no row has {splits.parts[name]!r} in the column {column!r}, so `{name}` would be empty"
            raise OpError("PG404", message, field=f"parts.{name}", help=f"the column holds {quoted(there)}")
    return dict(bins)


def wrong_columns(splits: Splits, cells: Cells) -> list[OpError]:
    """Reports what is wrong with the columns that splits name."""
    tried = Attempts()
    if isinstance(splits.method, ColumnMethod):
        tried.of(cells, splits.method.column, "method.column")
    if splits.group is not None and not isinstance(splits.group, PathGroup):
        tried.of(cells, splits.group, "group")
    return tried.errors


def _cells(listing: Listing, column: str | int, field: str) -> tuple[str, ...]:
    if listing.cells is None:
        raise InternalError("a column was asked of records that have none")
    return listing.cells(column, field)


def _given(parts: Sequence[str]) -> dict[str, Sequence[int]]:
    bins: dict[str, list[int]] = {}
    for record, part in enumerate(parts):
        bins.setdefault(part, []).append(record)
    return dict(bins)


def _groups(splits: Splits, listing: Listing) -> tuple[str, ...] | None:
    """The group of each record, or `None` without `group`."""
    if splits.group is None:
        return None
    if not isinstance(splits.group, PathGroup):
        return _cells(listing, splits.group, "group")
    search = compile_pattern(splits.group.path).search
    matches = [search(key) for key in listing.keys]
    missing = [key for key, match in zip(listing.keys, matches, strict=True) if match is None]
    if missing:
        matched = len(matches) - len(missing)
        message = f"the pattern of `group` matches {matched} of {len(matches)} paths, and a record without a group is {missing[0]!r}"
        help_ = "write a regular expression that is found in every relative path; with `|$` at its end, all others are one group"
        raise OpError("PG105", message, field="group.path", help=help_)
    return tuple(_group_name(match) for match in matches if match is not None)


def _group_name(match: Found) -> str:
    return match.whole if match.first is None else match.first


def _refuse_leaks(bins: Mapping[str, Sequence[int]], groups: Sequence[str] | None, listing: Listing) -> None:
    if groups is None:
        return
    home: dict[str, tuple[str, int]] = {}
    for part, records in bins.items():
        for record in records:
            other, first = home.setdefault(groups[record], (part, record))
            if other != part:
                files = f"{listing.keys[first]!r} and {listing.keys[record]!r}"
                message = f"the group {groups[record]!r} is in `{other}` and in `{part}`: {files}"
                help_ = "here the data says which split a record is in; move the records, or drop `group`"
                raise OpError("PG302", message, field="group", help=help_)
