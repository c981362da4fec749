"""Assigns the records of shards to splits: whole shards at no cost, single records by their hashes at a bit each."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.shards.bitmap import BLOCK, BitmapWriter, bitmap_of
from pipegen.data.shards.ids import mix64, shard_bases, split_salt
from pipegen.data.shards.kept import LEAST, bitmaps_key, kept_or_counted
from pipegen.data.shards.selected import Selected
from pipegen.data.splits import assign, intervals, shares
from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.ops.sources.listing.base import Parts
from pipegen.ops.sources.listing.shards import listed_labels, shards_of
from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipegen.data.shards.bitmap import Bitmap
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.spec.models import Splits

Array = np.ndarray[Any, Any]

_AT_ONCE = 256 * BLOCK
"""Records that are hashed at a time."""
RANKED = 10**7
"""The most records that are ranked, each under a name of its own."""


def assign_shards(
    splits: Splits, listing: Listing, names: Sequence[str], source_name: str, folder: Path | None = None
) -> dict[str, Selected]:
    """Assigns the records of shards to splits, as `assign` does others; what takes long to count is kept in `folder`.

    Raises:
        OpError: As `assign`, and `PG302` for a method that has to rank more records than `RANKED`.
    """
    members = _assigned(splits, listing, names, source_name, folder)
    kept = shards_of(listing).kept
    return members if kept is None else {name: with_any(own.among(kept)) for name, own in members.items()}


def _assigned(splits: Splits, listing: Listing, names: Sequence[str], source_name: str, folder: Path | None) -> dict[str, Selected]:
    """The records of each split, also those that do not count."""
    rows, offsets = shards_of(listing).rows, shards_of(listing).offsets
    if splits.method == "folder" and listing.parts is None:
        listing = replace(listing, parts=Parts.hold([_part(splits, key) for key in listing.keys]))
    dealt = bool(splits.parts) or splits.folds is not None
    if listing.parts is not None or not dealt or (splits.method == "hash" and splits.group is not None):
        members = assign(splits, listing, names)
        return {name: Selected(rows, files[rows[files] > 0].astype(np.int64), offsets=offsets) for name, files in members.items()}
    if splits.method == "hash":
        bases = shard_bases(source_name, listing, rows)
        size = int(rows.sum())
        if folder is None or size < LEAST:
            bitmaps = by_hash(splits, rows, bases, offsets)
        else:
            key = bitmaps_key(splits, listing, source_name)
            bitmaps = kept_or_counted(folder, key, names, size, lambda: by_hash(splits, rows, bases, offsets))
    else:
        bitmaps = _by_rank(splits, listing, names)
    return {name: with_any(Selected(rows, np.flatnonzero(rows), bitmaps[name], offsets)) for name in names}


def _part(splits: Splits, key: str) -> str:
    """The split whose folder a file lies in; empty where it is none's."""
    return next((name for name, folder in splits.parts.items() if key.startswith(f"{str(folder).strip('/')}/")), "")


def _by_rank(splits: Splits, listing: Listing, names: Sequence[str]) -> dict[str, Bitmap]:
    """Ranks every record beside all others, as those of a listing of single files: the records of each part."""
    shards = shards_of(listing)
    if shards.total > RANKED:
        raise _too_many(splits, shards.total)
    labels = listed_labels(listing) if splits.stratify is not None else None
    offsets = [0] * len(shards.rows) if shards.offsets is None else shards.offsets.tolist()
    files = zip(listing.keys, offsets, shards.rows.tolist(), strict=True)
    every = (f"{key}#{row}" for key, first, n in files for row in range(first, first + n))
    counted = np.arange(shards.total) if shards.kept is None else np.flatnonzero(shards.kept)
    keys = Strings.hold(every if shards.kept is None else compress(every, shards.kept.tolist()))
    labels = labels if labels is None else labels[counted]
    records = replace(listing, keys=keys, sizes=np.zeros(len(keys), np.uint32), labels=labels, shards=None)
    found = {}
    for name, members in assign(splits, records, names).items():
        mask: Array = np.zeros(shards.total, bool)
        mask[counted[members]] = True
        found[name] = bitmap_of(mask)
    return found


def _too_many(splits: Splits, total: int) -> OpError:
    """Says that records cannot be ranked, and what goes without."""
    by = "folds" if splits.folds is not None else "stratify" if splits.stratify is not None else "method"
    what = f"`method: {splits.method}`" if by == "method" else f"`{by}`"
    message = f"{what} puts all records in one order, and there are {total:,} of them, more than {RANKED:,}"
    help_ = f"leave `{by}` out: `method: hash` places each record by itself"
    if by == "method":
        parts = {name: f"{max(size * 10**6 // total, 1) / 10**6:f}" for name, size in splits.parts.items() if isinstance(size, int)}
        sized = f", parts: {{{', '.join(f'{name}: {size}' for name, size in parts.items())}}}" if parts else ""
        help_ = write(f"splits: {{method: hash{sized}}}", "spec", "{} places each record by itself", shown=f"method: hash{sized}")
    return OpError("PG302", message, field=by, help=help_)


def by_hash(splits: Splits, rows: Array, bases: Array, offsets: Array | None = None) -> dict[str, Bitmap]:
    """Counts the records of each part, by intervals of the hashes of their ids, so that no record ever moves."""
    share = shares(splits.parts)
    numbered = {i: (part, BitmapWriter(int(rows.sum()))) for i, part in enumerate(share) if part}  # and not what no part asks for
    salt = split_salt(splits.seed)
    # The bases of ids end in zeros, to which the row is added.
    for ids in _ids(rows, bases if offsets is None else bases + offsets.astype(np.uint64)):
        own = intervals(mix64(ids ^ salt), share.values())
        for i, (_, writer) in numbered.items():
            writer.add(own == i)
    return {part: writer.done() for part, writer in numbered.values()}


def _ids(rows: Array, bases: Array) -> Iterator[Array]:
    """The ids of all records, some at a time."""
    ends = np.cumsum(rows, dtype=np.int64)
    firsts = ends - rows
    size = int(ends[-1]) if len(ends) else 0
    for start in range(0, size, _AT_ONCE):
        stop = min(start + _AT_ONCE, size)
        here = slice(int(np.searchsorted(ends, start, side="right")), int(np.searchsorted(firsts, stop, side="left")))
        counts = np.minimum(ends[here], stop) - np.maximum(firsts[here], start)
        origin: Array = np.repeat(bases[here] - firsts[here].astype(np.uint64), counts)  # less its first record, plus the record: the row
        yield mix64(origin + np.arange(start, stop, dtype=np.uint64))


def with_any(everywhere: Selected) -> Selected:
    """Returns the same records, with those shards alone that hold any."""
    return replace(everywhere, shards=everywhere.shards[np.diff(everywhere.starts) > 0])
