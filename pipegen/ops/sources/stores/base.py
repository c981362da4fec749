"""`Store`: an open file of records, several of which are read in one call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.errors import InternalError
from pipegen.ops.sources.stores.field_types import StoreError, Unsuitable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from pipegen.ops.sources.records.findings import Findings
    from pipegen.ops.sources.stores.field_types import FieldType

    Array: TypeAlias = np.ndarray[Any, Any]

AT_ONCE = 4096
"""Rows read together when a whole column is read."""


class Store:
    """A file of records. Each format has a subclass, which opens the file when constructed.

    Threads may read at the same time. A store reads the file as it was when opened; `handles` notices changes.

    Attributes:
        rows: The number of records.
        at_once: Number of records that the format unpacks together.
    """

    rows: int
    at_once: int = 1

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

    def columns(self) -> Mapping[str, FieldType]:
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


def known(columns: Mapping[str, FieldType], key: str) -> FieldType:
    """Returns the type of a column, which must exist."""
    if key not in columns:
        raise InternalError(f"the store has no column {key!r}")
    return columns[key]


def row_count(arrays: Mapping[str, int], keys: Sequence[str], what: str) -> int:
    """Returns the number of records, given the rows of each array; `Unsuitable` if those under `keys` differ. `what` they are, in words."""
    asked = {key: rows for key, rows in arrays.items() if key in keys}
    if len(set(asked.values())) > 1:
        message = f"its {what} differ in length: {', '.join(f'`{key}` has {rows:,} rows' for key, rows in asked.items())}"
        raise Unsuitable(message, "row i of each must be one example", "features")
    return next(iter(arrays.values()), 0)


def one_line(error: Exception) -> str:
    """Returns the first line of a library's message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
