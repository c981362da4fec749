"""`Table`: columns by name or number, and the place of each row in the file."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import fields
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.mounts import content_of
from pipegen.ops.sources.features.label_values import is_missing, label_texts, text_of
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.listing.wording import close_names, count, quoted
from pipegen.ops.sources.records.findings import UNPACK, compression
from pipegen.ops.sources.stores.field_types import MissingFieldError, column_and_path, value_at
from pipegen.ops.sources.tables.nested import check_room, checked, read_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.sources.features.numbers import NumberType
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.blocks import BlockReader

WHITESPACE = "whitespace"
_TABS = (".tsv", ".tab")
_MOST_FIELD = 1 << 24
_MARK = "\ufeff"
_SEPARATOR = re.compile(r'"?sep=([^"\n\r])"?\s*\Z')
_DOUBLED = 'close the quote on its line, or replace line breaks by blanks; double quotes within a cell: `"say ""hi"""`'


@dataclass(frozen=True)
class Table:
    """The columns of a table, as text.

    Attributes:
        called: Its name in messages.
        file: The absolute path; empty for a table in memory.
        folder: The folder that image paths are relative to.
        names: The names of the columns, or `None` for a table without a header.
        width: The number of columns.
        num_rows: The number of rows.
        columns: Returns the values of a column by number. Only requested columns are read.
    """

    called: str
    file: str
    folder: str
    names: tuple[str, ...] | None
    width: int
    num_rows: int
    columns: Callable[[int], Iterable[Any]]
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
        """Reads a column of arrays of one shape, float32 or int64 `(n, *shape)`.

        Raises:
            OpError: As `column`; `PG410` if they do not fit in memory, `PG423`, `PG449` and `PG666` as `nested.checked`.
        """
        import numpy as np

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
        `column`.

        Raises:
            OpError: `PG421` also if a cell is not JSON, or no row has the field.
        """
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
        """Returns the cells of a column in `where` for some rows, and a function that describes the place of a cell.

        Raises:
            OpError: As `column`; `PG450` for rows without a joined one.
        """
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
            lambda i: _at(tuple(self.columns(i)), rows),
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
    """Some rows of a table.

    Attributes:
        table: The table with all its rows.
        rows: The numbers of the remaining rows.
    """

    table: Table
    rows: tuple[int, ...]

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


def _at(cells: Sequence[Any], rows: Sequence[int]) -> Iterator[Any]:
    return (cells[row] for row in rows)


@dataclass(frozen=True)
class TextTable(Table):
    """A text table.

    Attributes:
        rows: The rows, each with a cell for every column.
        lines: The line of the file that each row begins on, from 1.
        odd: Findings about it.
    """

    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    odd: tuple[Note, ...] = ()

    def notes(self) -> tuple[Note, ...]:
        return self.odd

    def place(self, row: int) -> str:
        return f"{self.file}:{self.lines[row]}"


def as_text(table: Table) -> TextTable:
    """Reads every column of a table; its rows count as lines."""
    columns = [table.column(i, "") for i in range(table.width)] if table.num_rows else []
    rows = tuple(zip(*columns, strict=True))
    plain: dict[str, Any] = {field.name: getattr(table, field.name) for field in fields(Table)}
    return TextTable(**plain, rows=rows, lines=tuple(range(1, table.num_rows + 1)))


def find_table(base: str, path: str) -> str:
    """Returns the absolute path of a table's file; `PG401` if it is missing."""
    file = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if not os.path.isfile(file):
        raise OpError("PG401", f"{file!r} {'is a folder, not a table' if os.path.isdir(file) else 'does not exist'}", field="path")
    return file


def not_text(file: str, error: UnicodeDecodeError) -> OpError:
    """Returns the error for a file that is not UTF-8."""
    packed = compression(content_of(file, 16))
    if packed:
        message = f"{file!r} is compressed by {packed}; tables must be text"
        return OpError("PG421", message, field="path", help=f"unpack it: {UNPACK}")
    message = f"{file!r} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
    return OpError("PG421", message, field="path", help="save it as UTF-8")


def read_table(base: str, path: str, *, separator: str | None, header: bool) -> TextTable:
    """Reads a text table in UTF-8.

    Args:
        base: What a relative path is relative to.
        path: The file.
        separator: As `CsvTable.separator`.
        header: Whether the first row names the columns.

    Raises:
        OpError: `PG401` if the file is missing; `PG421` if it is not a text table, or its rows differ in length.
    """
    file = find_table(base, path)
    lines: list[int] = []
    cells: list[tuple[str, ...]] = []
    spanning: list[int] = []
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            said = _SEPARATOR.match(first)
            separator = separator or (said[1] if said else "\t" if file.lower().endswith(_TABS) else ",")
            begin = ["\n" if said else first] if first else []
            for line, last, row in _rows(_checked(chain(begin, stream), file), separator):
                if row:
                    if last > line:
                        spanning.append(len(cells))
                    lines.append(line)
                    cells.append(tuple(row))
    except UnicodeDecodeError as error:
        raise not_text(file, error) from None
    except (OSError, csv.Error) as error:
        help_ = _DOUBLED if isinstance(error, csv.Error) and lines else None
        after = f" after line {lines[-1]:,}" if help_ else ""
        raise OpError("PG421", f"{file!r} cannot be read as a table{after}: {error}", field="path", help=help_) from None
    names = None
    width = len(cells[0]) if cells else 0
    if header and cells:
        names = tuple(name.strip() for name in cells[0])
    odd = next((i for i, row in enumerate(cells) if len(row) != width), None)
    if odd is not None:
        message = f"{file}:{lines[odd]} has {count(len(cells[odd]), 'column')}, but the rows before it have {width}"
        raise OpError("PG421", message, field="path", help=_why_uneven(separator, cells[odd]))
    notes = _swallowed(file, lines, cells, spanning, separator, header=header)
    if names is not None:
        _check_headers(file, lines, cells, names)
        lines, cells = lines[1:], cells[1:]
    about = repr(file), file, os.path.dirname(file), names, width, len(cells)
    return TextTable(*about, lambda i: (row[i] for row in cells), tuple(cells), tuple(lines), notes)


def _checked(stream: Iterable[str], file: str) -> Iterator[str]:
    """Yields lines; raises for zero bytes and byte order marks, which would become parts of cells."""
    for number, line in enumerate(stream, 1):
        if "\0" in line:
            message = f"{file}:{number} holds a zero byte, as if a part of the file was lost"
            raise OpError("PG421", message, field="path", help="copy or write the file again; save it as UTF-8")
        if line[0] == _MARK:
            message = f"{file}:{number} begins with a byte order mark, as if a second file was appended"
            raise OpError("PG421", message, field="path", help="remove the mark, and the header after it")
        yield line


def _check_headers(file: str, lines: Sequence[int], cells: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Raises `PG421` if the header is repeated."""
    for line, row in zip(lines[1:], cells[1:], strict=True):
        if row[0].strip() == names[0] and [cell.strip() for cell in row] == [*names]:
            message = f"{file}:{line} repeats the header, as if a second file was appended"
            raise OpError("PG421", message, field="path", help="remove this line")


def _swallowed(
    file: str, lines: Sequence[int], cells: Sequence[Sequence[str]], spanning: Sequence[int], separator: str, *, header: bool
) -> tuple[Note, ...]:
    """Reports cells of several lines that hold rows: `PG421` if it is sure, else a note."""
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.tables.swallowed import rows_inside, verdict

    own = set(spanning)
    others: list[Sequence[str]] | None = None
    perhaps: list[int] = []
    for place in spanning:
        inside = rows_inside(cells[place], separator, len(cells[place]))
        if inside is None:
            continue
        if others is None:
            others = [row for i, row in enumerate(cells) if i not in own and not (header and i == 0)]
        found = "rows" if header and place == 0 else verdict(inside, others)
        if found == "rows":
            message = f"a cell of {file}:{lines[place]} holds {count(len(inside.rows) - 1, 'more row')}; it begins with a stray quote"
            raise OpError("PG421", message, field="path", help=_DOUBLED)
        if found == "perhaps":
            perhaps.append(place)
    if not perhaps:
        return ()
    more = f", like {count(len(perhaps) - 1, 'other row')}" if len(perhaps) > 1 else ""
    message = f"a cell of {file}:{lines[perhaps[0]]} spans lines with as many cells each as a row{more}"
    return (Note("PG421", message, _DOUBLED, "path", "warning"),)


def _rows(stream: Iterator[str], separator: str) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Yields rows with their first and last lines; blank lines are empty rows."""
    if separator == WHITESPACE:
        for number, text in enumerate(stream, 1):
            yield number, number, text.split()
        return
    csv.field_size_limit(_MOST_FIELD)
    reader = csv.reader(stream, delimiter=separator, strict=True, skipinitialspace=True)
    line = 1
    for row in reader:
        yield line, reader.line_num, row
        line = reader.line_num + 1


def _why_uneven(separator: str, row: Sequence[str]) -> str:
    if separator != WHITESPACE and len(row) == 1:
        return "set `separator`, such as `;` or `whitespace`"
    return "put cells that contain the separator in double quotes"
