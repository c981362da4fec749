"""The index of records: offset and length of each part of each record in its shard. It is built once per shard and kept."""

from __future__ import annotations

import hashlib
import json
import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.kept import INDEXES, keep_or_warn, open_kept
from pipegen.lazy import np
from pipegen.memory import available_cores
from pipegen.ops.fields.notes import Note
from pipegen.ops.fields.strings import Ints, aligned
from pipegen.ops.sources.shards.findings import Findings
from pipegen.ops.sources.shards.paths import Found
from pipegen.ops.sources.stores.field_types import FieldType

T = TypeVar("T")
FORMAT = 3  # raise it when the files, or the result of an `index_shard`, change: kept indexes are then made again
_EVERY = 5.0  # seconds between writes of a partial index
_WRITING = 20  # as many times as long as a write takes passes until the next
_THREADS = 16
_ALIGNED = 64
_MAGIC = b"pipegen arrays\n"
_CHECK = 4  # bytes of a checksum: of what describes the arrays in a file, and, at its end, of all
_START = len(_MAGIC) + 8 + _CHECK
LONGEST = 2**31 - 1  # largest part of a record in bytes: TensorFlow counts the bytes of a string with 31 bits


@dataclass(frozen=True, eq=False)
class ShardRecords:
    """The records of one shard."""

    offsets: Ints  # start of each part of each record, int64 `(n, parts)`
    lengths: Ints  # bytes of each part, int32 `(n, parts)`
    damage: str = ""  # damage after those records, as `at byte N, record M: WHY`, or ""
    findings: Findings = field(default_factory=dict)  # other findings; see `findings`
    digest: str = ""  # hash of the layout, in hexadecimal; set when it is indexed


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


_NO_DIGITS = str.maketrans("", "", "0123456789")


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
    # Without digits, so that more shards of one set find the index, and other sets in the folder have their own.
    sets = sorted({shard.key.translate(_NO_DIGITS) for shard in shards})
    about = hashlib.blake2b(f"{FORMAT}\0{name}\0{parts}\0{sets}".encode("utf-8", "surrogateescape"), digest_size=16)
    file = f"{about.hexdigest()}.{INDEXES}"
    stamps = [(shard.key, shard.size, shard.mtime) for shard in shards]
    kept = _read(folder, file, parts)
    found = {stamp: kept.shards[stamp] for stamp in stamps if stamp in kept.shards}
    missing = [place for place, stamp in enumerate(stamps) if stamp not in found]

    def of(shard: Found) -> ShardRecords:
        try:
            return index(shard.path, shard.size)
        except OSError as error:
            message = f"{shard.path!r} cannot be read: {(error.strerror or str(error)).lower()}"
            raise OpError("PG430", message, field="path") from None

    def keep() -> None:
        now = {stamp: found[stamp] for stamp in stamps if stamp in found}
        # Another host may have kept them and mapped the file, which on a network file system must then stay.
        if not now.keys() <= _read(folder, file, parts).shards.keys():
            about = [(*stamp, len(one.offsets), one.damage, one.digest, one.findings) for stamp, one in now.items()]
            offsets: list[Ints] = [one.offsets.astype("<i8", copy=False) for one in now.values()]
            lengths: list[Ints] = [one.lengths.astype("<i4", copy=False) for one in now.values()]
            keep_arrays(folder, file, "the index of the records", about, {"offsets": offsets, "lengths": lengths})

    pool, due = _threads(), time.monotonic() + _EVERY
    try:
        for place, records in zip(missing, pool.map(of, (shards[place] for place in missing)), strict=True):
            digest = hashlib.blake2b(records.lengths.astype("<i4", copy=False).tobytes(), digest_size=8).hexdigest()
            found[stamps[place]] = replace(records, digest=digest)
            if progress is not None:
                progress(len(found))
            if (began := time.monotonic()) > due:
                keep()
                due = began + max(_EVERY, _WRITING * (time.monotonic() - began))
    finally:
        pool.shutdown(cancel_futures=True)
        if len(found) > len(shards) - len(missing):
            keep()
    if missing:
        kept = _read(folder, file, parts)  # mapped from the file, in place of memory
    every = [kept.shards.get(stamp, found[stamp]) for stamp in stamps]
    whole = kept.offsets, kept.lengths
    if [*kept.shards] != stamps:
        whole = aligned([kept.offsets[:0], *(one.offsets for one in every)]), aligned([kept.lengths[:0], *(one.lengths for one in every)])
    first = np.cumsum([0, *(len(one.offsets) for one in every)], dtype=np.int64)
    damage, digests, findings = (tuple(getattr(one, name) for one in every) for name in ("damage", "digest", "findings"))
    return RecordIndex(first, *whole, damage, digests, findings)


