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
import json
import os
import struct
import weakref
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipegen.files import NotRegularError, remove_parts
from pipegen.kept import Inside, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

State = Literal["empty", "whole", "damaged"]

FORMAT = 1
ABOUT = "about.json"
INDEX = "index"
_ENTRY = struct.Struct("<IIq")
"""A row's entry in the index: checksum, mark, stamp. A hole in the file reads as a mark of 0."""
_FILLED = 0x70670001
_PAGES = 4096
_LONGEST_ABOUT = 2**22


@dataclass(frozen=True, slots=True)
class Column:
    """The format of a feature in a cache.

    Attributes:
        name: The feature.
        dtype: Its dtype.
        shape: Its shape, in elements.
        row: Bytes of a row.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    row: int


@dataclass(frozen=True, slots=True)
class About:
    """The description of a cache.

    Attributes:
        key: Its name: a hash of all that decides its bytes.
        spec: The name of the spec that made it.
        steps: The steps before it, in words.
        records: Number of rows.
        columns: The features of a row, in order.
        created: The time that it was made, ISO 8601 in UTC.
    """

    key: str
    spec: str
    steps: str
    records: int
    columns: tuple[Column, ...]
    created: str = ""

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

    def state(self, row: int, stamp: int = 0) -> State:
        """Determines the state of a row.

        The stamp is the version of the record: the time its file last changed. A row with another stamp counts as empty.
        """
        entry = self._entry(row)
        if entry is None or entry[1] != stamp:
            return "empty"
        return "whole" if entry[0] == self._checksum_on_disk(row, stamp) else "damaged"

    def read(self, row: int, into: Sequence[memoryview]) -> None:
        """Copies a whole row into writable buffers, one for each feature.

        Raises:
            OSError: If the disk fails, or a file has been cut short since.
        """
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

    def whole(self) -> bool:
        """Checks that every file has its full size."""
        sizes = _sizes(self.about).values()
        return all(os.fstat(number).st_size >= size for number, size in zip(self._files, sizes, strict=True))

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
    """Opens a cache, and makes it if needed. Several processes may do so at once.

    Raises:
        OSError: If it can be neither made nor read.
    """
    own, files = folder / about.key, list[int]()
    try:
        make_folder(own)
        with Inside(own) as inside:
            for name, size in _sizes(about).items():
                files.append(inside.open(name, os.O_RDWR | os.O_CREAT))
                if os.fstat(files[-1]).st_size < size:
                    os.truncate(files[-1], size)
            _describe(inside, about)
    except OSError as error:
        _close(files)
        if isinstance(error, NotRegularError):  # another user may have put it there
            raise
        with suppress(OSError):
            store = read_store(own, about)
            if store.whole():  # a read-only cache still serves its rows
                store.refused = error
                return store
        raise
    return Store(own, about, files)


def read_store(own: Path, about: About) -> Store:
    """Opens the cache in a folder for reading, damaged or not.

    Raises:
        OSError: If a file is missing or may not be read.
    """
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
    """Removes the files of a cache from its folder, and the folder if it is empty then.

    Raises:
        OSError: If one cannot be removed.
    """
    for name in (ABOUT, *_sizes(about)):  # the description first: without it, the rest does not count as a cache
        (own / name).unlink(missing_ok=True)
    remove_parts(own, older=0)
    with suppress(OSError):
        own.rmdir()


def _describe(inside: Inside, about: About) -> None:
    """Writes the description of a cache, unless it exists."""
    if _about_in(inside) is None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        inside.put(ABOUT, [json.dumps({"pipegen_cache": FORMAT, **asdict(about), "created": now}, indent=2).encode()])


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
