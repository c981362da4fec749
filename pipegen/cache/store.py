"""One cache on disk: a file for each feature with a row for each record, and an index of the filled rows.

A row counts only if the checksum in its index entry fits its bytes. That alone makes it safe:

- A process that is killed while it writes leaves a row without an entry, or with one that does not fit. The same holds after a
  power cut, in whatever order the system wrote. Such a row is computed again.
- Two processes that fill one cache write the same bytes to the same places, so they need no lock.
- A row that is damaged later is detected when it is next read, and computed again.

Rows are written and read by system calls, which report a full or a failing disk as an error; a memory map would end the
process. The files are sparse: a row takes room on the disk when it is written.

A folder of caches may be shared. Other users of it could put a link in the place of a file, so links are not followed, and a
file counts only if it belongs to this user or to the owner of the folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from pipegen.errors import InternalError
from pipegen.files import NotRegularError, remove_parts
from pipegen.frozen import dataclass
from pipegen.kept import Inside, keep, make_folder, open_kept
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.fields.strings import encode
from pipegen.ops.stage import Stage, StepRef
from pipegen.plan.nodes import Cache, Element, Plan
from pipegen.spec.models import PipelineSpec
from pipegen.spec.spec_hash import canonical

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.types import FeatureType


FORMAT = 1
ABOUT = "about.json"
INDEX = "index"
_ENTRY = struct.Struct("<IIq")  # a row's entry in the index: checksum, mark, stamp. A hole in the file reads as a mark of 0.
_FILLED = 0x70670001
_PAGES = 4096
_LONGEST_ABOUT = 2**22


@dataclass(frozen=True, slots=True)
class Column:
    """The format of a feature in a cache."""

    name: str  # the feature
    dtype: str  # its dtype
    shape: tuple[int, ...]  # its shape, in elements
    row: int  # bytes of a row


@dataclass(frozen=True, slots=True)
class About:
    """The description of a cache."""

    key: str  # its name: a hash of all that decides its bytes
    spec: str  # the name of the spec that made it
    steps: str  # the steps before it, in words
    records: int  # number of rows
    columns: tuple[Column, ...]  # the features of a row, in order
    created: str = ""  # the time that it was made, ISO 8601 in UTC

    @property
    def row(self) -> int:
        """Bytes of a record over all features."""
        return sum(c.row for c in self.columns)


class Store:
    """An open cache. `open_store` makes one, `read_store` opens one for reading.

    Attributes:
        folder: Its own folder.
        about: Its description.
        refused: The error after which nothing more is written; `None` without one.
        told: The warnings that were logged.
    """

    def __init__(self, folder: Path, about: About, files: list[int]) -> None:
        self.folder = folder
        self.about = about
        self.refused: OSError | None = None
        self.told: set[str] = set()
        self._files = files
        weakref.finalize(self, _close, files)

    def state(self, row: int, stamp: int = 0) -> Literal["empty", "whole", "damaged"]:
        """Determines the state of a row.

        The stamp is the version of the record: the time its file last changed. A row with another stamp counts as empty.
        """
        entry = self._entry(row)
        if entry is None or entry[1] != stamp:
            return "empty"
        return "whole" if entry[0] == self._checksum_on_disk(row, stamp) else "damaged"

    def read(self, row: int, into: Sequence[memoryview]) -> None:
        """Copies a whole row into writable buffers, one for each feature. Raises `OSError` if the disk fails, or a file has been cut short
        since."""
        for number, column, buffer in zip(self._files[1:], self.about.columns, into, strict=True):
            if os.preadv(number, [buffer], row * column.row) != column.row:
                raise OSError(errno.EIO, "the cache has been cut short", str(self.folder))

    def write(self, row: int, values: Sequence[bytes | memoryview], stamp: int = 0) -> bool:
        """Fills a row; returns `False` after an error, which is then in `refused`. After that, nothing more is written."""
        if self.refused is not None:
            return False
        try:
            checksum = _seed(row, stamp)
            for number, column, value in zip(self._files[1:], self.about.columns, values, strict=True):
                checksum = zlib.crc32(value, checksum)
                _write_all(number, value, row * column.row)
            _write_all(self._files[0], _ENTRY.pack(checksum, _FILLED, stamp), row * _ENTRY.size)
        except OSError as error:
            self.refused = error
            return False
        return True

    def filled(self) -> Iterator[int]:
        """Yields the rows with an entry, in order, without comparing checksums."""
        for first in range(0, self.about.records, _PAGES):
            entries = os.pread(self._files[0], _PAGES * _ENTRY.size, first * _ENTRY.size)
            if entries.count(0) == len(entries):  # as in most of a large new cache
                continue
            for i in range(min(len(entries) // _ENTRY.size, self.about.records - first)):
                if _ENTRY.unpack_from(entries, i * _ENTRY.size)[1] == _FILLED:
                    yield first + i

    def check(self) -> Iterator[tuple[int, bool]]:
        """Yields each row with an entry, and true if its checksum fits."""
        for row in self.filled():
            entry = self._entry(row)
            yield row, entry is not None and entry[0] == self._checksum_on_disk(row, entry[1])

    def _entry(self, row: int) -> tuple[int, int] | None:
        data = _read(self._files[0], _ENTRY.size, row * _ENTRY.size)
        if data is None:
            return None
        checksum, mark, stamp = _ENTRY.unpack(data)
        return (checksum, stamp) if mark == _FILLED else None

    def _checksum_on_disk(self, row: int, stamp: int) -> int | None:
        checksum = _seed(row, stamp)
        for number, column in zip(self._files[1:], self.about.columns, strict=True):
            data = _read(number, column.row, row * column.row)
            if data is None:
                return None
            checksum = zlib.crc32(data, checksum)
        return checksum


def open_store(folder: Path, about: About) -> Store:
    """Opens a cache, and makes it if needed. Several processes may do so at once. Raises `OSError` if it can be neither made nor read."""
    own, files = folder / about.key, list[int]()
    try:
        make_folder(own)
        with Inside(own) as inside:
            for name, size in _sizes(about).items():
                files.append(inside.open(name, os.O_RDWR | os.O_CREAT))
                if os.fstat(files[-1]).st_size < size:
                    os.truncate(files[-1], size)
            if _about_in(inside) is None:
                now = datetime.now(timezone.utc).isoformat(timespec="seconds")
                inside.put(ABOUT, [json.dumps({"pipegen_cache": FORMAT, **asdict(about), "created": now}, indent=2).encode()])
    except OSError as error:
        _close(files)
        if isinstance(error, NotRegularError):  # another user may have put it there
            raise
        with suppress(OSError):
            store = read_store(own, about)
            sizes = zip(store._files, _sizes(about).values(), strict=True)
            if all(os.fstat(number).st_size >= size for number, size in sizes):  # a read-only cache still serves its rows
                store.refused = error
                return store
        raise
    return Store(own, about, files)


def read_store(own: Path, about: About) -> Store:
    """Opens the cache in a folder for reading, damaged or not. Raises `OSError` if a file is missing or may not be read."""
    files = list[int]()
    try:
        with Inside(own) as inside:
            for name in _sizes(about):
                files.append(inside.open(name, os.O_RDONLY))
    except OSError:
        _close(files)
        raise
    return Store(own, about, files)


def remove_store(own: Path, about: About) -> None:
    """Removes the files of a cache from its folder, and the folder if it is empty then. Raises `OSError` if one cannot be removed."""
    for name in (ABOUT, *_sizes(about)):  # the description first: without it, the rest does not count as a cache
        (own / name).unlink(missing_ok=True)
    remove_parts(own, older=0)
    with suppress(OSError):
        own.rmdir()


def read_about(folder: Path) -> About | None:
    """Reads the description of the cache in a folder; `None` without a valid one of this version."""
    try:
        with Inside(folder) as inside:
            return _about_in(inside)
    except OSError:
        return None


def _about_in(inside: Inside) -> About | None:
    try:
        with os.fdopen(inside.open(ABOUT, os.O_RDONLY), "rb") as stream:
            values: dict[str, Any] = json.loads(stream.read(_LONGEST_ABOUT))
        if values.pop("pipegen_cache") != FORMAT:
            return None
        columns = tuple(Column(**{**c, "shape": tuple(c["shape"])}) for c in values.pop("columns"))
        return About(columns=columns, **values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def file_stamp(path: str) -> int:
    """The time a file last changed, in ns; for a member of an archive, that of the archive; 0 without a file."""
    while True:
        try:
            return os.stat(path).st_mtime_ns
        except NotADirectoryError:
            path = os.path.dirname(path)
        except (OSError, ValueError):
            return 0


def _sizes(about: About) -> dict[str, int]:
    """The files of a cache and their full sizes, the index first."""
    return {INDEX: about.records * _ENTRY.size, **{f"{i}.rows": about.records * c.row for i, c in enumerate(about.columns)}}


def _seed(row: int, stamp: int) -> int:
    """The start value of a checksum, which makes a row in another's place not fit."""
    return zlib.crc32(struct.pack("<qq", row, stamp))


