"""`Columns` of records as text; `Table`, whose columns have a place for each cell; `Partners`, the rows of a joined table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar

from pipegen.errors import OpError, OpErrors
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.columns import Place
from pipegen.ops.fields.labels import LIST, is_missing, label_texts, text_of
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.sources.listing.blocks import BlockReader
from pipegen.ops.sources.listing.paths import close_names
from pipegen.ops.sources.shards.findings import UNPACK, compression
from pipegen.ops.sources.stores.field_types import MissingFieldError, MissingLibrary, column_and_path, value_at

NO_ROW, SEVERAL_ROWS = -1, -2
_DROP = "or leave such rows out with `missing: drop` in `join`"
_MOST_COMPARED = 10_000


class Columns:
    """Columns of records, as text: those of a table, or short values that are read once for all records; and those of a joined table."""

    unit: ClassVar[str]  # the word for records
    called: str  # the name of the source, for messages
    num_rows: int  # the number of records
    place: Place  # describes the place of a record
    notes: tuple[Note, ...] = ()  # findings about them as a whole
    partners: Partners | None = None  # the joined table

    def at(self, wanted: str | int, field: str) -> TableColumn | None:
        """Returns the column of a table by name or number; `None` for one of records that are none. For arguments and errors see
        `column`."""
        raise NotImplementedError

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the text of a column for each record.

        Args:
            wanted: Its name, or its number from 0.
            field: The argument that names it, for errors.

        Raises:
            OpError: `PG421` without such a column; `PG402` for a table without rows.
        """
        raise NotImplementedError

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        """Returns the labels of a column of a table as text; for arguments and errors see `column`."""
        raise NotImplementedError

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Place]:
        """Returns the texts of a column in `where` for some records, and a function that describes the place of one. Raises `OpError` as
        `column`; `PG450` for rows without a joined one."""
        found = self.at(column, "where")
        if found is not None and found.joined and self.partners is not None:
            self.partners.require(rows)
        whole = self.column(column, "where")
        return [whole[row] for row in rows], self.place if found is None else found.place


