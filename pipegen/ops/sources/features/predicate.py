"""Selects table rows by a predicate, a tree of comparisons of columns that runs no code."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.sources.features.label_values import LIST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Places: TypeAlias = Callable[[int], str]

_FIELD = "where"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
Literal: TypeAlias = bool | int | float | str


class Cells(Protocol):
    """A table whose cells a predicate reads."""

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Places]:
        """Returns the texts of a column in some rows, and a function that describes the place of a row."""


@dataclass(frozen=True)
class Column:
    """A column by name, or by number for a table without a header."""

    name: str

    def __str__(self) -> str:
        return f"`{self.name}`"


@dataclass(frozen=True)
class Compare:
    """A comparison of two sides, at least one of them a column.

    Compared with a number or a truth value, cells are parsed as such; with a text, they stay text. Two columns are compared as numbers by
    `<` and similar, as texts by `==` and `!=`.
    """

    left: Column | Literal
    symbol: str
    right: Column | Literal

    def columns(self) -> tuple[Column, ...]:
        return tuple(side for side in (self.left, self.right) if isinstance(side, Column))

    def select(self, table: Cells, rows: Sequence[int]) -> list[int]:
        read = self._reader()
        left, right = (_values(side, table, rows, read) for side in (self.left, self.right))
        compare = _COMPARE[self.symbol]
        return [row for row, a, b in zip(rows, left, right, strict=True) if compare(a, b)]

    def _reader(self) -> Reader:
        other = next((side for side in (self.left, self.right) if not isinstance(side, Column)), None)
        if other is None:
            return _as_text if self.symbol in ("==", "!=") else _as_number
        return _reader_beside(other)


@dataclass(frozen=True)
class Among:
    """A test whether a cell is one of several texts or numbers."""

    column: Column
    values: tuple[Literal, ...]

    def columns(self) -> tuple[Column, ...]:
        return (self.column,)

    def select(self, table: Cells, rows: Sequence[int]) -> list[int]:
        cells = _values(self.column, table, rows, _reader_beside(self.values[0]))
        values = frozenset(self.values)
        return [row for row, cell in zip(rows, cells, strict=True) if cell in values]


@dataclass(frozen=True)
class Truth:
    """A test of a cell: true for `true`, `yes` and `1`, false for `false`, `no` and `0`, in any case."""

    column: Column

    def columns(self) -> tuple[Column, ...]:
        return (self.column,)

    def select(self, table: Cells, rows: Sequence[int]) -> list[int]:
        return [row for row, cell in zip(rows, _values(self.column, table, rows, _as_truth), strict=True) if cell]


@dataclass(frozen=True)
class Not:
    """The negation of a predicate."""

    of: Predicate

    def columns(self) -> tuple[Column, ...]:
        return self.of.columns()

    def select(self, table: Cells, rows: Sequence[int]) -> list[int]:
        out = set(self.of.select(table, rows))
        return [row for row in rows if row not in out]


@dataclass(frozen=True)
class And:
    """Predicates that must all hold; later ones are tested only on rows for which earlier ones hold."""

    parts: tuple[Predicate, ...]

    def columns(self) -> tuple[Column, ...]:
        return tuple(column for part in self.parts for column in part.columns())

    def select(self, table: Cells, rows: Sequence[int]) -> list[int]:
        kept = list(rows)
        for part in self.parts:
            kept = part.select(table, kept)
        return kept


@dataclass(frozen=True)
class Or:
    """Predicates of which one must hold; later ones are tested only on rows for which no earlier one holds."""

    parts: tuple[Predicate, ...]

    def columns(self) -> tuple[Column, ...]:
        return tuple(column for part in self.parts for column in part.columns())

    def select(self, table: Cells, rows: Sequence[int]) -> list[int]:
        found: set[int] = set()
        for part in self.parts:
            found.update(part.select(table, [row for row in rows if row not in found]))
        return [row for row in rows if row in found]


Predicate: TypeAlias = Compare | Among | Truth | Not | And | Or


class Reader(Protocol):
    """Converts a cell to a value that can be compared.

    Raises:
        ValueError: The word for what the cell should be.
    """

    def __call__(self, cell: str) -> Any: ...


def _reader_beside(literal: Literal) -> Reader:
    if isinstance(literal, bool):
        return _as_truth
    return _as_text if isinstance(literal, str) else _as_number


def _values(side: Column | Literal, table: Cells, rows: Sequence[int], read: Reader) -> Sequence[Any]:
    """Converts one side of a comparison for some rows; `PG452` for an unsuitable cell."""
    if not isinstance(side, Column):
        return [side] * len(rows)
    cells, place = table.cells(side.name, rows)
    values: dict[str, Any] = {}
    for row, cell in zip(rows, cells, strict=True):
        if cell in values:
            continue
        try:
            values[cell] = read(cell)
        except ValueError as error:
            raise _not_comparable(side, cell, place(row), str(error)) from None
    return [values[cell] for cell in cells]


def _not_comparable(column: Column, cell: str, place: str, due: str) -> OpError:
    if cell.startswith(LIST):
        return OpError("PG452", f"{place} holds a list in the column {column}; `where` compares single values", field=_FIELD)
    if not cell:
        message = f"{place} has an empty cell in the column {column}; `where` compares it with {due}"
        said = f"use `{column.name} != '' and …` to leave such rows out, `{column.name} == '' or …` to keep them"
        return OpError("PG452", message, field=_FIELD, help=said)
    message = f"{place} has {cell!r} in the column {column}; `where` compares it with {due}"
    helps = ("put the value in quotes to compare text", f"or leave such rows out with `{column.name} != {cell!r} and …`")
    return OpError("PG452", message, field=_FIELD, help=helps)


def _as_text(cell: str) -> str:
    if cell.startswith(LIST):
        raise ValueError("texts")
    return cell


def _as_number(cell: str) -> int | float:
    try:
        value = int(cell) if cell.lstrip("+-").isdigit() and len(cell) < 40 else float(cell.replace("_", "x"))
    except ValueError:
        raise ValueError("numbers") from None
    if value != value:
        raise ValueError("numbers")
    return value


def _as_truth(cell: str) -> bool:
    if cell.lower() not in _TRUTH:
        raise ValueError("true or false")
    return _TRUTH[cell.lower()]
