"""`Table`: columns by name or number, and the place of each row in the file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.label_values import is_missing, label_texts, text_of
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sources.listing.paths import close_names
from pipegen.ops.sources.shards.findings import UNPACK, compression
from pipegen.ops.sources.stores.field_types import MissingFieldError, MissingLibrary, column_and_path, value_at
from pipegen.ops.sources.tables.nested import check_room, checked, read_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.fields.notes import Note
    from pipegen.ops.fields.numbers import NumberType
    from pipegen.ops.sources.listing.blocks import BlockReader

Cell = TypeVar("Cell")


@dataclass(frozen=True)
class Table:
    """The columns of a table, as text."""

    called: str  # its name in messages
    file: str  # the absolute path; empty for a table in memory
    folder: str  # the folder that image paths are relative to
    names: tuple[str, ...] | None  # the names of the columns, or `None` for a table without a header
    width: int  # the number of columns
    num_rows: int  # the number of rows
    columns: Callable[[int], Iterable[Any]]  # returns the values of a column by number. Only requested columns are read.
    unit: ClassVar[str] = "rows"

    def has(self, wanted: str | int) -> bool:
        """Tells whether exactly one column has this name or number."""
        if isinstance(wanted, int):
            return wanted < self.width
        return self.names is not None and self.names.count(wanted) == 1

    def holds_bytes(self, wanted: str | int, field: str) -> bool:
        """Tells whether the cells of a column are the bytes of files rather than paths; for errors see `column`."""
        return False

    def arrays(self, wanted: str | int, shape: tuple[int, ...], field: str, dtype: NumberType | None = None) -> Any:
        """Reads a column of arrays of one shape, float32 or int64 `(n, *shape)`. Raises `OpError` as `column`; `PG410` if they do not fit
        in memory, `PG423`, `PG449` and `PG666` as `nested.checked`."""
        found = self.values(wanted, field)
        check_room(self.num_rows, shape, field, dtype)
        cells = read_cells(found, shape, dtype)
        values = None if any(cell is None for cell in cells) else np.array(cells).reshape(len(cells), *shape)
        return checked(values, cells, self.place_in(wanted), shape, field, dtype)

    def reader(self, columns: Mapping[str, str | int]) -> BlockReader:
        """Returns the reader of columns that hold bytes, by feature name."""
        raise NotImplementedError

    def notes(self) -> tuple[Note, ...]:
        """Returns findings about the table as a whole."""
        return ()

    def place(self, row: int) -> str:
        """Describes the place of a row, for messages: here its number, from 0, and the table's name."""
        return f"row {row} of {self.called}"

    def row_names(self, rows: Sequence[int]) -> Strings:
        """Names rows without files: here by number."""
        return Strings.hold(map(str, rows))

    def row_places(self, rows: Sequence[int]) -> Strings:
        """Names the places of rows that hold files themselves."""
        return self.row_names(rows).below(f"{self.file}#")

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the cells of a column as text.

        Args:
            wanted: Its name, or its number from 0.
            field: The argument that names it, for errors.

        Raises:
            OpError: `PG421` without such a column; `PG402` for a table without rows.
        """
        if not self.num_rows:
            raise OpError("PG402", f"{self.called} has no rows", field="path" if self.file else None)
        return tuple(map(text_of, self.values(wanted, field)))

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        """Returns the labels of a column as text; for arguments and errors see `column`."""
        if not self.num_rows:
            return self.column(wanted, field)
        return label_texts(self.values(wanted, field))

    def json_place(self, wanted: str | int) -> tuple[str | int, tuple[str, ...]]:
        """Splits a name into a column and the path of a field in its JSON: `about.label` is `label` in the column `about`."""
        names = self.names or ()
        return (wanted, ()) if isinstance(wanted, int) or wanted in names else column_and_path(wanted, names)

    def values(self, wanted: str | int, field: str) -> Iterable[Any]:
        """Returns the values of a column, or of a field of its JSON, with `None` for rows without it. For arguments and errors see
        `column`. Raises `OpError`: `PG421` also if a cell is not JSON, or no row has the field."""
        (column, path), cells = self.json_place(wanted), self.columns(self.number(wanted, field))
        return self._fields(column, path, cells, field) if path else cells

    def _fields(self, column: str | int, path: tuple[str, ...], cells: Iterable[Any], field: str) -> list[Any]:
        found: list[Any] = []
        lacking: dict[int, str] = {}
        place = self.place_in(column)
        for row, cell in enumerate(cells):
            value = None
            try:
                empty = not cell.strip() if isinstance(cell, (str, bytes)) else is_missing(cell)
                value = None if empty else value_at(cell, path, each=True)
            except MissingFieldError as error:
                lacking[row] = str(error)
            except ValueError as error:
                message = f"no column is named {'.'.join((str(column), *path))!r}, and {column!r} in {place(row)} has no fields: {error}"
                raise OpError("PG421", message, field=field, help=f"the columns are {quoted(self.names or ())}") from None
            if isinstance(value, dict):
                message = f"{'.'.join(path)!r} of the JSON in {column!r}, {place(row)}, is an object"
                raise OpError("PG421", message, field=field, help=f"its fields are {quoted(list(value))}")
            found.append(value)
        if lacking and all(value is None for value in found):
            row = next(iter(lacking))
            raise OpError("PG421", f"the JSON in the column {column!r}, {place(row)}: {lacking[row]}", field=field)
        return found

    def place_in(self, column: str | int) -> Callable[[int], str]:
        """Returns a function that describes the place of a cell, for an existing column."""
        return self.place

    def folder_of(self, column: str | int) -> str:
        return self.folder

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Callable[[int], str]]:
        """Returns the cells of a column in `where` for some rows, and a function that describes the place of a cell. Raises `OpError` as
        `column`; `PG450` for rows without a joined one."""
        whole = self.column(column, "where")
        return [whole[row] for row in rows], self.place_in(column)

    def only(self, rows: Sequence[int]) -> Table:
        """Returns the table of some rows, which keep their places."""
        return SomeRows(
            self.called,
            self.file,
            self.folder,
            self.names,
            self.width,
            len(rows),
            lambda i: map(tuple(self.columns(i)).__getitem__, rows),
            self,
            tuple(rows),
        )

    @property
    def whole(self) -> Table:
        """The table with all its rows."""
        return self

    @property
    def kept(self) -> Sequence[int]:
        """The numbers of the rows in the whole table, rising."""
        return range(self.num_rows)

    def number(self, wanted: str | int, field: str) -> int:
        """Returns the number of a column, which may be written as text without a header, or of the column of a JSON field; see `column`."""
        if self.names is None and isinstance(wanted, str) and wanted.isascii() and wanted.isdigit():
            wanted = int(wanted)
        if isinstance(wanted, int):
            if wanted < self.width:
                return wanted
            message = f"{self.called} has {count(self.width, 'column')}, numbered from 0, but not {wanted}"
            raise OpError("PG421", message, field=field)
        if self.names is None:
            help_ = "use the number of the column, from 0, or `header: true` if the first line has the names"
            raise OpError("PG421", f"the table is read without a header, so it has no column named {wanted!r}", field=field, help=help_)
        named, _ = self.json_place(wanted)
        found = [i for i, name in enumerate(self.names) if name == named]
        if len(found) == 1:
            return found[0]
        if found:
            message = f"{count(len(found), 'column')} of {self.called} are named {named!r}"
            raise OpError("PG421", message, field=field, help=f"use the number of one: {', '.join(map(str, found))}")
        near = close_names(str(wanted), self.names)
        help_ = f"is {quoted(near[:1])} meant?" if near else f"its columns are {quoted(self.names)}"
        raise OpError("PG421", f"{self.called} has no column {wanted!r}", field=field, help=help_)


@dataclass(frozen=True)
class SomeRows(Table):
    """Some rows of a table."""

    table: Table  # the table with all its rows
    rows: tuple[int, ...]  # the numbers of the remaining rows

    def place(self, row: int) -> str:
        return self.table.place(self.rows[row])

    def holds_bytes(self, wanted: str | int, field: str) -> bool:
        return self.table.holds_bytes(wanted, field)

    def reader(self, columns: Mapping[str, str | int]) -> BlockReader:
        return self.table.reader(columns)

    def place_in(self, column: str | int) -> Callable[[int], str]:
        place = self.table.place_in(column)
        return lambda row: place(self.rows[row])

    def folder_of(self, column: str | int) -> str:
        return self.table.folder_of(column)

    @property
    def whole(self) -> Table:
        return self.table

    @property
    def kept(self) -> Sequence[int]:
        return self.rows


@dataclass(frozen=True)
class WholeTable(Table, Generic[Cell]):
    """A table whose cells were read at once."""

    rows: Sequence[tuple[Cell, ...]]  # the rows, each with a cell for every column
    lines: Sequence[int] | None = None  # the number of each row in the file, from 1; without it rows are numbered from 0
    before: str = ":"  # stands between the file and that number in the place of a row
    findings: tuple[Note, ...] = ()  # those of `notes`

    @classmethod
    def of_file(
        cls,
        file: str,
        names: tuple[str, ...] | None,
        width: int,
        rows: Sequence[tuple[Cell, ...]],
        lines: Sequence[int],
        findings: tuple[Note, ...] = (),
        before: str = ":",
    ) -> WholeTable[Cell]:
        """Builds the table of a file from its rows."""
        about = repr(file), file, os.path.dirname(file), names, width, len(rows)
        return cls(*about, lambda i: (row[i] for row in rows), rows, lines, before, findings)

    def notes(self) -> tuple[Note, ...]:
        return self.findings

    def place(self, row: int) -> str:
        return super().place(row) if self.lines is None else f"{self.file}{self.before}{self.lines[row]}"


def under_header(
    file: str, rows: Sequence[tuple[Cell, ...]], lines: Sequence[int], before: str = ":"
) -> tuple[tuple[str, ...] | None, Sequence[tuple[Cell, ...]], Sequence[int]]:
    """Takes the names of columns from the first row. Returns them, the other rows, and their lines; for these and `before` see
    `WholeTable`. `PG421` if the names are repeated."""
    if not rows:
        return None, rows, lines
    names = _names_in(rows[0])
    for row, line in zip(rows[1:], lines[1:], strict=True):
        if (row[0] != row[0] or str(row[0]).strip() == names[0]) and _names_in(row) == names:
            message = f"{file}{before}{line} repeats the header, as if a second table was appended"
            raise OpError("PG421", message, field="path", help="remove this row, or move the second table to another file or sheet")
    return names, rows[1:], lines[1:]


def _names_in(row: Iterable[Any]) -> tuple[str, ...]:
    return tuple("" if cell != cell else str(cell).strip() for cell in row)


def not_text(file: str, error: UnicodeDecodeError) -> OpError:
    """Returns the error for a file that is not UTF-8."""
    packed = compression(content_of(file, 16))
    if packed:
        message = f"{file!r} is compressed by {packed}; tables must be text"
        return OpError("PG421", message, field="path", help=f"unpack it: {UNPACK}")
    message = f"{file!r} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
    return OpError("PG421", message, field="path", help="save it as UTF-8")


@contextmanager
def needed(what: str, library: str, extra: str, otherwise: str, field: str = "path") -> Iterator[None]:
    """Raises `PG421` for a library that `what` needs and that cannot be imported; `otherwise` ends the help."""
    try:
        yield
    except ImportError as error:
        missing = MissingLibrary(library, extra, error)
        raise OpError("PG421", f"{what} need {missing}", field=field, help=f"{missing.help}{otherwise}") from None
