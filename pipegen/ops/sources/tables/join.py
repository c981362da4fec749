"""Joins a second table by key: each row gets the columns of the only row with its key. Selects the rows that are records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError, OpErrors
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import LeftOut, Note, count, quoted
from pipegen.ops.sources.features.predicate import Rows, matching, some
from pipegen.ops.sources.listing.paths import close_names
from pipegen.ops.sources.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.fields.strings import Strings
    from pipegen.ops.sources.listing.blocks import BlockReader
    from pipegen.ops.sources.tables.features import InTable
    from pipegen.ops.sources.tables.readings import Column, Join

_NONE, _SEVERAL = -1, -2


def partners_of(join: Join, first: Rows, place: Callable[[int], str], base: Path) -> Partners:
    """Reads the second table and looks up the key of each row of the first one, whose places `place` describes. Raises `OpError` as the
    source of the second table; `PG421` for a missing column."""
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
    shown = tuple(i for i in range(right.width) if right.json_place(other)[1] or i != right.number(other, "join.on"))
    return Partners(right, other, shown, keys, partner, twice, place, join.missing == "drop", at)


def joined_to(join: Join, left: Table, base: Path) -> Joined:
    """Joins the second table to one; for errors see `partners`."""
    partners = partners_of(join, left, left.place, base)
    right, shown = partners.right, partners.shown
    names = None
    if left.names is not None or right.names is not None:
        names = (*(left.names or ("",) * left.width), *(right.names[i] if right.names is not None else "" for i in shown))

    def column(i: int) -> Iterable[Any]:
        return left.columns(i) if i < left.width else partners.cells(shown[i - left.width])

    width = left.width + len(shown)
    return Joined(left.called, left.file, left.folder, names, width, left.num_rows, column, left, partners)


@dataclass(frozen=True)
class Partners:
    """The row of a second table for each row of a first one."""

    right: Table  # the second table
    other: Column  # the key's column in it
    shown: tuple[int, ...]  # the numbers of its columns that are added: all but the key
    keys: Sequence[str]  # the key of each row of the first table
    partner: Sequence[int]  # the row of the second table with this key: -1 for none, -2 for several
    twice: dict[str, int]  # the second row of keys with several rows
    place: Callable[[int], str]  # describes the place of a row of the first table
    drops: bool  # whether rows without a partner are left out
    at: str  # the argument of the second table

    def cells(self, number: int) -> Iterable[Any]:
        """Returns the values of a column of the second table for each row of the first; "" without a partner."""
        cells = tuple(self.right.columns(number))
        return (cells[row] if row >= 0 else "" for row in self.partner)

    def place_in(self, number: int) -> Callable[[int], str]:
        """Returns a function that describes the place of a cell of the second table."""
        place = self.right.place_in(number)
        return lambda row: place(self.partner[row]) if self.partner[row] >= 0 else self.place(row)

    def notes(self) -> Iterable[Note]:
        return (replace(note, field=f"{self.at}.{note.field}" if note.field else self.at) for note in self.right.notes())

    def rows(self) -> tuple[int, ...]:
        """Returns the rows of the first table whose key the second one has."""
        return tuple(row for row, partner in enumerate(self.partner) if partner != _NONE)

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


@dataclass(frozen=True)
class Joined(Table):
    """A table with the columns of a second one."""

    left: Table  # the first table, which has these rows
    partners: Partners  # the second table

    def notes(self) -> tuple[Note, ...]:
        return (*self.left.notes(), *self.partners.notes())

    def place(self, row: int) -> str:
        return self.left.place(row)

    def place_in(self, column: str | int) -> Callable[[int], str]:
        number = self.number(column, "")
        return self.left.place_in(number) if number < self.left.width else self.partners.place_in(self._right(number))

    def _right(self, number: int) -> int:
        """Returns the number in the second table of one of its columns."""
        return self.partners.shown[number - self.left.width]

    def holds_bytes(self, wanted: str | int, field: str) -> bool:
        """Tells whether a column of the first table does; `PG446` for one of the second table, whose rows are in another order."""
        number = self.number(wanted, field)
        if number < self.left.width:
            return self.left.holds_bytes(number, field)
        if self.partners.right.holds_bytes(self._right(number), field):
            message = f"the images in {wanted!r} are in the joined table, whose rows are in another order"
            raise OpError("PG446", message, field=field, help="make the table with the images the source, and join the other one to it")
        return False

    def reader(self, columns: Mapping[str, str | int]) -> BlockReader:
        return self.left.reader({feature: self.number(wanted, "") for feature, wanted in columns.items()})

    def row_names(self, rows: Sequence[int]) -> Strings:
        return self.left.row_names(rows)

    def row_places(self, rows: Sequence[int]) -> Strings:
        return self.left.row_places(rows)

    def folder_of(self, column: str | int) -> str:
        return self.left.folder if self.number(column, "") < self.left.width else self.partners.right.folder

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Callable[[int], str]]:
        found = super().cells(column, rows)
        if self.number(column, "") >= self.left.width:
            self.partners.require(rows)
        return found


_DROP = "or leave such rows out with `missing: drop` in `join`"
_MOST_COMPARED = 10_000


def kept_rows(
    table: Rows, where: str | None, labels: Mapping[str, InTable], partners: Partners | None
) -> tuple[Sequence[int], tuple[Note, ...]]:
    """Leaves out rows that a join drops, rows that `where` excludes, and rows of ignored classes.

    Args:
        table: The rows, joined if there is a join.
        where: The predicate.
        labels: The features that are labels in columns.
        partners: The joined table.

    Returns:
        The remaining rows, rising, and findings.

    Raises:
        OpErrors: `PG402` if no row is left, `PG421` for unknown columns, `PG450` for keys with no or several partners, `PG452` for cells
            that cannot be compared.
    """
    rows: Sequence[int] = range(table.num_rows)
    notes = list(table.notes())
    if partners is not None and partners.drops:
        rows = partners.rows()
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
