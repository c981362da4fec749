"""Rows of a table in an SQLite file, read-only, by the standard library."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipegen.lazy import np
from pipegen.ops.sources.stores.base import Array, Store, Translated, byte_strings
from pipegen.ops.sources.stores.field_types import BYTES, TEXT, FieldType, MissingValue, StoreError, Unsuitable, list_in

if TYPE_CHECKING:
    from pipegen.ops.sources.shards.findings import Findings

_MOST = 500  # rows per query; SQLite takes 999 parameters on old systems
_HEAD = 1 << 12  # bytes that are read of a value, to see whether it is an `.npy` file
_CHECKED = 1 << 30  # size up to which indexing checks every page of a file, in bytes: a second or two
_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # first bytes of a journal to be rolled back; one kept for reuse has zeros
_PATIENCE = 5.0  # seconds to wait while another program writes
_SAFE = ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0")
"""No writing, no functions of the schema, and pages are checked before use."""
_ERRORS = Translated(sqlite3.Error, OverflowError)


class SqliteRows(Store):
    """A table of an SQLite file, by default the only one; rows are in the order of their `rowid`."""

    def __init__(self, path: str, table: str | None = None) -> None:
        self._lock, self._path = threading.Lock(), path
        _check_closed(path)
        with _ERRORS:
            self._open = sqlite3.connect(f"file:{quote(path)}?mode=ro", _PATIENCE, uri=True, check_same_thread=False)
            self._open.text_factory = bytes
            for setting in _SAFE:
                self._open.execute(f"PRAGMA {setting}")
            self.tables = [name.decode() for (name,) in self._open.execute(_TABLES)]
            shown = ", ".join(f"`{name}`" for name in self.tables) or "none"
            if table is None and len(self.tables) != 1:
                message = f"it has {len(self.tables)} tables, {shown}" if self.tables else "it has no table"
                raise Unsuitable(message, "choose one by `table`")
            if table is not None and table not in self.tables:
                raise Unsuitable(f"it has no table `{table}`", f"its tables are {shown}", "table")
            self._table = self.tables[0] if table is None else table
            declared = self._open.execute(f"PRAGMA table_info({_quoted(self._table)})").fetchall()
            columns = [(name.decode(), _affinity((kind or b"").decode())) for _, name, kind, *_ in declared]
            self._columns = {name: self._type(name, kind) for name, kind in columns}
            self._ids, self._first, self.rows = self._numbers()

    def check(self) -> Findings:
        """Checks the size of the file against its header, and, up to a size, all of its pages."""
        with self._lock:
            check_pages(self._path, self._open)
        return {}

    def _type(self, column: str, kind: str) -> FieldType:
        """Returns the type of a column of a declared dtype, else that of its first value; of bytes, that of the first value if it is an
        `.npy` file."""
        name = _quoted(column)
        query = f"SELECT typeof({name}), substr({name}, 1, {_HEAD}) FROM {_quoted(self._table)} WHERE {name} IS NOT NULL LIMIT 1"  # noqa: S608
        first, head = (self._open.execute(query).fetchone() if kind in ("", BYTES) else None) or (b"", None)
        kind = kind or _affinity(first.decode()) or BYTES
        held = FieldType.of_member(head) if kind == BYTES and isinstance(head, bytes) else FieldType(kind)
        return held if held.head else FieldType(kind)

    def _numbers(self) -> tuple[Array | None, int, int]:
        """Returns the `rowid` of each row (none if consecutive), the first one, and the number of rows."""
        table = _quoted(self._table)
        try:
            # In a damaged file an index may have other rows than the table.
            least, most, count = self._open.execute(f"SELECT min(rowid), max(rowid), count(*) FROM {table} NOT INDEXED").fetchone()  # noqa: S608
        except sqlite3.OperationalError as error:
            if "rowid" not in str(error):
                raise
            message = f"the table `{self._table}` was made WITHOUT ROWID, so its rows have no numbers"
            raise Unsuitable(message, "copy its rows into a table with numbers by `CREATE TABLE … AS SELECT …`", "table") from None
        if not count or most - least + 1 == count:
            return None, least or 0, count
        ids = np.fromiter((row[0] for row in self._open.execute(f"SELECT rowid FROM {table} ORDER BY rowid")), np.int64, count)  # noqa: S608
        return ids, 0, count

    def columns(self) -> Mapping[str, FieldType]:
        return self._columns

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        ids = (rows + self._first if self._ids is None else self._ids[rows]).tolist()
        found: dict[int, tuple[Any, ...]] = {}
        names = ", ".join(map(_quoted, ("rowid", *keys)))
        for start in range(0, len(ids), _MOST):
            some = ids[start : start + _MOST]
            query = f"SELECT {names} FROM {_quoted(self._table)} WHERE rowid IN ({', '.join('?' * len(some))})"  # noqa: S608
            with self._lock, _ERRORS:
                found |= {row[0]: row[1:] for row in self._open.execute(query, some)}
        missing = next((row for row in ids if row not in found), None)
        if missing is not None:
            raise StoreError(f"the table lost the row with the `rowid` {missing}, or the file is damaged")
        return [_values([found[row][i] for row in ids], key, self._columns[key]) for i, key in enumerate(keys)]

    def whole(self, key: str) -> Iterator[Array]:
        return (_values(some, key, self._columns[key]) for some in self._each(key))

    def cells(self, key: str) -> Iterator[Any]:
        return chain.from_iterable(self._each(key))

    def lists(self, key: str, *, texts: bool = False) -> Iterator[Any]:
        stored = self._columns.get(key)
        return map(list_in, self.cells(key), repeat(())) if stored is not None and stored.head else super().lists(key, texts=texts)

    def _each(self, key: str) -> Iterator[Sequence[Any]]:
        """Yields the values of a column, some at a time; another read may come between, also after an error in what takes them."""
        with self._lock, _ERRORS:
            rows = self._open.execute(f"SELECT {_quoted(key)} FROM {_quoted(self._table)} ORDER BY rowid")  # noqa: S608
        while some := self._next(rows):
            yield [value for (value,) in some]

    def _next(self, rows: sqlite3.Cursor) -> list[Any]:
        with self._lock, _ERRORS:
            return rows.fetchmany(_MOST)

    def close(self) -> None:
        with self._lock:
            self._open.close()


def _check_closed(path: str) -> None:
    """Checks that no log beside the file has changes: the index, and reading, cover the file alone."""
    for suffix, begins in (("-wal", b""), ("-journal", _JOURNAL)):
        try:
            with open(path + suffix, "rb") as stream:
                head = stream.read(len(_JOURNAL))
        except OSError:
            continue
        if head and head.startswith(begins):
            message = f"{os.path.basename(path) + suffix!r} beside it has changes that are not in the file itself"
            help_ = "close the program that writes to it; or open it once by `sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'`"
            raise Unsuitable(message, help_)


def check_pages(path: str, opened: sqlite3.Connection) -> None:
    """Raises `StoreError` for a wrong size of a file or damaged pages; see `SqliteRows.check`."""
    with _ERRORS:
        said = opened.execute("PRAGMA quick_check(1)").fetchone()[0] if _check_size(path) <= _CHECKED else "ok"
    told = said.decode(errors="replace") if isinstance(said, bytes) else said
    if told != "ok":
        raise StoreError(" ".join(told.split()))


def _check_size(path: str) -> int:
    """Returns the size of a file; `StoreError` if it differs from a current page count in the header."""
    with open(path, "rb") as stream:
        head = stream.read(100)
        size = os.fstat(stream.fileno()).st_size
        page = int.from_bytes(head[16:18], "big")
        end = (page if page > 1 else 1 << 16) * int.from_bytes(head[28:32], "big")
        if head[24:28] != head[92:96] or not end:  # versions before 3.7 did not count pages
            return size
        if size < end:
            raise StoreError(f"it is truncated: it has {size:,} of {end:,} bytes by its header")
        stream.seek(end)
        if any(stream.read(1 << 16)):  # zeros are reserved space
            raise StoreError(f"by its header it ends at byte {end:,}, but {size - end:,} bytes follow, as if a second file was appended")
    return size


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


_AFFINITIES = {"int64": ("INT",), TEXT: ("CHAR", "CLOB", "TEXT"), BYTES: ("BLOB",), "float64": ("REAL", "FLOA", "DOUB", "NUM", "DEC")}
"""Parts of the names of declared types, in the order in which they count, by dtype: "Datatypes In SQLite", section 3.1."""


def _affinity(declared: str) -> str:
    """Returns the dtype of a declared type; "" if any is allowed."""
    kind = declared.upper()
    return next((dtype for dtype, names in _AFFINITIES.items() if any(name in kind for name in names)), "")


def _values(values: Sequence[Any], key: str, stored: FieldType) -> Array:
    """Converts values of a column, which can have any type in any row."""
    if None in values:
        raise MissingValue(f"its `{key}` is NULL")
    if stored.encoded:
        odd = next((value for value in values if not isinstance(value, bytes)), None)
        if odd is not None:
            raise StoreError(f"its `{key}` is the number {odd}, but others are {'text' if stored.dtype == TEXT else 'bytes'}")
        return byte_strings(values)
    if stored.head:
        size = len(stored.head) + math.prod(stored.shape) * np.dtype(stored.dtype).itemsize
        if not all(isinstance(value, bytes) and value.startswith(stored.head) and len(value) == size for value in values):
            raise StoreError(f"its `{key}` is not {stored} as an `.npy` file, like the first one")
        rest = b"".join(value[len(stored.head) :] for value in values)
        return np.frombuffer(rest, np.dtype(stored.dtype).newbyteorder("<")).reshape(len(values), *stored.shape)
    odd = next((value for value in values if isinstance(value, bytes)), None)
    if odd is not None:
        raise StoreError(f"its `{key}` is {odd[:20]!r}, but others are numbers")
    return np.array(values, stored.dtype)


def _quoted(name: str) -> str:
    """Quotes a name for SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