@dataclass(frozen=True)
class ListFile:
    """The files of a feature for which a table has lists of numbers."""

    make: Callable[[Any], bytes]  # makes the bytes of a file of a list; `ValueError` for a list that cannot be one
    step: int | None = 1  # the numbers of a step of time, of which the length of a list tells that of the example; `None` if it does not

    def steps(self, lengths: Ints) -> Ints | None:
        """Returns the steps of lists of so many numbers each, -1 for a list that ends within one."""
        return None if self.step is None else np.where(lengths % self.step, -1, lengths // self.step)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table."""

    read: Callable[[], Iterable[Any]]  # reads its cells, in order
    place: Place  # describes the place of the cell of a row
    folder: str  # the folder that image paths are relative to
    holds_bytes: bool = False  # whether cells are the bytes of files rather than paths
    holds_lists: bool | None = None  # whether cells are lists of numbers; `None` if only reading them tells
    arrays: Callable[..., Any] | None = None
    """Reads cells of numbers of one shape as an array `(n, *shape)`, `None` if one has another shape or is missing; or with `times=True`
    dates and times without an offset as `datetime64`. If that is possible without Python objects."""
    joined: bool = False  # whether it is one of a joined table

    def take(self, rows: Sequence[int], instead: Place) -> TableColumn:
        """Returns the cells of some rows. Those of rows below 0 are empty, and `instead` describes their places."""

        def read() -> Iterable[Any]:
            cells = tuple(self.read())
            return (cells[row] if row >= 0 else "" for row in rows)

        place = self.place
        return replace(self, read=read, place=lambda i: place(rows[i]) if rows[i] >= 0 else instead(i), arrays=None)

    def agreed(self, members: Sequence[Sequence[int]], called: str | int, field: str) -> TableColumn:
        """Returns the cells of examples of several rows. Reading them raises `OpError` `PG421` if those of an example differ."""
        place = self.place

        def read() -> Iterator[Any]:
            cells = tuple(self.read())
            for rows in members:
                said = text_of(cells[rows[0]])
                odd = next((row for row in rows[1:] if not _agree(text_of(cells[row]), said)), None)
                if odd is not None:
                    held = " and ".join(f"{text.replace(LIST, ' ').strip()!r:.60}" for text in (said, text_of(cells[odd])))
                    message = f"{place(rows[0])} and {place(odd)} are one example, but hold {held} in the column {called!r}"
                    help_ = "rows of one `group` agree in all that is not of a box, a point or an event"
                    raise OpError("PG421", message, field=field or None, help=help_)
                yield cells[rows[0]]

        return replace(self, read=read, place=lambda i: place(members[i][0]), arrays=None)


def _agree(text: str, other: str) -> bool:
    """Tells whether two cells are one text, or one number, such as 1 and 1.0."""
    if text == other:
        return True
    try:
        return float(text) == float(other)
    except ValueError:
        return False


@dataclass(frozen=True)
class Table(Columns):
    """A table: its columns, and names for its rows."""

    unit: ClassVar[str] = "rows"

    called: str
    file: str  # the absolute path; empty for a table in memory
    folder: str  # the folder that image paths are relative to
    names: tuple[str, ...] | None  # the names of the columns, or `None` for a table without a header
    columns: Sequence[TableColumn]
    num_rows: int
    place: Place
    notes: tuple[Note, ...] = ()
    partners: Partners | None = None
    all_rows: Table | None = None  # the table that these rows are some of
    some_rows: Sequence[int] | None = None  # their numbers in it, rising
    ungrouped: Table | None = None  # the rows that examples of several rows have
    members: Sequence[Sequence[int]] = ()  # the numbers of each one's rows there
    heads: Sequence[int] | None = None  # for each row of the whole table, the first one of the same example

    @classmethod
    def of(
        cls,
        called: str,
        file: str,
        folder: str,
        names: tuple[str, ...] | None,
        width: int,
        num_rows: int,
        cells: Callable[[int], Iterable[Any]],
        place: Place | None = None,
        notes: tuple[Note, ...] = (),
    ) -> Table:
        """Makes a table of `width` columns: `cells` reads one by number. By default `place` gives the number of a row, from 0."""
        place = place or (lambda row: f"row {row} of {called}")
        columns = [TableColumn(partial(cells, i), place, folder) for i in range(width)]
        return cls(called, file, folder, names, columns, num_rows, place, notes)

    @classmethod
    def of_rows(
        cls,
        file: str,
        rows: Sequence[tuple[Any, ...]],
        lines: Sequence[int],
        width: int,
        header: bool,
        notes: tuple[Note, ...],
        before: str = ":",
    ) -> Table:
        """Makes the table of a file from its rows, each with a cell for every column; with a `header`, the first one names them. `lines`
        has the number of each row in the file, from 1, which follows `before` in its place. `PG421` if the header is repeated."""
        names = _names_in(rows[0]) if header and rows else None
        if names is not None:
            rows, lines, first = rows[1:], lines[1:], names[0]
            again = (i for i, row in enumerate(rows) if (row[0] != row[0] or str(row[0]).strip() == first) and _names_in(row) == names)
            if (row := next(again, None)) is not None:
                message = f"{file}{before}{lines[row]} repeats the header, as if a second table was appended"
                raise OpError("PG421", message, field="path", help="remove this row, or move the second table to another file or sheet")
        about = repr(file), file, os.path.dirname(file), names, width, len(rows)
        return cls.of(*about, lambda i: (row[i] for row in rows), lambda row: f"{file}{before}{lines[row]}", notes)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @cached_property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The text of each cell, by row."""
        return tuple(zip(*(self.column(i, "") for i in range(self.width)), strict=True)) if self.num_rows else ()

    @property
    def whole(self) -> Table:
        """The table with all its rows."""
        return self.all_rows or self

    @property
    def kept(self) -> Sequence[int]:
        """The numbers of the rows in the whole table, rising."""
        return range(self.num_rows) if self.some_rows is None else self.some_rows

    def only(self, rows: Sequence[int]) -> Table:
        """Returns the table of some rows, which keep their places."""
        place = self.place
        columns = [column.take(rows, place) for column in self.columns]
        row_place = lambda row: place(rows[row])  # noqa: E731
        return replace(self, columns=columns, num_rows=len(rows), place=row_place, partners=None, all_rows=self, some_rows=rows)

    def grouped(self, wanted: str | int, field: str) -> Table:
        """Makes rows with the same value in a column one example, in the order of first rows; for errors see `column`, and `PG421` for an
        empty cell."""
        column = self.at(wanted, field)
        first_of: dict[str, int] = {}
        heads = [first_of.setdefault(value, row) for row, value in enumerate(self.whole.column(wanted, field))]
        members: dict[int, list[int]] = {}
        for row, (own, value) in enumerate(zip(self.kept, self.column(wanted, field), strict=True)):
            if not value:
                raise OpError("PG421", f"{column.place(row)} has no value in the column {wanted!r}, by which rows are grouped", field=field)
            members.setdefault(heads[own], []).append(row)
        found = self.whole.only([self.kept[rows[0]] for rows in members.values()])
        return replace(found, ungrouped=self, members=[*members.values()], heads=heads)

    def named(self) -> Sequence[int]:
        """The numbers in the whole table of the rows that examples are named by, whichever of their rows are left out."""
        return self.kept if self.heads is None else [self.heads[row] for row in self.kept]

    def reader(self, columns: Mapping[str, str | int], files: Mapping[str, ListFile] | None = None) -> BlockReader:
        """Returns the reader of columns that hold bytes, by feature name, or lists of numbers, which stand for `files`."""
        raise NotImplementedError

    def row_names(self) -> Strings:
        """Names rows without files: here by number in the whole table."""
        return Strings.hold(map(str, self.named()))

    def row_places(self) -> Strings:
        """Names the places of rows that hold files themselves."""
        return self.row_names().below(f"{self.file}#")

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        if not self.num_rows:
            raise OpError("PG402", f"{self.called} has no rows", field="path" if self.file else None)
        return tuple(map(text_of, self.at(wanted, field).read()))

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        return label_texts(self.at(wanted, field).read()) if self.num_rows else self.column(wanted, field)

    def json_place(self, wanted: str | int) -> tuple[str | int, tuple[str, ...]]:
        """Splits a name into a column and the path of a field in its JSON."""
        return (wanted, ()) if isinstance(wanted, int) else column_and_path(wanted, self.names or ())

    def at(self, wanted: str | int, field: str) -> TableColumn:
        """Returns a column, or a field of its JSON: `about.label` is `label` in the column `about`, `None` for rows without it. For
        arguments and errors see `column`; reading it raises `OpError`: `PG421` also if a cell is not JSON, or no row has the field."""
        if self.ungrouped is not None:
            return self.ungrouped.at(wanted, field).agreed(self.members, wanted, field)
        column, (name, path) = self.columns[self.number(wanted, field)], self.json_place(wanted)
        return replace(column, read=partial(self._fields, name, path, column, field), arrays=None) if path else column

    def _fields(self, name: str | int, path: tuple[str, ...], column: TableColumn, field: str) -> list[Any]:
        found: list[Any] = []
        lacking: dict[int, str] = {}
        for row, cell in enumerate(column.read()):
            value = None
            try:
                empty = not cell.strip() if isinstance(cell, (str, bytes)) else is_missing(cell)
                value = None if empty else value_at(cell, path, each=True)
            except MissingFieldError as error:
                lacking[row] = str(error)
            except ValueError as error:
                place = column.place(row)
                message = f"no column is named {'.'.join((str(name), *path))!r}, and {name!r} in {place} has no fields: {error}"
                raise OpError("PG421", message, field=field, help=f"the columns are {quoted(self.names or ())}") from None
            if isinstance(value, dict):
                message = f"{'.'.join(path)!r} of the JSON in {name!r}, {column.place(row)}, is an object"
                raise OpError("PG421", message, field=field, help=f"its fields are {quoted(list(value))}")
            found.append(value)
        if lacking and all(value is None for value in found):
            row = next(iter(lacking))
            raise OpError("PG421", f"the JSON in the column {name!r}, {column.place(row)}: {lacking[row]}", field=field)
        return found

    def has(self, wanted: str | int) -> bool:
        """Tells whether exactly one column has this name or number."""
        if isinstance(wanted, int):
            return wanted < self.width
        return self.names is not None and self.names.count(wanted) == 1

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
class Partners:
    """The row of a second table for each record."""

    right: Table  # the second table
    other: str | int  # the key's column in it
    beside: Table  # its columns, for each record; cells are empty without a row
    shown: tuple[int, ...]  # the numbers of its columns that are added: all but the key
    keys: Sequence[str]  # the key of each record
    partner: Sequence[int]  # the row of the second table with this key: -1 for none, -2 for several
    twice: dict[str, int]  # the second row of keys with several rows
    drops: bool  # whether records without a row are left out
    notes: tuple[Note, ...]  # findings about the second table

    def require(self, rows: Iterable[int]) -> None:
        """Raises `PG450` unless each of these rows of the first table has one row in the second."""
        errors = []
        rows = tuple(rows)
        lacking = [row for row in rows if self.partner[row] == NO_ROW]
        if lacking:
            errors.append(self._lacking(lacking, len(rows)))
        several = [row for row in rows if self.partner[row] == SEVERAL_ROWS]
        if several:
            key = self.keys[several[0]]
            first = self.right.column(self.other, "join.on").index(key)
            places = f"{self.right.place(first)} and {self.right.place(self.twice[key])}"
            keys = {self.keys[row] for row in several}
            more = f", like {count(len(keys) - 1, 'other key')}" if len(keys) > 1 else ""
            message = f"the key {key!r} of {self.beside.place(several[0])} is in several rows of {self.right.called}{more}: {places}"
            of_items = f"or, if each row is a box or an event, make that table the source, with `group: {self.other}`, and join this one"
            help_ = ("keep one row of each key there", *([of_items] if isinstance(self.beside, Table) else []))
            errors.append(OpError("PG450", message, field="join.on", help=help_))
        if errors:
            raise OpErrors(errors)

    def _lacking(self, rows: Sequence[int], total: int) -> OpError:
        key, place = self.keys[rows[0]], self.beside.place(rows[0])
        more = f"; {count(len(rows) - 1, 'more row')} of {total} lack one, too" if len(rows) > 1 else ""
        if not key:
            return OpError("PG450", f"{place} has an empty key{more}", field="join.on", help=_DROP)
        there = self.right.column(self.other, "join.on")
        near = close_names(key, sorted(set(there))[:_MOST_COMPARED])
        alike = f"is {near[0]!r} meant?" if near else f"its keys are such as {quoted(list(dict.fromkeys(there))[:3])}"
        message = f"no row of {self.right.called} has the key {key!r} of {place}{more}"
        return OpError("PG450", message, field="join.on", help=(alike, _DROP))


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