def _read(number: int, size: int, offset: int) -> bytes | None:
    """Reads bytes of a file; `None` if they are missing or unreadable."""
    try:
        data = os.pread(number, size, offset)
    except OSError:  # a bad block
        return None
    return data if len(data) == size else None


def _write_all(number: int, data: bytes | memoryview, offset: int) -> None:
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(number, view, offset)
        view, offset = view[written:], offset + written


def _close(files: list[int]) -> None:
    while files:
        os.close(files.pop())


_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos", "tf-nightly")
_DECODERS = (
    "pillow", "pillow-heif", "pillow-avif-plugin", "pillow-jxl-plugin", "tifffile", "imagecodecs", "pydicom", "pylibjpeg", "nibabel",
    "rasterio",
)  # fmt: skip
"""Distributions that decode images, or files of arrays."""
_CODE = ("ops", "backend")  # folders of pipegen whose code computes pixels
_PLACE = frozenset({"when", "probability"})
"""Arguments that choose the examples of a step: the steps before a cache act on every example of its split."""


def upstream(plan: Plan) -> tuple[Stage, ...]:
    """The stages before a plan's cache, in order; none without a cache."""
    found: list[Stage] = []
    for node in plan.nodes:
        if isinstance(node, Cache):
            return (*plan.part_stages(), *found)
        if isinstance(node, Element):
            found.extend(node.stages)
    return ()


