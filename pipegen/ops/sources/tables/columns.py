"""Columns of records: those of a table, or short values that are read once; a table that is joined to them; what they choose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pipegen.errors import Attempts, OpError, OpErrors
from pipegen.frozen import dataclass
from pipegen.ops.fields.label_values import label_texts, text_of
from pipegen.ops.fields.notes import LeftOut, Note, count, quoted
from pipegen.ops.sources.features.predicate import parse_predicate
from pipegen.ops.sources.listing.paths import close_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.fields.columns import Column, Place
    from pipegen.ops.sources.tables.features import InTable
    from pipegen.ops.sources.tables.readings import Column as ColumnName
    from pipegen.ops.sources.tables.readings import Join
    from pipegen.ops.sources.tables.table import Table, TableColumn

_NONE, _SEVERAL = -1, -2
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


class RecordColumns(Columns):
    """The columns of all records of a source, in its order, and those of a table that is joined to them.

    Args:
        called: The name of the source, for messages.
        num_rows: The number of records.
    """

    unit: ClassVar[str] = "records"

    def __init__(self, called: str, num_rows: int) -> None:
        self.called, self.num_rows = called, num_rows

    def own(self, name: str, field: str) -> tuple[str, ...]:
        """Returns the text of a column for every record, "" for records without it; for errors see `column`."""
        raise NotImplementedError

    def known(self) -> Sequence[str]:
        """Returns the columns of the records, as far as they are known."""
        raise NotImplementedError

    def join(self, join: Join, base: Path) -> Partners:
        """Joins a table by a column of the records; for errors see `partners_of`."""
        partners = partners_of(join, self, base)
        self.partners, self.notes = partners, partners.notes
        return partners

    def at(self, wanted: str | int, field: str) -> TableColumn | None:
        """Returns a column of the table, `None` for one of the records; `PG421` if both have one of that name."""
        if self.partners is None:
            return None
        table = self.partners.beside
        name, _ = table.json_place(wanted)
        if not table.has(name) or table.number(name, field) not in self.partners.shown:
            return None
        if wanted in self.known():
            message = f"both the records and {table.called} have {wanted!r}"
            raise OpError("PG421", message, field=field or None, help="give the column another name")
        return table.at(wanted, field)

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the text of a column of the table, else of the records, "" for those without it. Raises `OpError`: `PG421` also for a
        column that no record has, or that holds no text; `PG430` for a file that cannot be read."""
        found = self.at(wanted, field)
        return self.own(str(wanted), field) if found is None else tuple(map(text_of, found.read()))

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        if self.partners is None:
            return self.column(wanted, field)
        return label_texts(self.partners.beside.at(wanted, field).read())


@dataclass(frozen=True)
class Partners:
    """The row of a second table for each record."""

    right: Table  # the second table
    other: ColumnName  # the key's column in it
    beside: Table  # its columns, for each record; cells are empty without a row
    shown: tuple[int, ...]  # the numbers of its columns that are added: all but the key
    keys: Sequence[str]  # the key of each record
    partner: Sequence[int]  # the row of the second table with this key: -1 for none, -2 for several
    twice: dict[str, int]  # the second row of keys with several rows
    place: Place  # describes the place of a record
    drops: bool  # whether records without a row are left out
    notes: tuple[Note, ...]  # findings about the second table

    def matched(self) -> tuple[int, ...]:
        """Returns the records whose key the second table has."""
        return tuple(row for row, partner in enumerate(self.partner) if partner != _NONE)

    def read(self, features: Mapping[str, InTable], rows: Sequence[int]) -> dict[str, Column]:
        """Reads features in its columns for some records, which all have a row. Raises `OpErrors` as `read_held`."""
        if not features:
            return {}
        from pipegen.ops.sources.tables.held import read_held

        tried = Attempts()
        held = read_held(features, self.beside.only(rows), tried)
        if tried.errors:
            raise OpErrors(dict.fromkeys(tried.errors))
        return held

    def require(self, rows: Iterable[int]) -> None:
        """Raises `PG450` unless each of these rows of the first table has one row in the second."""
        errors = []
        rows = tuple(rows)
        lacking = [row for row in rows if self.partner[row] == _NONE]
        if lacking:
            errors.append(self._lacking(lacking, len(rows)))
        several = [row for row in rows if self.partner[row] == _SEVERAL]
        if several:
            key = self.keys[several[0]]
            first = self.right.column(self.other, "join.on").index(key)
            places = f"{self.right.place(first)} and {self.right.place(self.twice[key])}"
            keys = {self.keys[row] for row in several}
            more = f", like {count(len(keys) - 1, 'other key')}" if len(keys) > 1 else ""
            message = f"the key {key!r} of {self.place(several[0])} is in several rows of {self.right.called}{more}: {places}"
            errors.append(OpError("PG450", message, field="join.on", help="keep one row of each key there"))
        if errors:
            raise OpErrors(errors)

    def _lacking(self, rows: Sequence[int], total: int) -> OpError:
        key, place = self.keys[rows[0]], self.place(rows[0])
        more = f"; {count(len(rows) - 1, 'more row')} of {total} lack one, too" if len(rows) > 1 else ""
        if not key:
            return OpError("PG450", f"{place} has an empty key{more}", field="join.on", help=_DROP)
        there = self.right.column(self.other, "join.on")
        near = close_names(key, sorted(set(there))[:_MOST_COMPARED])
        alike = f"is {near[0]!r} meant?" if near else f"its keys are such as {quoted(list(dict.fromkeys(there))[:3])}"
        message = f"no row of {self.right.called} has the key {key!r} of {place}{more}"
        return OpError("PG450", message, field="join.on", help=(alike, _DROP))


