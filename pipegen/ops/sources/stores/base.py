"""Defines a store: a file of records, open in this process, of which several records are read in one call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipegen.errors import InternalError
from pipegen.lazy import how_to_install

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from pipegen.ops.sources.records.findings import Findings

    Array: TypeAlias = np.ndarray[Any, Any]

BYTES = "bytes"
"""The dtype of a column of byte strings, such as encoded images; texts are such in UTF-8."""
TEXT = "text"
AT_ONCE = 4096
"""Rows that are read together where a whole column is."""


class StoreError(ValueError):
    """A file of records cannot be opened, or one of its records cannot be read. The message is one line and does not name the file."""


class MissingValue(StoreError):
    """A record has no value in a column: it is null."""


class Unsuitable(StoreError):
    """A file is whole, and its records cannot be read one by one, or not without being told more.

    Attributes:
        field: The argument of the source that it concerns.
        help: What to do.
    """

    def __init__(self, message: str, help_: str, field: str = "path") -> None:
        super().__init__(message)
        self.field, self.help = field, help_


class MissingLibrary(StoreError):
    """The library that reads a format cannot be imported.

    Attributes:
        help: What to do.
    """

    def __init__(self, library: str, extra: str, error: ImportError) -> None:
        super().__init__(f"{library}, which cannot be imported here: {error}")
        self.help = how_to_install(library, extra, error)


@dataclass(frozen=True, slots=True)
class Stored:
    """Says what a column holds of each record.

    Attributes:
        dtype: A NumPy dtype's name, `BYTES` or `TEXT`.
        shape: The shape of one record's value.
        classes: The names of the classes, where the file lists them.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def encoded(self) -> bool:
        """Returns whether values are byte strings."""
        return self.dtype in (BYTES, TEXT)


class Store:
    """A file of records. Each format has a subclass, which opens the file when it is made.

    Threads may read at the same time. A store reads what was there when it was opened: a file that has changed since is another one, which
    `handles` sees.

    Attributes:
        rows: The number of records.
        at_once: Records that the format unpacks to get at one of them.
    """

    rows: int
    at_once: int = 1
    library: ClassVar[str] = ""

    def __init__(self, path: str) -> None:
        raise NotImplementedError

    def check(self) -> Findings:
        """Proves, when the file is indexed, that all of it is there, as far as its format can tell: records are counted, not read.

        Returns:
            What may be wrong with it; see `findings`.

        Raises:
            StoreError: When something is missing, or follows the end.
        """
        return {}

    def check_beside(self) -> None:
        """Checks, whenever the records are listed, that other files which hold values are there: the index is of this file alone.

        Raises:
            StoreError: When one is missing.
        """

    def columns(self) -> Mapping[str, Stored]:
        """Returns what each record holds, by key; a format whose records are single byte strings has the key `""`."""
        raise NotImplementedError

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        """Reads some columns of some records.

        Args:
            keys: Of `columns()`.
            rows: The numbers of the records, int64 `(n,)`, in any order.

        Returns:
            For each key the values `(n, *shape)`; byte strings as objects.

        Raises:
            StoreError: When one of them cannot be read.
        """
        raise NotImplementedError

    def whole(self, key: str) -> Iterator[Array]:
        """Reads a whole column, some thousand rows at a time."""
        for start in range(0, self.rows, AT_ONCE):
            yield self.read((key,), np.arange(start, min(start + AT_ONCE, self.rows)))[0]

    def close(self) -> None:
        """Closes the file; nothing is read from then on."""


def byte_strings(values: Sequence[bytes]) -> Array:
    """Holds byte strings as objects. As an array of bytes they would lose the zeros at their ends."""
    held: Array = np.empty(len(values), object)
    held[:] = values
    return held


class Extents:
    """Reads stretches of a file by their offsets. It is not mapped, so a file that is cut short gives an error and no signal."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Returns the bytes of a stretch.

        Raises:
            StoreError: When it does not lie inside the file.
        """
        if not 0 <= offset <= offset + length <= self.size:
            raise StoreError(f"it should lie in the bytes {offset:,} to {offset + length:,}, and the file has {self.size:,}")
        found = os.pread(self._fd, length, offset)
        while len(found) < length:  # Linux reads 2 GiB at most in one call
            more = os.pread(self._fd, length - len(found), offset + len(found))
            if not more:
                raise StoreError(f"the file was cut short to {offset + len(found):,} bytes while it was read")
            found += more
        return found

    def rows(self, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], rows: Array) -> Array:
        """Reads rows of an array that lies in the file in C order."""
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        found = [self.read(offset + size * row, size) for row in rows.tolist()]
        return np.frombuffer(b"".join(found), dtype).reshape(len(rows), *shape)

    def close(self) -> None:
        """Closes the file."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def known(columns: Mapping[str, Stored], key: str) -> Stored:
    """Returns what a column holds, which was looked up before."""
    if key not in columns:
        raise InternalError(f"a column {key!r} was asked for that a store does not have")
    return columns[key]