def stored(plan: Plan, manifest: Manifest) -> dict[str, FeatureType]:
    """The features that a cache holds, with their types: those of its point that the listing of the data has not."""
    node = next(n for n in plan.nodes if isinstance(n, Cache))
    listings = [part.listing for part in manifest.by_part().values()]
    listed = {name for name in node.columns if all(name in listing.columns for listing in listings)}
    return {name: t for name, t in node.out.items() if name not in listed}


def cache_key(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> str:
    """Hashes what decides the contents of a cache: 32 hexadecimal digits.

    They cover the source, the stages before the cache point, what is stored, the data's fingerprint, and the code that computes
    pixels (see `makers`). Splits with the same stages share one cache, and so do specs that differ only in what comes later: other
    steps, the batch, the seed, the splits themselves.
    """
    types = [[name, t.dtype, t.shape] for name, t in stored(plan, manifest).items()]
    return key_of(spec, manifest.fingerprint, upstream(plan), type=types)


def key_of(spec: PipelineSpec, fingerprint: str, stages: Iterable[Stage], **more: object) -> str:
    """Hashes the data, stages, `more`, and the code that computes pixels on this machine: 32 hexadecimal digits."""
    covered = {
        "makers": {**makers(), "tensorflow": tensorflow_version()},
        "source": canonical(spec)["source"],
        "data": fingerprint,
        "stages": [plain(stage) for stage in stages],
        **more,
    }
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe_cache(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> About:
    """Describes the cache of a plan, which has a row for each record of the data, in all splits."""
    columns = []
    for name, t in stored(plan, manifest).items():
        if t.num_bytes is None:
            raise InternalError(f"a cache at a point where `{name}` is {t}")
        columns.append(Column(name, t.dtype, tuple(d or 0 for d in t.shape), t.num_bytes))
    key = cache_key(spec, plan, manifest)
    return About(key, spec.name or "", steps_in_words(plan), manifest.total, tuple(columns))


def steps_in_words(plan: Plan) -> str:
    """Lists the steps before a cache: `decode → resize`."""
    return " → ".join(dict.fromkeys(ref.step.op for stage in upstream(plan) for ref in stage.uses()))


@cache
def makers() -> dict[str, str]:
    """The code that computes pixels beside TensorFlow: versions of decoding libraries, and a digest of pipegen's code."""
    folder = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(file for name in _CODE for file in (folder / name).rglob("*.py")):
        digest.update(b"%s\0%s\0" % (file.relative_to(folder).as_posix().encode(), file.read_bytes()))
    return {"pipegen": digest.hexdigest()} | {name: _version(name) for name in _DECODERS}


def tensorflow_version() -> str:
    """The installed version of TensorFlow, found without importing it; "" if no known distribution is installed."""
    return next(filter(None, map(_version, _DISTRIBUTIONS)), "")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def plain(value: Any) -> Any:
    """Converts a stage to plain values: its steps and their arguments, without their place in the spec and among the draws."""
    if isinstance(value, StepRef):
        return [value.step.op, {k: v for k, v in value.step.meaning().items() if k not in _PLACE}]
    if is_dataclass(value):
        name = value.name if isinstance(value, Stage) else type(value).__name__
        return [name, {f.name: plain(getattr(value, f.name)) for f in fields(value)}]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def statistics_key(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> str:
    """Hashes what decides the statistics of a training split: 32 hexadecimal digits.

    They cover the source, the data's fingerprint, the training records and the times of their files, every step before, and the versions of
    pipegen and TensorFlow. Later steps, the batch and the augmentation do not matter. The plan is the one that measures, before any pass.
    """
    keys, held, listing = hashlib.sha256(), manifest.in_shards("train"), manifest.own("train").listing
    if held is not None:
        texts = [listing.keys.take(held.selected.shards), held.files.take(held.selected.shards)]
        keys.update(b"" if held.selected.bitmap is None else held.selected.bitmap.bits.tobytes())
        if held.selected.offsets is not None:
            keys.update(held.selected.offsets[held.selected.shards].tobytes() + held.selected.rows[held.selected.shards].tobytes())
    else:
        features = ("", *listing.beside) if manifest.kind("train") != "row" else ()
        texts = [manifest.keys("train"), *(manifest.files("train", feature) for feature in features)]
    order = texts[0].order()
    # With the times of files: with names and sizes alone, two data sets can look alike.
    for key, *files in zip(*(texts if order is None else [column.take(order) for column in texts]), strict=True):
        keys.update(encode(key) + b"".join(b"\x00%d" % file_stamp(file) for file in files) + b"\n")
    draws = [spec.seed, [ref.id for ref in plan.index.draws]] if plan.index.draws else None
    return key_of(spec, manifest.fingerprint, plan.stages(), train=keys.hexdigest(), draws=draws)


def statistics_file(folder: Path, key: str, kind: type[Statistics]) -> Path:
    """The path of the statistics of a key."""
    return folder / f"{key}.{kind.suffix}"


def read_statistics(folder: Path, key: str, kind: type[Statistics]) -> Statistics | None:
    """Reads the statistics of a key; `None` if they are missing or damaged."""
    try:
        with open_kept(folder, statistics_file(folder, key, kind).name) as stream:
            about, numbers = kind.from_bytes(stream.read())
        return numbers if about["pipegen_statistics"] == FORMAT and about["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_statistics(folder: Path, key: str, numbers: Statistics, spec: str, steps: str) -> None:
    """Writes the statistics of a key, with the spec's name and the steps before for human readers. Raises `OSError` if they cannot be
    written."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    content = numbers.to_bytes({"pipegen_statistics": FORMAT, "key": key, "spec": spec, "steps": steps, "created": now})
    keep(folder, statistics_file(folder, key, type(numbers)).name, [content])
