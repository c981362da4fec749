"""The layout of a prepared store: its description, its shards, and the table of its records. `pipegen prepare` writes one.

OUT/store.json              what is stored, from which spec, and the checksum of every file
OUT/records/NAME.npy        a column of all records: ids, splits, labels, sizes, numbers; for items, such as boxes, those of all records
OUT/shards/NAME-00000.rows  the pixels of a feature, a row of bytes per record
OUT/shards/NAME-00000.files encoded files, one after another
OUT/SPLIT-00000-of-00004.tfrecord  whole records for other programs, in place of both; also `.tar` and `.array_record`
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Literal

from pipegen.errors import OpError
from pipegen.files import write_whole
from pipegen.frozen import dataclass

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
    """Writes the description of a store atomically."""
    write_whole(root / ABOUT, json.dumps({"format": FORMAT, **asdict(about)}, indent=1).encode())


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
    from pipegen.ops.sources.array_rows.npz import read_array

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
