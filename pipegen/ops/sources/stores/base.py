"""`Store`: an open file of records, several of which are read in one call; the open stores of this process; errors of libraries."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError
from pipegen.files import stamp
from pipegen.lazy import np
from pipegen.mounts import Opened
from pipegen.ops.sources.stores.field_types import FieldType, MissingLibrary, StoreError, Unsuitable, column_and_path, list_in

if TYPE_CHECKING:
    from pipegen.ops.sources.shards.findings import Findings

Array: TypeAlias = "np.ndarray[Any, Any]"
AT_ONCE = 4096  # rows read together when a whole column is read
MOST_OPEN = 256  # files kept open; many systems allow 1,024 per process


class Store:
    """A file of records. Each format has a subclass, which opens the file when constructed.

    Threads may read at the same time. A store reads the file as it was when opened; `opened` notices changes."""

    rows: int  # the number of records
    at_once: int = 1  # number of records that the format unpacks together

    def __init__(self, path: str) -> None:
        raise NotImplementedError

    def check(self) -> Findings:
        """Checks, when the file is indexed, that it is complete, as far as its format allows without reading records; returns other
        findings, see `findings`. `StoreError` if something is missing, or follows the end."""
        return {}

    def check_beside(self) -> None:
        """Checks, whenever records are listed, that other files with values exist, which the index does not cover; else `StoreError`."""

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

    def number_lists(self, key: str, rows: Array) -> list[Any]:
        """Reads lists of numbers of any length: an array for each of the rows, by number. `StoreError` for a record without one."""
        raise NotImplementedError

    def whole(self, key: str) -> Iterator[Array]:
        """Yields a whole column, some thousand rows at a time."""
        for start in range(0, self.rows, AT_ONCE):
            yield self.read((key,), np.arange(start, min(start + AT_ONCE, self.rows)))[0]

    def cells(self, key: str) -> Iterator[Any]:
        """Yields the values of a column as Python values, `None` for missing ones."""
        return (value for values in self.whole(key) for value in values.tolist())

    def lists(self, key: str, *, texts: bool = False) -> Iterator[Any]:
        """Yields the list of each record under a key, or in a field of its JSON: a row of an array, or as from `list_in`. `StoreError` if
        the key is missing, or a value holds no list."""
        columns = self.columns()
        column, path = column_and_path(key, [name for name, stored in columns.items() if stored.encoded])
        if column not in columns:
            raise StoreError(f"it has no key {key!r}; {suggested(key, columns)}")
        for row, value in enumerate(chain.from_iterable(self.whole(column))):
            try:
                yield list_in(value, path, texts=texts) if columns[column].encoded else value
            except ValueError as error:
                raise StoreError(f"record {row:,}: {error}") from None

    def close(self) -> None:
        """Closes the file; nothing can be read afterwards."""


def byte_strings(values: Sequence[bytes]) -> Array:
    """Holds byte strings as objects; an array of bytes would drop trailing zeros."""
    held: Array = np.empty(len(values), object)
    held[:] = values
    return held


class Extents(Opened):
    """A file read by offsets. It is not mapped, so truncation gives an error rather than a signal."""

    def extent(self, offset: int, length: int) -> bytes:
        """Reads a stretch; `StoreError` if it is not inside of the file."""
        if not 0 <= offset <= offset + length <= self._size:
            raise StoreError(f"it should have the bytes {offset:,} to {offset + length:,}, but the file has {self._size:,}")
        found = self.pread(length, offset)
        while len(found) < length:  # Linux reads at most 2 GiB per call
            more = self.pread(length - len(found), offset + len(found))
            if not more:
                raise StoreError(f"the file was truncated to {offset + len(found):,} bytes while it was read")
            found += more
        return found

    def __del__(self) -> None:
        self.close()


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


@contextmanager
def needs(library: str, extra: str) -> Iterator[None]:
    """Raises `MissingLibrary` for an import that fails; `extra` is the extra of pipegen with the library."""
    try:
        yield
    except ImportError as error:
        raise MissingLibrary(library, extra, error) from None


class Translated:
    """A context that raises errors of a library as `StoreError`, with what `said` returns for them."""

    def __init__(self, *errors: type[Exception], said: Callable[[Exception], str] = one_line) -> None:
        self._errors, self._said = errors, said

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, self._errors) and not isinstance(error, StoreError):
            raise StoreError(self._said(error)) from None


@contextmanager
def translated(called: str, what: str, field: str | None, code: str = "PG431", help: str | None = None) -> Iterator[None]:
    """Raises errors of stores as `OpError`: `what` cannot be read from files of the format `called`; `PG440` without its library."""
    try:
        yield
    except MissingLibrary as error:
        raise error.diagnosed(called) from None
    except StoreError as error:
        raise OpError(code, f"{what} cannot be read: {error}", field=field, help=help) from None


class _Handles:
    """The open stores of this process: `recent` ones, and `open` ones that a thread still reads. Those that a forked process `inherited` it
    must not even close."""

    def __init__(self, inherited: tuple[Store, ...] = ()) -> None:
        self.lock = threading.RLock()
        self.recent: OrderedDict[Hashable, Store] = OrderedDict()
        self.open: WeakValueDictionary[Hashable, Store] = WeakValueDictionary()
        self.inherited = inherited

    def get(self, key: Hashable, make: Callable[[], Store]) -> Store:
        """Returns the store of a key, making it on a miss."""
        with self.lock:
            store = self.recent.get(key) or self.open.get(key) or make()
            self.recent[key] = self.open[key] = store
            self.recent.move_to_end(key)
            while len(self.recent) > MOST_OPEN:
                self.recent.popitem(last=False)
        return store

    def forked(self) -> None:
        """Resets a forked process: open files of libraries, and locks, must not be shared."""
        self.__init__((*self.inherited, *self.recent.values()))  # type: ignore[misc]


HANDLES = _Handles()
os.register_at_fork(after_in_child=HANDLES.forked)


def opened(kind: type[Store], path: str, listed: tuple[int, int] | None = None, *arguments: Hashable) -> Store:
    """Returns the store of a file, opening it on a miss; `StoreError` if it cannot be opened, or changed since its records were `listed`
    with a stamp. `arguments` are further ones of the format."""
    try:
        # Folders are checked at the start of an epoch rather than for every record.
        now = listed if listed is not None and os.path.isdir(path) else stamp(path)
    except OSError as error:
        raise StoreError(f"the file cannot be opened: {error.strerror}") from None
    if listed is not None and now != listed:
        raise StoreError("the file has changed since its records were listed; build the pipeline again")
    return HANDLES.get((kind, path, now, arguments), lambda: kind(path, *arguments))
