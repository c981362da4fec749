"""A prepared store: its description, its shards, the table of its records, and its readers. `pipegen prepare` writes one.

OUT/store.json              what is stored, from which spec, and the checksum of every file
OUT/records/NAME.npy        a column of all records: ids, splits, labels, sizes, numbers; for items, such as boxes, those of all records
OUT/shards/NAME-00000.rows  the pixels of a feature, a row of bytes per record
OUT/shards/NAME-00000.files encoded files, one after another
OUT/SPLIT-00000-of-00004.tfrecord  whole records for other programs, in place of both; also `.tar` and `.array_record`
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipegen.errors import OpError
from pipegen.files import write_whole
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.listing.blocks import by_block
from pipegen.ops.sources.listing.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.stores.base import Store

FORMAT = 1
ABOUT = "store.json"
RECORDS = "records"
SHARDS = "shards"
ARRAY_RECORD = ".array_record"  # file ending of shards whose records only a library finds
PAGE = 4096  # bytes of a page: all shards of a split but the last are multiples of it, so that they can be mapped one after another
PREPARE_AGAIN = "delete `store.json` and prepare again; complete files are kept"
_LARGEST, _BLOCK = 1 << 26, 1 << 22


@dataclass(frozen=True)
class Pixels:
    """How the pixels of a feature are stored."""

    form: Literal["rows", "files", "records"]
    """`rows`: bytes of a canvas, with the image in its upper left corner; `files`: encoded files; `records`: the same in records."""
    dtype: str = "uint8"  # the dtype of a value
    canvas: tuple[int, int, int] | tuple[()] = ()  # height, width and channels of the canvas; empty for files

    @property
    def row(self) -> int:
        """Bytes of a row."""
        bits = 2 if self.dtype == "uint16" else 4 if self.dtype == "float32" else 1
        return bits * self.canvas[0] * self.canvas[1] * self.canvas[2] if len(self.canvas) == 3 else 0


@dataclass(frozen=True)
class Shard:
    """One shard: consecutive records of one split."""

    split: str  # the split
    first: int  # number of its first record in the split
    count: int  # number of stored records
    left_out: tuple[int, ...] = ()  # numbers of damaged records that were left out
    sums: Mapping[str, int] = field(default_factory=dict)  # CRC-32 of its file by feature; of a file of whole records under `RECORDS`
    bytes: Mapping[str, int] = field(default_factory=dict)  # size of its file, likewise


@dataclass(frozen=True)
class StoreAbout:
    """The description of a store."""

    key: str  # identifies everything that determines its bytes
    of: str  # hash of the spec that it was prepared from
    steps: str  # description of the steps done in it
    changes: tuple[str, ...]  # description of differences from that spec; empty for a store that is equal bit for bit
    splits: Mapping[str, int]  # number of records of each split
    classes: Mapping[str, tuple[str, ...]]  # class names of each label
    label: str | None  # the label that gives the data its classes
    pixels: Mapping[str, Pixels]  # how the pixels of each feature are stored
    columns: Mapping[str, int]  # CRC-32 of each column of the records
    rows: int  # rows of a shard, except for the last of a split
    shards: tuple[Shard, ...]  # the shards
    suffix: str = ""  # ending of files of whole records; empty if each feature has files of its own

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.splits.values())


def shard_files(root: Path, shards: Sequence[Shard], pixels: Mapping[str, Pixels], suffix: str) -> list[dict[str, Path]]:
    """Returns the files of each shard: by feature, or whole records under `RECORDS`, named as other programs expect."""
    if not suffix:
        return [{feature: root / SHARDS / f"{feature}-{i:05d}.{own.form}" for feature, own in pixels.items()} for i in range(len(shards))]
    counts, found = Counter(shard.split for shard in shards), []
    seen: Counter[str] = Counter()
    for shard in shards:
        found.append({RECORDS: root / f"{shard.split}-{seen[shard.split]:05d}-of-{counts[shard.split]:05d}{suffix}"})
        seen[shard.split] += 1
    return found


def column_file(root: Path, name: str) -> Path:
    """Returns the file of a column of the records."""
    return root / RECORDS / f"{name}.npy"


def write_about(root: Path, about: StoreAbout) -> None:
    """Writes the description of a store atomically, with its checksum."""
    values = asdict(about)
    write_whole(root / ABOUT, json.dumps({"format": FORMAT, "sum": _sum(values), **values}, indent=1).encode())


def _sum(values: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def read_about(root: Path) -> StoreAbout:
    """Reads the description of a store; `PG401` without one, `PG570` for an unfinished or invalid one."""
    file = root / ABOUT
    try:
        with open(file, "rb") as stream:
            text = stream.read(_LARGEST)
    except OSError:
        unfinished = (root / SHARDS).is_dir()
        message = f"{str(root)!r} holds an unfinished store" if unfinished else f"{str(root)!r} holds no prepared store"
        help_ = "run the same `pipegen prepare` again to continue" if unfinished else "write one with `pipegen prepare`"
        raise OpError("PG570" if unfinished else "PG401", message, field="path", help=help_) from None
    try:
        values = json.loads(text)
        if values.pop("format") != FORMAT:
            raise OpError("PG570", f"{str(file)!r} has another version", field="path", help="prepare the data again")
        if values.pop("sum") != _sum(values):
            raise ValueError("its checksum differs")
        values["pixels"] = {name: Pixels(**{**own, "canvas": tuple(own["canvas"])}) for name, own in values["pixels"].items()}
        values["shards"] = tuple(Shard(**own) for own in values["shards"])
        values["classes"] = {name: tuple(names) for name, names in values["classes"].items()}
        return StoreAbout(**{**values, "changes": tuple(values["changes"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OpError("PG570", f"{str(file)!r} is damaged", field="path", help="prepare the data again") from None


def check_files(root: Path, about: StoreAbout) -> None:
    """Raises `PG570` if a shard is missing or has another size: truncating a mapped file would end the process."""
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        for held, file in files.items():
            try:
                size = os.stat(file).st_size
            except OSError:
                size = -1
            if size != shard.bytes[held]:
                said = "is missing" if size < 0 else f"has {size:,} bytes, but had {shard.bytes[held]:,} when it was written"
                raise OpError("PG570", f"{str(file)!r} {said}", field="path", help=PREPARE_AGAIN)


def read_column(root: Path, name: str) -> Any:
    """Maps a column of the records; `PG406` if it is unreadable."""
    from pipegen.ops.sources.listing.npz import read_array

    return read_array(str(column_file(root, name)), "path")


def checksum(file: Path) -> int:
    """Computes the CRC-32 of a file."""
    found = 0
    with open(file, "rb") as stream:
        while block := stream.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found


def check_columns(root: Path, about: StoreAbout) -> None:
    """Raises `PG570` if columns of the records are damaged: they have places and labels, and nothing else would notice."""
    try:
        for file, problem in _damaged(_column_sums(root, about)):
            raise OpError("PG570", f"{str(file)!r} is damaged: {problem}", field="path", help=PREPARE_AGAIN)
    except OSError as error:
        raise OpError("PG570", f"{error.filename!r} cannot be read: {error.strerror}", field="path", help=PREPARE_AGAIN) from None


def damaged_files(root: Path, about: StoreAbout) -> Iterator[tuple[Path, str]]:
    """Reads every file of a store, and yields the damaged ones with their problem; `OSError` if one is unreadable."""
    yield from _damaged(_column_sums(root, about))
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        yield from _damaged({file: shard.sums[held] for held, file in files.items()})


def _column_sums(root: Path, about: StoreAbout) -> dict[Path, int]:
    return {column_file(root, name): found for name, found in about.columns.items()}


def _damaged(wanted: Mapping[Path, int]) -> Iterator[tuple[Path, str]]:
    for file, sum_ in wanted.items():
        if not file.is_file():
            yield file, "it is missing"
        elif (found := checksum(file)) != sum_:
            yield file, f"its CRC-32 is {found:08x}, but was {sum_:08x} when it was written"


@dataclass(frozen=True)
class StoredShards:
    """The files of a feature's shards, read as one array of bytes."""

    files: tuple[str, ...]  # one per shard, in order
    sizes: tuple[int, ...]  # the bytes of each
    starts: tuple[int, ...]  # the start of each in the array: multiples of a page
    row: int = 0  # bytes of a row; 0 for contents of any length
    rows: int = 0  # rows of a full shard

    @property
    def total(self) -> int:
        """The bytes from the start of the first to the end of the last."""
        return self.starts[-1] + self.sizes[-1]

    def mapped(self) -> Any:
        """Maps them as one array of bytes, padded to words of 64 bits; nothing is read before it is needed. Reserves a range of addresses
        first, and maps the files into it. Uncovered bytes are zeros."""
        held = mmap.mmap(-1, -(-self.total // PAGE) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
        start = ctypes.addressof(ctypes.c_char.from_buffer(held))
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        for file, size, at in zip(self.files, self.sizes, self.starts, strict=True):
            number = os.open(file, os.O_RDONLY)
            try:
                flags = mmap.MAP_PRIVATE | _FIXED
                if size and system.mmap(start + at, size, mmap.PROT_READ, flags, number, 0) != start + at:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), file)
            finally:
                os.close(number)
        return np.frombuffer(held, np.uint8)[: -(-self.total // 8) * 8]


_FIXED = 0x10  # `MAP_FIXED`, which Python's `mmap` lacks: use the given address


def places(about: StoreAbout) -> Ints:
    """Returns the row of each record; a shard begins at a multiple of the rows of a full one, int64 `(n,)`."""
    parts: list[Ints] = [np.arange(shard.count) + number * about.rows for number, shard in enumerate(about.shards)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class StoredRows(Reader):
    """A reader of the pixels of a prepared store."""

    in_place = True

    def __init__(self, root: Path, about: StoreAbout) -> None:
        self.root, self.about, self.checksums = root, about, "those of each file of the store"
        self._open: dict[str, Read] = {}
        self._mapped: dict[str, tuple[int, Any, Any]] = {}

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import StoredFiles, StoredPixels

        if feature not in self._open:
            pixels, held = self.about.pixels[feature], (hold(self._shards(feature)), hold(self._by_row(feature)))
            made: Read = StoredPixels(*held, pixels.canvas, pixels.dtype) if len(pixels.canvas) == 3 else StoredFiles(*held)
            self._open.setdefault(feature, made)
        return self._open[feature]

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        (rows,), pixels = place, self.about.pixels[feature]
        if feature not in self._mapped:
            shards = self._shards(feature)
            self._mapped[feature] = shards.row, shards.mapped(), self._by_row(feature)
        row, held, about = self._mapped[feature]
        if not row:
            return [held[at : at + length].tobytes() for at, length in about[rows].tolist()]
        canvases = [held[row * one : row * (one + 1)].view(np.dtype(pixels.dtype)).reshape(pixels.canvas) for one in rows.tolist()]
        return [canvas[:height, :width] for canvas, (height, width) in zip(canvases, about[rows].tolist(), strict=True)]

    def _by_row(self, feature: str) -> Any:
        """Returns the size of each canvas, or the place of each file, by row; rows without records are zeros."""
        at = places(self.about)
        column = read_column(self.root, f"@{'size' if len(self.about.pixels[feature].canvas) == 3 else 'place'}.{feature}")
        spread = np.zeros((int(at[-1]) + 1 if len(at) else 0, *column.shape[1:]), column.dtype)
        spread[at] = column
        return spread

    def _shards(self, feature: str) -> StoredShards:
        about, pixels = self.about, self.about.pixels[feature]
        held = RECORDS if pixels.form == "records" else feature
        files = tuple(str(own[held]) for own in shard_files(self.root, about.shards, about.pixels, about.suffix))
        sizes = tuple(shard.bytes[held] for shard in about.shards)
        if pixels.form == "rows":
            starts = tuple(i * about.rows * pixels.row for i in range(len(files)))
            return StoredShards(files, sizes, starts, pixels.row, about.rows)
        ends = accumulate((-(-size // PAGE) * PAGE for size in sizes), initial=0)
        return StoredShards(files, sizes, tuple(ends)[:-1])

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        for file, problem in damaged_files(self.root, self.about):
            yield str(file), f"{problem}; delete it and `store.json`, and prepare again"

    def digest(self, *, whole: bool = False) -> str:
        sums = [[shard.split, shard.count, dict(shard.sums)] for shard in self.about.shards]
        text = json.dumps([sums, dict(self.about.columns)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


ENCODED = "/encoded"  # suffix of a feature's name that makes the key of its encoded file in a `tf.Example`


class StoredMessages(StoredRows):
    """A reader of encoded files in `tf.Example` records, in one call into Python for all features."""

    def __init__(self, root: Path, about: StoreAbout) -> None:
        super().__init__(root, about)
        self._files = [str(own[RECORDS]) for own in shard_files(root, about.shards, about.pixels, about.suffix)]

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.stored_readers import called

        return called(self._take, dict.fromkeys(features, ("string", ())))

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return list(self._take((feature,), place[0])[0])

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "records of ArrayRecord files"

    def examine(self) -> None:
        """Opens the first file; `PG440` without the library, `PG570` if it is damaged."""
        from pipegen.ops.sources.stores.field_types import MissingLibrary, StoreError

        try:
            self._store(0)
        except MissingLibrary as error:
            raise error.diagnosed("ArrayRecord") from None
        except StoreError as error:
            message = f"{self._files[0]!r} cannot be read: {error}"
            raise OpError("PG570", message, field="path", help=PREPARE_AGAIN) from None

    def _store(self, shard: int) -> Store:
        from pipegen.ops.sources.array_record import ArrayRecords
        from pipegen.ops.sources.stores.base import opened

        return opened(ArrayRecords, self._files[shard])

    def _take(self, names: Sequence[str], rows: Any) -> list[Any]:
        """Reads features of some rows: arrays `(n,)` of byte strings; `StoreError` if one is unreadable."""
        from pipegen.ops.sources.records.messages import read_key
        from pipegen.ops.sources.stores.base import byte_strings

        each = self.about.rows
        (messages,) = by_block(rows // each, lambda shard, here: self._store(shard).read(("",), rows[here] % each))
        found = []
        for name in names:
            values = [read_key(message, f"{name}{ENCODED}") for message in messages]
            found.append(byte_strings([value.items[0] if value is not None and value.items else b"" for value in values]))  # type: ignore[misc]
        return found
