"""The index of records: offset and length of each part of each record in its shard. It is built once per shard and kept."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.kept import INDEXES, keep_or_warn, open_kept
from pipegen.lazy import np
from pipegen.memory import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipegen.ops.sources.features.predicate import Rows as Columns
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.shards.findings import Findings
    from pipegen.ops.sources.shards.paths import Found

    T = TypeVar("T")

FORMAT = 1
_EVERY = 5.0  # seconds between writes of a partial index: at most this much is lost if indexing is interrupted
_THREADS = 16
_ALIGNED = 64
_MAGIC = b"pipegen index\n"
LONGEST = 2**31 - 1  # largest part of a record in bytes: TensorFlow counts the bytes of a string with 31 bits


@dataclass(frozen=True, eq=False)
class ShardRecords:
    """The records of one shard."""

    offsets: Ints  # start of each part of each record, int64 `(n, parts)`
    lengths: Ints  # bytes of each part, int32 `(n, parts)`
    damage: str = ""  # damage after those records, as `at byte N, record M: WHY`, or ""
    findings: Findings = field(default_factory=dict)  # other findings; see `findings`


@dataclass(frozen=True, eq=False)
class RecordIndex:
    """The records of all shards of a source, shard after shard."""

    first: Ints  # number of each shard's first record: int64 `(shards + 1,)`, with the end
    offsets: Ints  # int64 `(n, parts)`
    lengths: Ints  # int32 `(n, parts)`
    damage: tuple[str, ...]  # damage of each shard, or ""
    digests: tuple[str, ...]  # hash of the layout of each shard, in hexadecimal
    findings: tuple[Findings, ...] = ()  # other findings in each shard

    @property
    def rows(self) -> Ints:
        """The number of records of each shard, int64."""
        return self.first[1:] - self.first[:-1]

    def of(self, shard: int) -> tuple[Ints, Ints]:
        own = slice(int(self.first[shard]), int(self.first[shard + 1]))
        return self.offsets[own], self.lengths[own]


class _Entry(NamedTuple):
    """One shard in an index file: its state when it was indexed, and its records."""

    key: str
    size: int
    mtime: int
    rows: int
    damage: str
    digest: str
    findings: Findings


_Records: TypeAlias = tuple[_Entry, ShardRecords]


def build_index(
    shards: Sequence[Found],
    index: Callable[[str, int], ShardRecords],
    *,
    parts: int,
    name: str,
    folder: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> RecordIndex:
    """Indexes shards, and reads kept indexes of shards with the same size and modification time.

    Args:
        shards: The files.
        index: Finds the records of a file, given path and size; runs in threads.
        parts: Number of parts of a record.
        name: Identifies the source and what is indexed.
        folder: Folder of kept indexes, if any.
        progress: Called with the number of shards done, now and then.

    Raises:
        OpError: `PG430` for an unreadable shard.
    """
    kept = _Kept(folder, hashlib.blake2b(f"{FORMAT}\0{name}\0{parts}".encode(), digest_size=16).hexdigest(), parts)
    known = kept.read()
    keys = [(shard.key, shard.size, shard.mtime) for shard in shards]
    found = {place: known[key] for place, key in enumerate(keys) if key in known}
    missing = [place for place in range(len(shards)) if place not in found]
    fresh: list[_Records] = []
    written = time.monotonic()

    def of(place: int) -> tuple[int, ShardRecords]:
        shard = shards[place]
        try:
            return place, index(shard.path, shard.size)
        except OSError as error:
            message = f"{shard.path!r} cannot be read: {(error.strerror or str(error)).lower()}"
            raise OpError("PG430", message, field="path") from None

    pool = _threads()
    try:
        for place, records in pool.map(of, missing):
            digest = hashlib.blake2b(records.lengths.astype("<i4", copy=False).tobytes(), digest_size=8).hexdigest()
            entry = _Entry(*keys[place], len(records.offsets), records.damage, digest, records.findings)
            found[place] = entry, records
            fresh.append(found[place])
            if progress is not None:
                progress(len(found))
            if time.monotonic() - written > _EVERY:
                kept.add(fresh)
                fresh, written = [], time.monotonic()
    finally:
        pool.shutdown(cancel_futures=True)
        if fresh and len(found) < len(shards):
            kept.add(fresh)
    every = [found[place] for place in range(len(shards))]
    if missing or kept.scattered:
        kept.replace(every)
        if len(missing) == len(shards) and (again := kept.read()):  # mapped from the file, in place of memory
            every = [again.get(key, records) for key, records in zip(keys, every, strict=True)]
    return _together(every, parts, kept.whole(every))


def _together(every: Sequence[_Records], parts: int, whole: tuple[Ints, Ints] | None) -> RecordIndex:
    """Joins the records of all shards; `whole` has the arrays if one file holds them in one piece."""
    entries = [entry for entry, _ in every]
    first = np.cumsum([0, *(entry.rows for entry in entries)], dtype=np.int64)
    if whole is None:
        offsets = np.concatenate([records.offsets for _, records in every] or [np.zeros((0, parts), np.int64)])
        lengths = np.concatenate([records.lengths for _, records in every] or [np.zeros((0, parts), np.int32)])
        whole = offsets, lengths
    damage, digests, findings = zip(*((e.damage, e.digest, e.findings) for e in entries), strict=True) if entries else ((), (), ())
    return RecordIndex(first, *whole, damage, digests, findings)


class _Kept:
    """The files of one index: a complete one, before that one file per interval of indexing."""

    def __init__(self, folder: Path | None, key: str, parts: int) -> None:
        self._folder, self._key, self._parts = folder, key, parts
        self._names: list[str] = []
        self._whole: tuple[list[_Entry], Ints, Ints] | None = None

    @property
    def scattered(self) -> bool:
        return len(self._names) > 1

    def read(self) -> dict[tuple[str, int, int], _Records]:
        """Reads the kept records, by key, size and modification time of each shard."""
        found: dict[tuple[str, int, int], _Records] = {}
        self._names, self._whole = [], None
        if self._folder is None:
            return found
        with suppress(OSError):
            self._names = sorted(name for name in os.listdir(self._folder) if name.startswith(self._key) and name.endswith(f".{INDEXES}"))
        for name in self._names:
            with suppress(OSError, ValueError, KeyError, TypeError):
                entries, offsets, lengths = self._whole = self._mapped(name)
                at = 0
                for entry in entries:
                    own = slice(at, at + entry.rows)
                    found[entry[:3]] = entry, ShardRecords(offsets[own], lengths[own], entry.damage, entry.findings)
                    at += entry.rows
        return found

    def whole(self, every: Sequence[_Records]) -> tuple[Ints, Ints] | None:
        """Returns the arrays of the index file, if it has exactly these shards in this order."""
        if self._whole is None or self.scattered or [e[:3] for e in self._whole[0]] != [e[:3] for e, _ in every]:
            return None
        return self._whole[1:]

    def _mapped(self, name: str) -> tuple[list[_Entry], Ints, Ints]:
        """Maps a file; `ValueError` if it is incomplete."""
        assert self._folder is not None  # noqa: S101 - called by `read` only
        with open_kept(self._folder, name) as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                raise ValueError(name)
            length = int.from_bytes(stream.read(8), "little")
            size = os.fstat(stream.fileno()).st_size
            if length > size:
                raise ValueError(name)
            entries = [_Entry(*entry) for entry in json.loads(stream.read(length))]
            shape = rows, parts = sum(entry.rows for entry in entries), self._parts
            start = _up(len(_MAGIC) + 8 + length)
            second = start + _up(8 * rows * parts)
            if size != second + 4 * rows * parts:
                raise ValueError(name)
            if not rows * parts:
                return entries, np.zeros(shape, np.int64), np.zeros(shape, np.int32)
            return entries, np.memmap(stream, "<i8", "c", start, shape), np.memmap(stream, "<i4", "c", second, shape)

    def add(self, entries: Sequence[_Records]) -> None:
        """Writes another file with newly indexed shards."""
        self._write(f"{self._key}-{secrets.token_hex(4)}.{INDEXES}", entries)

    def replace(self, entries: Sequence[_Records]) -> None:
        """Writes one file for all shards, and removes the others."""
        if self._folder is None:
            return
        name = f"{self._key}.{INDEXES}"
        if self._write(name, entries):
            for other in self._names:
                if other != name:
                    with suppress(OSError):
                        os.unlink(self._folder / other)
            self._names, self._whole = [name], None

    def _write(self, name: str, entries: Sequence[_Records]) -> bool:
        written = keep_or_warn(self._folder, name, _content(entries), "the index of the records")
        if written and name not in self._names:
            self._names.append(name)
        return written


def _content(entries: Sequence[_Records]) -> Iterator[bytes]:
    head = json.dumps([entry for entry, _ in entries]).encode()
    yield _MAGIC + len(head).to_bytes(8, "little") + head
    start, size = len(_MAGIC) + 8 + len(head), sum(records.offsets.nbytes for _, records in entries)
    yield bytes(_up(start) - start)
    yield from (records.offsets.astype("<i8", copy=False).tobytes() for _, records in entries)
    yield bytes(_up(size) - size)
    yield from (records.lengths.astype("<i4", copy=False).tobytes() for _, records in entries)


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def counted(rows: int, damage: str = "", findings: Findings | None = None) -> ShardRecords:
    """Returns the index of a shard whose library finds records by number."""
    return ShardRecords(np.zeros((rows, 0), np.int64), np.zeros((rows, 0), np.int32), damage, findings or {})


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(_THREADS, max(1, 4 * available_cores())))


class InShard(NamedTuple):
    """Records of one shard: its file, and the places of their parts as in `ShardRecords`."""

    file: Found
    offsets: Ints
    lengths: Ints


@dataclass(frozen=True)
class Indexed:
    """Indexed shards."""

    root: str  # their absolute common folder
    shards: Sequence[Found]  # the files
    index: RecordIndex  # the places of their records
    notes: tuple[Note, ...] = ()  # findings
    selects: str = ""  # what selects the records of a file beside its content, such as a table
    folder: Path | None = None  # folder for what is kept of them, if any
    kept: Ints | None = None  # whether each record is used, bool; `None` for all
    cells: Columns | None = None  # the columns of the records; set once they are indexed

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self.index.first[-1])

    @property
    def used(self) -> Ints | None:
        """The numbers of the records that are used; `None` for all."""
        return None if self.kept is None else self.kept.nonzero()[0]

    def kept_as(self, what: str, *about: object) -> str:
        """Names a kept column of these records: a hash of the files, of what selects records in them, and of `about`, as JSON."""
        files = [(shard.key, shard.path, shard.size, shard.mtime) for shard in self.shards]
        content = json.dumps((files, self.index.digests, self.selects, about)).encode()
        return f"{hashlib.blake2b(content, digest_size=16).hexdigest()}-{what}.{INDEXES}"

    def of(self, values: Ints, files: Ints) -> Ints:
        """Returns the values of the records of some files, file by file, of those of all records."""
        first = self.index.first
        return np.concatenate([values[:0], *(values[first[file] : first[file + 1]] for file in files)])

    def place(self, record: int) -> str:
        """Names the place of a record."""
        shard = int(np.searchsorted(self.index.first, record, side="right")) - 1
        return f"{self.shards[shard].path}#{record - int(self.index.first[shard])}"

    @property
    def first(self) -> InShard:
        """The first record of all."""
        shard = int((self.index.rows > 0).argmax())
        offsets, lengths = self.index.of(shard)
        return InShard(self.shards[shard], offsets[:1], lengths[:1])

    def read(self, read: Callable[[InShard], Sequence[T]], what: str, progress: Callable[[int], None] | None = None) -> list[T]:
        """Reads a value of every record, several shards at a time.

        Args:
            read: Reads the values of a shard's records.
            what: Describes them, for errors.
            progress: Called with the number of records read so far.

        Raises:
            OpError: `PG430` for a shard that cannot be read; or as `read`.
        """

        def of(shard: int) -> Sequence[T]:
            if not self.index.rows[shard]:
                return ()
            try:
                return read(InShard(self.shards[shard], *self.index.of(shard)))
            except (OSError, ValueError) as error:  # a kept index hides damage of the file
                raise OpError("PG430", f"{what} of {self.shards[shard].path!r} cannot be read: {error}") from None

        found: list[T] = []
        with _threads() as pool:
            for values in pool.map(of, range(len(self.shards))):
                found += values
                if progress is not None:
                    progress(len(found))
        return found