def keep_arrays(folder: Path | None, name: str, what: str, about: object, arrays: Mapping[str, Sequence[Ints]]) -> None:
    """Keeps arrays, each in pieces one after another, in a file that can be mapped, and JSON `about` them; `what` describes them in a
    warning."""
    heads = {key: (every[0].dtype.str, (sum(map(len, every)), *every[0].shape[1:])) for key, every in arrays.items()}

    def content() -> Iterator[bytes]:
        head = json.dumps((about, heads)).encode()
        yield _MAGIC + len(head).to_bytes(8, "little") + zlib.crc32(head).to_bytes(_CHECK, "little") + head
        at = _START + len(head)
        for every in arrays.values():
            yield bytes(-at % _ALIGNED)
            yield from (one.tobytes() for one in every)
            at += -at % _ALIGNED + sum(one.nbytes for one in every)

    def checked() -> Iterator[bytes]:
        check = 0
        for part in content():
            check = zlib.crc32(part, check)
            yield part
        yield check.to_bytes(_CHECK, "little")

    keep_or_warn(folder, name, checked(), what)


def kept_arrays(folder: Path | None, name: str, *, whole: bool = True) -> tuple[Any, dict[str, Ints]]:
    """Maps kept arrays, and returns the JSON about them; `ValueError` if they are missing or damaged. Unless `whole`, the arrays are not
    read, and their size alone is checked."""
    if folder is None:
        raise ValueError(name)
    try:
        with open_kept(folder, name) as stream:
            held: Ints = np.memmap(stream, np.uint8, "c")
        before, found = bytes(held[:_START]), dict[str, Any]()
        at = _START + int.from_bytes(before[len(_MAGIC) : -_CHECK], "little")
        head = bytes(held[_START:at])
        if not before.startswith(_MAGIC) or before[-_CHECK:] != zlib.crc32(head).to_bytes(_CHECK, "little"):
            raise ValueError(name)
        if whole and bytes(held[-_CHECK:]) != zlib.crc32(held[:-_CHECK].data).to_bytes(_CHECK, "little"):
            raise ValueError(name)
        about, heads = json.loads(head)
        for key, (dtype, shape) in heads.items():
            at += -at % _ALIGNED
            size = math.prod(shape) * np.dtype(dtype).itemsize
            found[key] = held[at : at + size].view(dtype).reshape(shape)
            at += size
        if at + _CHECK != len(held):
            raise ValueError(name)
        return about, found
    except (OSError, TypeError, AttributeError) as error:
        raise ValueError(name) from error


class _Kept(NamedTuple):
    """A kept index: the shards by key, size and modification time, and the arrays of all of them."""

    shards: dict[tuple[str, int, int], ShardRecords]
    offsets: Ints
    lengths: Ints


def _read(folder: Path | None, name: str, parts: int) -> _Kept:
    """Maps a kept index; one without shards if it is missing or damaged."""
    with suppress(ValueError, KeyError, TypeError):
        about, arrays = kept_arrays(folder, name, whole=False)
        offsets, lengths, found, at = arrays["offsets"], arrays["lengths"], dict[tuple[str, int, int], ShardRecords](), 0
        for key, size, mtime, rows, damage, digest, findings in about:
            found[key, size, mtime] = ShardRecords(offsets[at : at + rows], lengths[at : at + rows], damage, findings, digest)
            at += rows
        if offsets.shape == lengths.shape == (at, parts):
            return _Kept(found, offsets, lengths)
    return _Kept({}, np.zeros((0, parts), np.int64), np.zeros((0, parts), np.int32))


def counted(rows: int, damage: str = "", findings: Findings | None = None, parts: int = 0) -> ShardRecords:
    """Returns the index of a shard whose library finds records by number, or, with `parts`, of one without records."""
    return ShardRecords(np.zeros((rows, parts), np.int64), np.zeros((rows, parts), np.int32), damage, findings or {})


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
    types: Mapping[str, FieldType] = field(default_factory=dict)  # the types of the features that are read with each record
    notes: tuple[Note, ...] = ()  # findings
    options: str = ""  # what the index depends on beside the files, such as a table
    folder: Path | None = None  # folder for what is kept of them, if any
    kept: Ints | None = None  # whether each record is used, bool; `None` for all
    cells: Callable[[str | int, str], tuple[str, ...]] | None = None  # reads a column of the records; set once they are indexed

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self.index.first[-1])

    @property
    def used(self) -> Ints | None:
        """The numbers of the records that are used; `None` for all."""
        return None if self.kept is None else self.kept.nonzero()[0]

    def kept_as(self, what: str, *about: object) -> str:
        """Names a kept column of these records: a hash of the files, of what else the index depends on, and of `about`, as JSON."""
        files = [(shard.key, shard.path, shard.size, shard.mtime) for shard in self.shards]
        content = json.dumps((files, self.index.digests, self.options, about)).encode()
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
