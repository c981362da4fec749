"""`Store`: an open file of records, several of which are read in one call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.lazy import how_to_install

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from pipegen.ops.sources.records.findings import Findings

    Array: TypeAlias = np.ndarray[Any, Any]

BYTES = "bytes"
"""The dtype of a column of byte strings, such as encoded images."""
TEXT = "text"
AT_ONCE = 4096
"""Rows read together when a whole column is read."""


class StoreError(ValueError):
    """A file of records cannot be opened, or one of its records cannot be read. The message is one line without the name of the file."""


class MissingValue(StoreError):
    """A record's value in a column is null."""


class Unsuitable(StoreError):
    """A complete file whose records cannot be read one by one, or only with more arguments.

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
        super().__init__(f"{library}, which cannot be imported: {error}")
        self.help = how_to_install(library, extra, error)


@dataclass(frozen=True, slots=True)
class Stored:
    """The type of a column.

    Attributes:
        dtype: A NumPy dtype's name, `BYTES` or `TEXT`.
        shape: The shape of one record's value.
        classes: Class names, if the file lists them.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def encoded(self) -> bool:
        """Whether values are byte strings."""
        return self.dtype in (BYTES, TEXT)


class Store:
    """A file of records. Each format has a subclass, which opens the file when constructed.

    Threads may read at the same time. A store reads the file as it was when opened; `handles` notices changes.

    Attributes:
        rows: The number of records.
        at_once: Number of records that the format unpacks together.
    """

    rows: int
    at_once: int = 1
    library: ClassVar[str] = ""

    def __init__(self, path: str) -> None:
        raise NotImplementedError

    def check(self) -> Findings:
        """Checks, when the file is indexed, that it is complete, as far as its format allows without reading records.

        Returns:
            Other findings; see `findings`.

        Raises:
            StoreError: Something is missing, or follows the end.
        """
        return {}

    def check_beside(self) -> None:
        """Checks, whenever records are listed, that other files with values exist, which the index does not cover.

        Raises:
            StoreError: One is missing.
        """

    def columns(self) -> Mapping[str, Stored]:
        """Returns the type of each column; a format of single byte strings has the key `""`."""
        raise NotImplementedError

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        """Reads some columns of some records.

        Args:
            keys: Keys of `columns()`.
            rows: The numbers of the records, int64 `(n,)`, in any order.

        Returns:
            The values `(n, *shape)` of each key; byte strings as objects.

        Raises:
            StoreError: One of them cannot be read.
        """
        raise NotImplementedError

    def whole(self, key: str) -> Iterator[Array]:
        """Yields a whole column, some thousand rows at a time."""
        for start in range(0, self.rows, AT_ONCE):
            yield self.read((key,), np.arange(start, min(start + AT_ONCE, self.rows)))[0]

    def cells(self, key: str) -> Iterator[Any]:
        """Yields the values of a column as Python values, `None` for missing ones."""
        return (value for values in self.whole(key) for value in values.tolist())

    def lists(self, key: str) -> Iterator[Any] | None:
        """Yields the list of each record under a key, for a format with columns of lists of any length; else returns `None`.

        Raises:
            StoreError: The key is missing, or a value holds no list.
        """
        return None

    def close(self) -> None:
        """Closes the file; nothing can be read afterwards."""


def byte_strings(values: Sequence[bytes]) -> Array:
    """Holds byte strings as objects; an array of bytes would drop trailing zeros."""
    held: Array = np.empty(len(values), object)
    held[:] = values
    return held


class Extents:
    """A file read by offsets. It is not mapped, so truncation gives an error rather than a signal."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Reads a stretch; `StoreError` if it is not inside of the file."""
        if not 0 <= offset <= offset + length <= self.size:
            raise StoreError(f"it should have the bytes {offset:,} to {offset + length:,}, but the file has {self.size:,}")
        found = os.pread(self._fd, length, offset)
        while len(found) < length:  # Linux reads at most 2 GiB per call
            more = os.pread(self._fd, length - len(found), offset + len(found))
            if not more:
                raise StoreError(f"the file was truncated to {offset + len(found):,} bytes while it was read")
            found += more
        return found

    def rows(self, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], rows: Array) -> Array:
        """Reads rows of an array stored in C order."""
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        found = [self.read(offset + size * row, size) for row in rows.tolist()]
        return np.frombuffer(b"".join(found), dtype).reshape(len(rows), *shape)

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def known(columns: Mapping[str, Stored], key: str) -> Stored:
    """Returns the type of a column, which must exist."""
    if key not in columns:
        raise InternalError(f"the store has no column {key!r}")
    return columns[key]


def one_line(error: Exception) -> str:
    """Returns the first line of a library's message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