def partners_of(join: Join, first: Columns, base: Path) -> Partners:
    """Reads the second table and looks up the key of each record in it. Raises `OpError` as the source of the second table; `PG421` for a
    missing column."""
    at = f"join.table.{join.table.name}"
    try:
        right: Table = getattr(join.table, join.table.name).read(base)
    except OpError as error:
        raise OpErrors(e.below(at) for e in error.every) from None
    other = join.on[join.own] if isinstance(join.on, dict) else join.on
    rows_of: dict[str, int] = {}
    twice: dict[str, int] = {}
    for row, key in enumerate(right.column(other, "join.on")):
        if rows_of.setdefault(key, row) != row:
            twice.setdefault(key, row)
    keys = first.column(join.own, "join.on")
    partner = [_SEVERAL if key in twice else rows_of.get(key, _NONE) if key else _NONE for key in keys]
    columns = [replace(column.take(partner, first.place), joined=True) for column in right.columns]
    beside = replace(right, columns=columns, num_rows=len(partner), place=first.place)
    shown = tuple(i for i in range(right.width) if right.json_place(other)[1] or i != right.number(other, "join.on"))
    notes = tuple(replace(note, field=f"{at}.{note.field}" if note.field else at) for note in right.notes)
    return Partners(right, other, beside, shown, keys, partner, twice, first.place, join.missing == "drop", notes)


def joined_to(join: Join, left: Table, base: Path) -> Table:
    """Joins the second table to one, whose rows get its columns; for errors see `partners_of`."""
    partners = partners_of(join, left, base)
    right, names = partners.beside, None
    if left.names is not None or right.names is not None:
        names = (*(left.names or ("",) * left.width), *(right.names[i] if right.names is not None else "" for i in partners.shown))
    columns = [*left.columns, *(right.columns[i] for i in partners.shown)]
    return replace(left, names=names, columns=columns, notes=(*left.notes, *partners.notes), partners=partners)


def kept_rows(table: Columns, where: str | None, labels: Mapping[str, InTable]) -> tuple[Sequence[int], tuple[Note, ...]]:
    """Leaves out rows that a join drops, rows that `where` excludes, and rows of ignored classes.

    Args:
        table: The rows, joined if there is a join.
        where: The predicate.
        labels: The features that are labels in columns.

    Returns:
        The remaining rows, rising, and findings.

    Raises:
        OpErrors: `PG402` if no row is left, `PG421` for unknown columns, `PG450` for keys with no or several partners, `PG452` for cells
            that cannot be compared.
    """
    rows: Sequence[int] = range(table.num_rows)
    notes, partners = list(table.notes), table.partners
    if partners is not None and partners.drops:
        rows = partners.matched()
        if len(rows) < table.num_rows:
            one, several = (f"{what} whose key the joined table lacks" for what in (table.unit.removesuffix("s"), table.unit))
            gone = LeftOut(table.num_rows - len(rows), one, several)
            told = f"{gone.number} {one.split()[0] if gone.number == 1 else table.unit} of {table.num_rows:,} left out"
            notes.append(Note("PG411", f"{told}: {partners.right.called} lacks the key", field="join.missing", left_out=(gone,)))
        rows = some(rows, table, "join.on", "has a key of the joined table")
    if where is not None:
        rows = matching(table, where, rows)
    for name, feature in labels.items():
        if feature.chosen:
            field = f"features.{name}"
            cells = table.labels(feature.column_of(name), f"{field}.column")
            notes += feature.chosen.notes(cells, feature.separator, field)
            renamed = feature.chosen.renamed([cells[row] for row in rows], feature.separator)
            stays = feature.chosen.without_ignored(renamed, feature.separator)
            rows = some([rows[i] for i in stays], table, f"{field}.ignore", "has a class that `ignore` keeps")
    if partners is not None:
        partners.require(rows)
    return rows, tuple(notes)


def matching(table: Columns, where: str, rows: Sequence[int]) -> Sequence[int]:
    """Returns the rows that a predicate selects. Raises `OpErrors`: `PG402` if no row is left, `PG421` for unknown columns, `PG452` for
    cells that cannot be compared."""
    predicate = parse_predicate(where)
    unknown = Attempts()
    for column in predicate.columns():
        unknown.of(table.cells, column.name, ())
    if unknown.errors:
        raise OpErrors(dict.fromkeys(unknown.errors), table.column)
    try:
        kept = predicate.select(table, rows)
    except OpError as error:
        raise OpErrors([error], table.column) from None
    names = dict.fromkeys(column.name for column in predicate.columns())
    held = (f"the column `{name}` holds {quoted(sorted(set(table.cells(name, rows)[0])))}" for name in names)
    return some(kept, table, "where", "matches `where`", held)


def some(rows: Sequence[int], table: Columns, field: str, what: str, help_: Iterable[str] = ()) -> Sequence[int]:
    """Returns the rows; `PG402` if there are none."""
    if not rows:
        message = f"none of the {table.num_rows:,} {table.unit} of {table.called} {what}"
        raise OpErrors([OpError("PG402", message, field=field, help=tuple(help_))], table.column)
    return rows
