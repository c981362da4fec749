"""The layout of a prepared store: what it says of itself, its shards, and the table of its records. `pipegen prepare` writes one.

OUT/store.json              what is stored, of what, and the checksum of every file
OUT/records/NAME.npy        a column of all records: ids, splits, labels, sizes, numbers; of items, such as boxes, those of all records
OUT/shards/NAME-00000.rows  the pixels of a feature, a row of bytes for each record
OUT/shards/NAME-00000.files encoded files, one behind the other
OUT/SPLIT-00000-of-00004.tfrecord  whole records, as other programs read them, in place of both; also `.tar` and `.array_record`
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipegen.errors import OpError
from pipegen.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = 1
ABOUT = "store.json"
RECORDS = "records"
SHARDS = "shards"
ARRAY_RECORD = ".array_record"
"""How the names of the files end whose records only a library finds."""
PAGE = 4096
"""Bytes of a page: a shard that is not the last one of its split is a multiple of it, so that shards can be mapped one behind the other."""
PREPARE_AGAIN = "delete `store.json` and prepare again: what is whole is kept"
_LARGEST = 1 << 26


@dataclass(frozen=True)
class Pixels:
    """Says how the pixels of a feature are stored.

    Attributes:
        form: `rows`: bytes of a canvas, the image in its upper left corner; `files`: encoded files; `records`: the same within records.
        dtype: Of a value.
        canvas: Height, width and channels of the canvas; of files nothing.
    """

    form: Literal["rows", "files", "records"]
    dtype: str = "uint8"
    canvas: tuple[int, int, int] | tuple[()] = ()

    @property
    def row(self) -> int:
        """Bytes of a row."""
        bits = 2 if self.dtype == "uint16" else 4 if self.dtype == "float32" else 1
        return bits * self.canvas[0] * self.canvas[1] * self.canvas[2] if len(self.canvas) == 3 else 0


@dataclass(frozen=True)
class Shard:
    """Describes one shard: some records of one split, one behind the other.

    Attributes:
        split: The split.
        first: The number of its first record among those of the split.
        count: How many are stored.
        left_out: The numbers of those that are not, as they are damaged.
        sums: The CRC-32 of its file by feature; of a file of whole records under `RECORDS`.
        bytes: The bytes of its file, likewise.
    """

    split: str
    first: int
    count: int
    left_out: tuple[int, ...] = ()
    sums: Mapping[str, int] = field(default_factory=dict)
    bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StoreAbout:
    """Holds what a store says of itself.

    Attributes:
        key: Identifies everything that decides its bytes.
        of: The hash of the spec that it was prepared from.
        steps: The steps whose work is done in it, in words.
        changes: What it computes otherwise than that spec, in words; none for a store that is equal to it, bit for bit.
        splits: How many records each split has.
        classes: The names of the classes of each label.
        label: The label that gives the data its classes.
        pixels: How the pixels of each feature are stored.
        columns: The CRC-32 of each column of the records.
        rows: Rows of a shard, but for the last of a split.
        shards: The shards.
        suffix: How the names of files of whole records end; empty where each feature has files of its own.
        class_names: The classes of the data, also where these are of items, such as boxes.
    """

    key: str
    of: str
    steps: str
    changes: tuple[str, ...]
    splits: Mapping[str, int]
    classes: Mapping[str, tuple[str, ...]]
    label: str | None
    pixels: Mapping[str, Pixels]
    columns: Mapping[str, int]
    rows: int
    shards: tuple[Shard, ...]
    suffix: str = ""
    class_names: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Counts the records."""
        return sum(self.splits.values())


def shard_file(root: Path, feature: str, form: str, number: int) -> Path:
    """Returns the file of a shard's feature."""
    return root / SHARDS / f"{feature}-{number:05d}.{form}"


def shard_files(root: Path, shards: Sequence[Shard], pixels: Mapping[str, Pixels], suffix: str) -> list[dict[str, Path]]:
    """Returns the files of each shard: by feature, or the one of whole records under `RECORDS`, which is called as programs expect it."""
    if not suffix:
        return [{feature: shard_file(root, feature, own.form, i) for feature, own in pixels.items()} for i in range(len(shards))]
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
    """Writes what a store says of itself, whole or not at all."""
    write_whole(root / ABOUT, json.dumps({"format": FORMAT, **asdict(about)}, indent=1).encode())


def read_about(root: Path) -> StoreAbout:
    """Reads what a store says of itself.

    Raises:
        OpError: `PG401` where there is no store, `PG570` where it is not whole, or what it says makes no sense.
    """
    file = root / ABOUT
    try:
        with open(file, "rb") as stream:
            text = stream.read(_LARGEST)
    except OSError:
        unfinished = (root / SHARDS).is_dir()
        message = f"{str(root)!r} holds a store that is not finished" if unfinished else f"{str(root)!r} holds no prepared store"
        help_ = "run the same `pipegen prepare` again, which goes on where it stopped" if unfinished else "`pipegen prepare` writes one"
        raise OpError("PG570" if unfinished else "PG401", message, field="path", help=help_) from None
    try:
        values = json.loads(text)
        if values.pop("format") != FORMAT:
            raise OpError("PG570", f"{str(file)!r} is of another version", field="path", help="prepare the data again")
        return _about(values)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OpError("PG570", f"{str(file)!r} is damaged", field="path", help="prepare the data again") from None


def _about(values: dict[str, Any]) -> StoreAbout:
    pixels = {name: Pixels(**{**own, "canvas": tuple(own["canvas"])}) for name, own in values.pop("pixels").items()}
    shards = tuple(Shard(**own) for own in values.pop("shards"))
    classes = {name: tuple(names) for name, names in values.pop("classes").items()}
    names = tuple(values.pop("class_names", classes.get(values["label"] or "", ())))  # which older stores do not say
    changes = tuple(values["changes"])
    return StoreAbout(**{**values, "changes": changes, "pixels": pixels, "shards": shards, "classes": classes, "class_names": names})


def check_files(root: Path, about: StoreAbout) -> None:
    """Checks that every shard is there and as long as it was: what is mapped and then cut short would end the process.

    Raises:
        OpError: `PG570`.
    """
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        for held, file in files.items():
            try:
                size = os.stat(file).st_size
            except OSError:
                size = -1
            if size != shard.bytes[held]:
                said = "is not there" if size < 0 else f"has {size:,} bytes, and had {shard.bytes[held]:,} when it was written"
                raise OpError("PG570", f"{str(file)!r} {said}", field="path", help=PREPARE_AGAIN)


def read_column(root: Path, name: str) -> Any:
    """A column of the records, mapped into memory.

    Raises:
        OpError: `PG406` for a file that cannot be read.
    """
    from pipegen.ops.sources.array_rows.npz import read_array

    return read_array(str(column_file(root, name)), "path")
