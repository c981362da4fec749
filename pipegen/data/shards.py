"""Records of files that hold many each: sets of records, their ids, and their assignment to splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np

from pipegen.data.fingerprint import example_ids, fingerprint
from pipegen.data.splits import assign, intervals, places_each, refuse_unlabelled, shares
from pipegen.diagnostics.diagnostic import write
from pipegen.errors import InternalError, OpError
from pipegen.frozen import dataclass
from pipegen.kept import SPLITS, keep_or_warn, open_kept
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sampling_sections import PathGroup, Splits
from pipegen.ops.sources.listing.base import PREDICTED, Listing, Location, Parts, every_value, shards_of

Array = np.ndarray[Any, Any]

BLOCK = 4096  # records per entry of the directory; its 8 bytes add 1.6 % to the bits
_BYTES = BLOCK // 8
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1).astype(np.uint8)


class Bitmap:
    """A set of records: `bits`, uint8 `(blocks, 512)`, the first record in the lowest bit; and the number of members `before` each block,
    int64 `(blocks + 1,)`, with all at the end."""

    def __init__(self, bits: Array, before: Array) -> None:
        self.bits = bits
        self.before = before

    @classmethod
    def of(cls, packed: Array) -> Bitmap:
        """Counts the members in bits of whole blocks: uint8."""
        bits = packed.reshape(-1, _BYTES)
        return cls(bits, cumulative(_ONES[bits].sum(1, dtype=np.int64)))

    def __len__(self) -> int:
        return int(self.before[-1])

    def select(self, member: Array) -> Array:
        """Finds the records of the given members, counted from 0: int64 `(n,)` each."""
        block = np.searchsorted(self.before, member, side="right") - 1
        counted = np.cumsum(self._unpacked(block), axis=1, dtype=np.int16)
        return block * BLOCK + (counted <= (member - self.before[block])[:, None]).sum(1)

    def rank(self, record: Array) -> Array:
        """Counts the members before each record: int64 `(n,)` each; a record may be one past the last."""
        block = np.minimum(record // BLOCK, len(self.bits) - 1)
        earlier = np.arange(BLOCK) < (record - block * BLOCK)[:, None]
        return self.before[block] + (self._unpacked(block) & earlier).sum(1, dtype=np.int64)

    def _unpacked(self, block: Array) -> Array:
        return np.unpackbits(self.bits[block], axis=1, bitorder="little")


def bitmap_of(mask: Array) -> Bitmap:
    """Makes the bitmap of a mask: bool `(n,)`, true for members."""
    bits = _no_bits(len(mask))
    _put(bits, 0, mask)
    return Bitmap.of(bits)


def _no_bits(size: int) -> Array:
    """Bits of `size` records without members, in whole blocks."""
    return np.zeros(max(1, -(-size // BLOCK)) * _BYTES, np.uint8)


def _put(bits: Array, first: int, mask: Array) -> None:
    """Sets the bits of records from `first` on, a multiple of 8."""
    packed = np.packbits(mask, bitorder="little")
    bits[first // 8 : first // 8 + len(packed)] = packed


ROW_BITS = 24  # bits for the row in an id before it is mixed; the other 40 are the shard's
MIX_SHIFTS = (30, 27, 31)
MIX_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix64(value: Array) -> Array:
    """Mixes 64 bits, a bijection in which every bit of the result depends on every bit given: uint64 of any shape."""
    for shift, factor in zip(MIX_SHIFTS, MIX_FACTORS, strict=False):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return value ^ (value >> np.uint64(MIX_SHIFTS[-1]))


def shard_bases(source_name: str, listing: Listing, rows: Array) -> Array:
    """Computes the base of each shard's ids: 40 bits of its key's hash, then 24 zeros for the row; uint64 `(n,)`. Raises `OpError`: `PG414`
    for a shard with more than 2^24 records; `InternalError` if two shards share those bits by chance."""
    largest = int(np.argmax(rows)) if len(rows) else 0
    if len(rows) and rows[largest] > 1 << ROW_BITS:
        message = f"{listing.keys[largest]!r} holds {int(rows[largest]):,} records, and a file may hold {1 << ROW_BITS:,}"
        raise OpError("PG414", message, help="write the data as several files")
    bases = example_ids(source_name, listing.keys) >> np.uint64(ROW_BITS) << np.uint64(ROW_BITS)
    order = np.argsort(bases, kind="stable")
    same = np.flatnonzero(bases[order[1:]] == bases[order[:-1]])
    # A file may be listed several times, with a part of its records each.
    pairs = ((listing.keys[int(order[i])], listing.keys[int(order[i + 1])]) for i in same)
    first, second = next(((a, b) for a, b in pairs if a != b), ("", ""))
    if first != second:
        raise InternalError(f"two files of records share 40 bits of their hashes by chance; rename one of them: {first!r} and {second!r}")
    return bases


def seed_salt(seed: int, purpose: bytes) -> np.uint64:
    """Hashes a seed and its purpose; mixed into ids, it makes their order depend on the seed and independent of all draws."""
    digest = hashlib.blake2b(seed.to_bytes(8, "big"), digest_size=8, person=purpose)
    return np.uint64(int.from_bytes(digest.digest(), "big"))


FORMAT = 1
_ALIGNED = 64
LEAST = 10**7  # records from which on bitmaps are kept: fewer are counted in a second


def _mapped(folder: Path, name: str, names: Sequence[str], size: int) -> dict[str, Bitmap]:
    """Maps the bitmaps of a file: for each split, the directory and then the bits. Raises `OSError` if it cannot be opened; `ValueError` if
    it has another size."""
    blocks = max(1, -(-size // BLOCK))
    counts = 8 * (blocks + 1)
    bits = -(-counts // _ALIGNED) * _ALIGNED  # where they begin
    with open_kept(folder, name) as stream:
        held = np.memmap(stream, np.uint8, "r").reshape(len(names), bits + blocks * _BYTES)
    return {split: Bitmap(own[bits:].reshape(blocks, _BYTES), own[:counts].view(np.int64)) for split, own in zip(names, held, strict=True)}


@dataclass(frozen=True, eq=False)
class Selected:
    """The records of a split, in stored order; a member is a record's number among them."""

    rows: Array  # records in every shard of the source: int64 `(shards,)`
    shards: Array  # the shards with records of the split, rising: int64 `(m,)`
    bitmap: Bitmap | None = None  # the split's records among all; `None` if it has whole shards
    offsets: Array | None = None  # the first row of each shard, unless that is 0 for all: int64 `(shards,)`

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def first(self) -> Array:
        """The number of each shard's first record among all: int64 `(shards + 1,)`, with the end."""
        return cumulative(self.rows)

    @cached_property
    def starts(self) -> Array:
        """The first member of each of `shards`: int64 `(m + 1,)`, with the end."""
        if self.bitmap is None:
            return cumulative(self.rows[self.shards])
        return np.append(self.bitmap.rank(self.first[self.shards]), len(self.bitmap))

    def locate(self, member: Array) -> tuple[Array, Array]:
        """Finds the shard and the row in it of members: int64 `(n,)` each."""
        shard, record = self._find(member)
        row = record - self.first[shard]
        return shard, row if self.offsets is None else row + self.offsets[shard]

    def numbers(self, member: Array) -> Array:
        """Finds the numbers of members among the records of all shards: int64 `(n,)`."""
        return self._find(member)[1]

    def _find(self, member: Array) -> tuple[Array, Array]:
        at = np.searchsorted(self.starts, member, side="right") - 1
        shard = self.shards[at]
        if self.bitmap is None:
            return shard, self.first[shard] + member - self.starts[at]
        return shard, self.bitmap.select(member)

    def among(self, kept: Array) -> Selected:
        """Intersects with a mask of all records, bool `(records,)`."""
        mine: Array = np.zeros(int(self.first[-1]), bool)
        mine[self.numbers(np.arange(len(self)))] = True
        return Selected(self.rows, self.shards, bitmap_of(mine & kept), self.offsets)

    def blocks(self, block_rows: Array | None) -> Array:
        """The first member of each block, int64 with the end. A block is a shard, or `block_rows` of its records."""
        if block_rows is None:
            return self.starts
        each = np.maximum(block_rows[self.shards], 1)
        # The rows that a shard's offset cuts off its first block.
        before = np.zeros_like(each) if self.offsets is None else self.offsets[self.shards] % each
        counts = -(-(self.rows[self.shards] + before) // each)
        number = np.arange(counts.sum()) - np.repeat(cumulative(counts)[:-1], counts)
        within = np.maximum(number * np.repeat(each, counts) - np.repeat(before, counts), 0)
        if self.bitmap is None:
            return np.append(np.repeat(self.starts[:-1], counts) + within, self.starts[-1])
        return np.append(self.bitmap.rank(np.repeat(self.first[self.shards], counts) + within), len(self.bitmap))

    def gather(self, column: Array) -> Array:
        """Selects the split's entries of a column that covers all records of the source."""
        if self.bitmap is not None:
            return column[np.unpackbits(self.bitmap.bits.reshape(-1), count=len(column), bitorder="little").view(bool)]
        return np.concatenate([column[self.first[s] : self.first[s + 1]] for s in self.shards] or [column[:0]])


@dataclass(frozen=True, eq=False)
class InShards:
    """Records of a split that lie many in a file: the base of the ids in each shard, uint64 `(shards,)`; the reader's number of each file,
    int64 `(shards,)`; and the absolute paths of all files."""

    selected: Selected
    bases: Array
    numbers: Array
    files: Strings


class OnAccess(Sequence[str]):
    """A sequence of texts, each of which is made when it is read."""

    def __init__(self, count: int, text: Callable[[int], str]) -> None:
        self._count, self._text = count, text

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        return self._text(i % len(self))


def names_of(selected: Selected, name: Callable[[int], str]) -> OnAccess:
    """The names of a split's records, `FILE#ROW`; `name` has those of the files."""

    def text(member: int) -> str:
        shard, row = selected.locate(np.array([member]))
        return f"{name(int(shard[0]))}#{int(row[0])}"

    return OnAccess(len(selected), text)


def cumulative(rows: Array) -> Array:
    """Sums the rows before each, int64, with the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(rows, dtype=np.int64)])


_AT_ONCE = 256 * BLOCK  # records hashed at a time
RANKED = 10**7  # the most records that are ranked, each by its own name


def assign_shards(
    splits: Splits, listing: Listing, names: Sequence[str], source_name: str, folder: Path | None, unlabelled: Array | None = None
) -> dict[str, Selected]:
    """Assigns the records of shards to splits, like `assign`; keeps what takes long to count in `folder`. Raises `OpError` as `assign`;
    `PG302` for a method that would rank more records than `RANKED`."""
    if unlabelled is None or not unlabelled.any():
        return _assign_shards(splits, listing, names, source_name, folder)
    held, each = shards_of(listing), places_each(splits, listing)
    unlabelled = unlabelled if held.kept is None else unlabelled & held.kept
    labelled = ~unlabelled if held.kept is None else held.kept & ~unlabelled
    given = listing if each else replace(listing, shards=replace(held, kept=labelled))
    members = _assign_shards(splits, given, names if each else [name for name in names if name != PREDICTED], source_name, folder)
    for name, own in members.items() if each else ():
        refuse_unlabelled(name, names_of(own.among(unlabelled), listing.location.paths.__getitem__))
    if each:
        unlabelled[members[PREDICTED].numbers(np.arange(len(members[PREDICTED])))] = True
    predicted = Selected(held.rows, np.flatnonzero(held.rows), bitmap_of(unlabelled), held.offsets)
    return {**members, PREDICTED: with_any(predicted)}


def _assign_shards(splits: Splits, listing: Listing, names: Sequence[str], source_name: str, folder: Path | None) -> dict[str, Selected]:
    rows, offsets, kept = shards_of(listing).rows, shards_of(listing).offsets, shards_of(listing).kept
    if splits.method == "folder" and listing.parts is None:
        folders = {name: f"{str(folder).strip('/')}/" for name, folder in splits.parts.items()}
        homes = [next((name for name, folder in folders.items() if key.startswith(folder)), "") for key in listing.keys]
        listing = replace(listing, parts=Parts.hold(homes))
    dealt = bool(splits.parts) or splits.folds is not None
    by_file = listing.parts is not None or not dealt or (splits.method == "hash" and splits.group is not None)
    if by_file and not splits.columns():
        files = assign(splits, listing, names)
        members = {name: Selected(rows, own[rows[own] > 0].astype(np.int64), offsets=offsets) for name, own in files.items()}
    else:
        if splits.columns() or splits.method != "hash":
            bitmaps = _each(splits, listing, names)
        else:
            bitmaps = _by_id(splits, listing, names, source_name, folder)
        members = {name: with_any(Selected(rows, np.flatnonzero(rows), bitmaps[name], offsets)) for name in names}
    return members if kept is None else {name: with_any(own.among(kept)) for name, own in members.items()}


def _by_id(splits: Splits, listing: Listing, names: Sequence[str], source_name: str, folder: Path | None) -> dict[str, Bitmap]:
    """Assigns records by their hashed ids; keeps the bitmaps of many records in a file, by the data, the ids and the section."""
    shards = shards_of(listing)
    count = partial(by_hash, splits, shards.rows, shard_bases(source_name, listing, shards.rows), shards.offsets)
    if folder is None or shards.total < LEAST:
        return count()
    covered = {"data": fingerprint(listing), "source": source_name, "splits": splits.model_dump(mode="json"), "format": FORMAT}
    name = f"{hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()[:32]}.{SPLITS}"
    try:
        return _mapped(folder, name, names, shards.total)
    except (OSError, ValueError):
        found = count()
    # The padding behind a directory aligns the bits in memory.
    each = ((found[split].before, found[split].bits) for split in names)
    parts = ((before.data.cast("B"), bytes(-before.nbytes % _ALIGNED), bits.data.cast("B")) for before, bits in each)
    keep_or_warn(folder, name, chain.from_iterable(parts), "which record is in which split")
    return found


def _each(splits: Splits, listing: Listing, names: Sequence[str]) -> dict[str, Bitmap]:
    """Assigns all records as if each were a file: by the values of a column, or ranked by name."""
    shards = shards_of(listing)
    ranks = listing.parts is None and splits.method != "hash" and splits.column is None
    if ranks and shards.total > RANKED:
        raise _too_many(splits, shards.total)
    label = listing.label if splits.stratify == "label" else None
    labels = every_value(listing, label) if label is not None else None
    counted = np.arange(shards.total) if shards.kept is None else np.flatnonzero(shards.kept)
    of = np.repeat(np.arange(len(shards.rows)), shards.rows)[counted]
    if ranks or isinstance(splits.group, PathGroup):
        offsets = [0] * len(shards.rows) if shards.offsets is None else shards.offsets.tolist()
        files = zip(listing.keys, offsets, shards.rows.tolist(), strict=True)
        every = (f"{key}#{row}" for key, first, n in files for row in range(first, first + n))
        keys = Strings.hold(every if shards.kept is None else compress(every, shards.kept.tolist()))
    else:
        keys = listing.keys.take(of)  # names of files, for messages
    columns: dict[str, Any] = {} if label is None or labels is None else {label: labels[counted]}
    parts = None if listing.parts is None else Parts(listing.parts.names, listing.parts.codes[of])
    location = Location(keys, keys, np.zeros(len(keys), np.uint32))
    records = replace(listing, location=location, columns=columns, parts=parts, shards=None)
    records = records if shards.kept is None else replace(records, cells=records.cells_of(counted))
    found = {}
    for name, members in assign(splits, records, names).items():
        mask: Array = np.zeros(shards.total, bool)
        mask[counted[members]] = True
        found[name] = bitmap_of(mask)
    return found


def _too_many(splits: Splits, total: int) -> OpError:
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
    """Assigns records to parts by intervals of their hashed ids, so that records never move when others are added."""
    share = shares(splits.parts)
    numbered = {i: (part, _no_bits(int(rows.sum()))) for i, part in enumerate(share) if part}  # without the unused rest
    salt = seed_salt(splits.seed, b"pipegen.split")
    # The bases of ids end in zeros, to which the row is added.
    for first, ids in _ids(rows, bases if offsets is None else bases + offsets.astype(np.uint64)):
        own = intervals(mix64(ids ^ salt), share.values())
        for i, (_, bits) in numbered.items():
            _put(bits, first, own == i)
    return {part: Bitmap.of(bits) for part, bits in numbered.values()}


def _ids(rows: Array, bases: Array) -> Iterator[tuple[int, Array]]:
    """Yields the ids of all records, some at a time, with the number of the first."""
    ends = np.cumsum(rows, dtype=np.int64)
    firsts = ends - rows
    size = int(ends[-1]) if len(ends) else 0
    for start in range(0, size, _AT_ONCE):
        stop = min(start + _AT_ONCE, size)
        here = slice(int(np.searchsorted(ends, start, side="right")), int(np.searchsorted(firsts, stop, side="left")))
        counts = np.minimum(ends[here], stop) - np.maximum(firsts[here], start)
        origin: Array = np.repeat(bases[here] - firsts[here].astype(np.uint64), counts)  # record - first record = row
        yield start, mix64(origin + np.arange(start, stop, dtype=np.uint64))


def with_any(everywhere: Selected) -> Selected:
    """Drops the shards without any record of the split."""
    return replace(everywhere, shards=everywhere.shards[np.diff(everywhere.starts) > 0])
