"""Splits of time series by time: each series is cut at the ends of the parts, and a window is in the part that holds its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from pipegen.data.rounding import SLACK, exact
from pipegen.errors import InternalError, OpError
from pipegen.ops.fields.notes import LeftOut, Note, count
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sampling_sections import REST, Splits
from pipegen.ops.sources.listing.base import Listing, Parts, Timeline, shards_of


def by_time(splits: Splits, listing: Listing) -> Listing:
    """Cuts the series of a listing at the ends of the parts, if `splits` are by time: each entry is then a part of a series, with the
    number of its first window. Windows of no part are left out. Raises `OpError`: `PG301` for a part that does not begin after the one
    before, or whose text is not a time; `PG302` for records that are no windows."""
    rules, line = splits.by_time, listing.timeline
    if rules is None or (not splits.parts and splits.folds is None):
        return listing
    if line is None:
        raise OpError("PG302", "`method: time` divides windows of time series", field="method", help="use the source `series`")
    if splits.folds is None and "train" in splits.parts and next(iter(splits.parts)) != "train":
        message = "`train` is not the first part, so the model would be measured on times before those that it learns from"
        raise OpError("PG301", message, field="parts.train", help="list parts in order of time, `train` first")
    shards = shards_of(listing)
    names, bounds = (*splits.parts,), _bounds(splits, line)
    if splits.folds is not None:
        names, bounds = _with_folds(splits, line, names)
    firsts = line.firsts[shards.numbers]
    lead = line.lead if rules.history else 0
    begins: Ints = np.zeros((len(names), len(firsts)), np.int64)
    counts = np.zeros_like(begins)
    for part in range(len(names)):
        low, high = bounds[part][shards.numbers], bounds[part + 1][shards.numbers]
        high = high if part + 1 == len(names) else high - rules.gap
        first = np.maximum(-(-(low - lead - firsts) // line.stride), 0)
        last = np.minimum((high - line.span - firsts) // line.stride, shards.rows - 1)
        begins[part], counts[part] = first, np.maximum(last - first + 1, 0)
    own: Ints = np.tile(np.arange(len(firsts)), len(names))  # the series of each part, part after part, as `every_value` reads them
    offsets, rows = begins.reshape(-1), counts.reshape(-1)
    codes: Ints = np.repeat(np.arange(len(names), dtype=np.int16), len(firsts))
    rows = np.where(np.array([name != _UNUSED for name in names])[codes], rows, 0)
    some = np.flatnonzero(rows)
    left = shards.total - int(rows.sum())
    notes = [Note("PG411", _said(left, shards.total), None, None, "info", (LeftOut(left, _ONE, _SEVERAL),))] if left > 0 else []
    notes += _without_windows(line.begins[shards.numbers], rows.reshape(len(names), -1), names, line.stride)
    cut = listing.take(own[some])
    held = shards_of(cut)
    sizes = cut.location.sizes.astype(np.int64) // np.maximum(held.rows, 1) * rows[some]
    return replace(
        cut,
        notes=(*listing.notes, *notes),
        location=replace(cut.location, sizes=sizes),
        parts=Parts(names, codes[some]),
        shards=replace(held, rows=rows[some], offsets=offsets[some]),
        cells=listing.cells_of(own[some], rows[some], offsets[some]),
    )


def _without_windows(begins: Ints, rows: Ints, names: tuple[str, ...], stride: int) -> Iterator[Note]:
    """Yields a note for each part after the first that has no window of some series, and one for series without a window in any part, from
    the windows of each part and shard."""
    series, own = np.unique(begins, return_inverse=True)
    each = np.array([np.bincount(own, weights=part, minlength=len(series)) for part in rows])
    if lost := int((each.sum(0) == 0).sum()):
        message = f"{lost:,} of {len(series):,} series have no window in any part, so they are left out"
        yield Note("PG493", message, "use a shorter window or `gap`, or longer parts")
    for name, found in zip(names[1:], each[1:], strict=True):
        none = int(((found == 0) & (each.sum(0) > 0)).sum())
        if name != _UNUSED and none > 0:
            message = f"{none:,} of {len(series):,} series have no window in `{name}`, so nothing is measured on them"
            yield Note("PG493", message, "use a `stride` of 1, or a longer part" if stride > 1 else "make the part longer")


_UNUSED = ""  # the time behind the validation of a fold
_ONE, _SEVERAL = "window in no part", "windows in no part"


def _said(left: int, total: int) -> str:
    return f"{left:,} of {count(total, 'window')} are in no part: they reach over the end of one, or lie in a gap"


def _bounds(splits: Splits, line: Timeline) -> list[Ints]:
    """Returns the row at which each part begins in the series of each shard, with the end of the last: int64 `(shards,)` each."""
    sizes = [*splits.parts.values()]
    begins = [line.begins]
    if not sizes:
        return [line.begins, line.ends]
    texts = {name: size for name, size in splits.parts.items() if isinstance(size, str) and size != REST}
    if texts:
        begins += _at_times(splits, line)
        return [*begins, line.ends]
    numbers = sizes[1:] if sizes[0] == REST else sizes
    counts = [size for size in numbers if isinstance(size, int)]
    if len(counts) == len(numbers):
        after = [
            *accumulate(reversed(counts if sizes[0] == REST else counts[1:]))
        ]  # rows from the beginning of each later part to the end of its series
        begins += [np.maximum(line.ends - rows, line.begins) for rows in reversed(after)]
        first = sizes[0]
        if isinstance(first, int):
            begins[0] = np.maximum(line.ends - first - (after[-1] if after else 0), line.begins)
        return [*begins, line.ends]
    shares = [exact(size) for size in numbers if isinstance(size, float)]
    total = sum(shares, Fraction(0))
    shares = [1 - total, *shares] if sizes[0] == REST else shares
    ends = [*accumulate(shares)]
    if abs(1 - ends[-1]) <= SLACK:
        ends[-1] = Fraction(1)
    found = [_at_share(line, share) for share in ends]
    return [*begins, *found]


def _at_share(line: Timeline, share: Fraction) -> Ints:
    """Returns the row of each shard's series before which a share of the rows lies: of all rows in order of time, or else of its own."""
    if share >= 1:
        return line.ends
    if line.times is None:
        lengths = line.ends - line.begins
        return line.begins + (lengths * share.numerator) // share.denominator
    rows = np.sort(line.times) if len(np.unique(line.begins)) > 1 else line.times
    at = min(len(rows) * share.numerator // share.denominator, len(rows) - 1)
    return _rows_before(line, rows[at])


def _rows_before(line: Timeline, time: Any) -> Ints:
    """Returns the first row of each shard's series that is not before a time: int64 `(shards,)`."""
    if line.times is None:
        raise InternalError("rows have no times")
    begins, first, own = np.unique(line.begins, return_index=True, return_inverse=True)  # the stretches of a series share its rows
    ends = line.ends[first]
    before = [np.searchsorted(line.times[begin:end], time, side="left") for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    return (begins + np.array(before, np.int64))[own]


def _at_times(splits: Splits, line: Timeline) -> list[Ints]:
    """Returns the rows at which the parts after the first begin, by their times."""
    if line.times is None or line.parse is None:
        name = next(name for name, size in splits.parts.items() if isinstance(size, str) and size != REST)
        message = f"`{name}` begins at a time, and the rows have none"
        raise OpError("PG301", message, field=f"parts.{name}", help="name the column of the times in the source: `order: COLUMN`")
    found, before = [], None
    for name, size in [*splits.parts.items()][1:]:
        try:
            time = line.parse(str(size))
        except ValueError:
            message = f"`{name}` begins at {size!r}, which is not a time as in the column `order`"
            raise OpError("PG301", message, field=f"parts.{name}", help="such as `2024-05-31`, or the number in the column") from None
        if before is not None and time <= before:
            raise OpError(
                "PG301", f"`{name}` begins no later than the part before it", field=f"parts.{name}", help="list parts in order of time"
            )
        found.append(_rows_before(line, time))
        before = time
    return found


def _with_folds(splits: Splits, line: Timeline, names: tuple[str, ...]) -> tuple[tuple[str, ...], list[Ints]]:
    """Divides what the parts leave into rolling folds: the time is cut into one more stretch than there are folds; each is validation once,
    but the first, and training is all before it."""
    folds = splits.folds
    if folds is None:
        raise InternalError("the splits have no folds")
    taken = sum((exact(size) for size in splits.parts.values() if isinstance(size, float)), Fraction(0))
    room, parts = 1 - taken, folds.count + 1
    begin, end = (room * Fraction(folds.fold + i, parts) for i in (1, 2))
    after = [_at_share(line, room + share) for share in accumulate(exact(s) for s in splits.parts.values() if isinstance(s, float))]
    return ("train", "validation", _UNUSED, *names), [
        line.begins,
        _at_share(line, begin),
        _at_share(line, end),
        _at_share(line, room),
        *after,
    ]
