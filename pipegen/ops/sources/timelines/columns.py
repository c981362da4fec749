"""Columns of the rows that windows are cut from: of a table, or of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.labels import is_missing, label_texts
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.fields.numbers import as_array
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.tables.table import Table

_MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nat", "?"})
"""Texts, in lower case, of cells without a value."""
_YEARS = "years 1678 to 2261"


class RowColumns:
    """Columns of rows.

    Attributes:
        called: The name of the rows as a whole, for messages.
        names: The columns, if they have names.
        num_rows: The number of rows.
        series: The rows of each series, in order, int64 `(series,)`, if the data says which rows are one.
        classes: The classes of columns, in index order, where the data lists them.
    """

    called: str
    names: Sequence[str] | None
    num_rows: int
    series: Ints | None = None
    classes: Mapping[str, tuple[str, ...]] = {}

    def place(self, row: int) -> str:
        """Describes the place of a row."""
        raise NotImplementedError

    def cells(self, column: str | int, field: str) -> Sequence[Any]:
        """Returns the cells of a column, as stored; `PG421` without such a column, which the argument `field` names."""
        raise NotImplementedError

    def times(self, column: str | int, field: str) -> Sequence[Any]:
        """Returns the cells of a column of times; as an array, if they are stored as such."""
        return self.cells(column, field)

    def texts(self, column: str | int, field: str) -> Sequence[str]:
        """Returns the cells of a column as text, "" for missing ones."""
        return label_texts(self.cells(column, field))

    def numbered(self, column: str | int, field: str) -> tuple[Ints, tuple[str, ...]]:
        """Numbers the different texts of a column, "" for missing ones, in the order of their first rows: the number of each row, int64
        `(rows,)`, and the texts."""
        cells = self.cells(column, field)
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuUS":
            _, firsts, codes = np.unique(cells, return_index=True, return_inverse=True)
            ranks = np.argsort(np.argsort(firsts))
            different, codes = cells[np.sort(firsts)].tolist(), ranks[codes]
        else:  # of several types, some are equal but not as text
            own = cells if {*map(type, cells)} in ({str}, {int}, {bytes}) else label_texts(cells)
            places = {cell: i for i, cell in enumerate(dict.fromkeys(own))}
            different, codes = [*places], np.fromiter(map(places.__getitem__, own), np.int64, len(own))
        texts = label_texts(different)
        numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        return np.array([numbers[text] for text in texts], np.int64)[codes], (*numbers,)

    def numbers(self, column: str | int, field: str) -> Any:
        """Reads a column of numbers: an array `(rows,)` or `(rows, channels)`, NaN for missing ones; `PG423` for other cells, `PG419` for
        arrays of another dtype."""
        raise NotImplementedError


class TableColumns(RowColumns):
    """The columns of a table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.called, self.names, self.num_rows = table.called, table.names, table.num_rows

    def place(self, row: int) -> str:
        return self._table.place(row)

    def cells(self, column: str | int, field: str) -> Sequence[Any]:
        return [*self._table.at(column, field).read()]

    def times(self, column: str | int, field: str) -> Sequence[Any]:
        found = self._table.at(column, field)
        array = found.arrays((), times=True) if found.arrays is not None else None
        return [*found.read()] if array is None else array

    def numbers(self, column: str | int, field: str) -> Any:
        found = self._table.at(column, field)
        array = found.arrays(()) if found.arrays is not None else None
        return as_floats([*found.read()], found.place, field) if array is None else array


class ArrayColumns(RowColumns):
    """Arrays with a row for each time `(rows,)` or `(rows, channels)`, or for several series of one length `(series, rows, channels)`. Of
    series, an array may have a row for each: `(series,)`."""

    def __init__(self, called: str, arrays: Mapping[str, Any], series: Ints | None = None) -> None:
        self.called, self.series = called, series
        self._arrays = {name: array if array.dtype.kind in "OUSM" else as_array(name, array) for name, array in arrays.items()}
        self.names = (*self._arrays,)
        if not arrays:
            raise OpError("PG402", f"{called} has no arrays")
        blocks = {name: array.shape[:2] for name, array in self._arrays.items() if array.ndim > 2}
        if blocks and series is None:
            name, shape = next(iter(blocks.items()))
            self.series = np.full(shape[0], shape[1], np.int64)
            self._arrays = {other: self._flat(other, array, name, shape) for other, array in self._arrays.items()}
        lengths = {name: len(array) if array.ndim else -1 for name, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            counted = " and ".join(f"`{name}` has {count(n, 'row')}" for name, n in lengths.items())
            raise OpError("PG418", f"{counted}; all arrays need the same number of rows")
        self.num_rows = next(iter(lengths.values()))
        if self.num_rows < 0:
            raise OpError("PG418", f"`{self.names[0]}` is one number, and needs a row for each time")

    @staticmethod
    def _flat(name: str, array: Any, first: str, shape: tuple[int, ...]) -> Any:
        """Reshapes an array of series to one of their rows; repeats a value for each series."""
        if array.shape[:2] == shape:
            return array.reshape(-1, *array.shape[2:])
        if array.ndim == 1 and len(array) == shape[0]:
            return np.repeat(array, shape[1])
        message = (
            f"`{name}` has the shape {array.shape}, and `{first}` has {count(shape[0], 'series', 'series')} of {count(shape[1], 'row')}"
        )
        raise OpError("PG418", message, help=f"it needs the shape ({shape[0]}, {shape[1]}, …), or ({shape[0]},) for one value a series")

    def place(self, row: int) -> str:
        if self.series is None:
            return f"row {row} of {self.called}"
        ends = np.cumsum(self.series)
        at = int(np.searchsorted(ends, row, side="right"))
        return f"row {row - int(ends[at] - self.series[at])} of series {at} of {self.called}"

    def array(self, column: str | int, field: str) -> Any:
        """Returns an array by name, or the only one; for errors see `cells`."""
        names: Sequence[str] = self.names or ()
        if isinstance(column, int) and column < len(names):
            column = names[column]
        if column in self._arrays:
            return self._arrays[str(column)]
        if len(names) == 1 and field.count(".") == 1:  # the name of a feature that names no column
            return self._arrays[names[0]]
        near = closest(str(column), names)
        help_ = f"is {near!r} meant?" if near else f"its arrays are {quoted(names)}"
        raise OpError("PG421", f"{self.called} has no array {column!r}", field=field, help=help_)

    def cells(self, column: str | int, field: str) -> Sequence[Any]:
        array = self.array(column, field)
        if array.ndim > 1 and array.shape[1:] != (1,):
            message = f"`{column}` has the shape {array.shape}, and needs one value a row"
            raise OpError("PG421", message, field=field, help="pass an array of one axis")
        return array.reshape(-1)

    def texts(self, column: str | int, field: str) -> Sequence[str]:
        return label_texts(self.cells(column, field).tolist())  # type: ignore[attr-defined]  # an array

    def numbers(self, column: str | int, field: str) -> Any:
        array = self.array(column, field)
        if array.dtype.kind in "OUSM":
            return as_floats(self.cells(column, field).tolist(), self.place, field)  # type: ignore[attr-defined]  # an array
        if array.dtype.kind not in "buif":
            raise OpError("PG419", f"the values of `{column}` are {array.dtype}", field=field, help="they must be numbers")
        if array.ndim > 2:
            raise OpError("PG204", f"the rows of `{column}` have the shape {array.shape[1:]}, and need one axis of channels", field=field)
        return array


def as_floats(cells: Sequence[Any], place: Callable[[int], str], field: str) -> Any:
    """Converts cells to float64 `(n,)`, NaN for missing ones; `PG423` for a cell that is no number."""
    kinds = {*map(type, cells)}
    if kinds <= {float, int, type(None)} or (kinds == {str} and not any("_" in cell for cell in cells)):
        with suppress(ValueError, OverflowError):  # for a text that is no number
            return np.array(cells, np.float64)
    values: Any = np.full(len(cells), np.nan)
    wrong = []
    for row, cell in enumerate(cells):
        text = isinstance(cell, (str, bytes))
        if is_missing(cell) or (
            text and (cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell).strip().lower() in _MISSING
        ):
            continue
        try:
            values[row] = float(cell.replace("_", "x") if isinstance(cell, str) else cell)  # underscores between digits are Python's own
        except (TypeError, ValueError):
            wrong.append((row, cell))
    if wrong:
        row, cell = wrong[0]
        more = f"; {count(len(wrong) - 1, 'more row is wrong', 'more rows are wrong')} in this column" if len(wrong) > 1 else ""
        message = f"{place(row)} has {cell!r:.60}, which is not a number{more}"
        raise OpError("PG423", message, field=field, help="correct such cells, or leave them empty: they are then missing values")
    return values


@dataclass(frozen=True, eq=False)
class Times:
    """The time of each row."""

    values: Any  # numbers, or int64 nanoseconds since 1970 `(rows,)`
    are_dates: bool  # whether they are dates or times of the day, not plain numbers

    def said(self, value: Any) -> str:
        """Formats one of them."""
        if not self.are_dates:
            return f"{value:g}" if isinstance(value, float) else str(value)
        return str(np.datetime64(int(value), "ns")).removesuffix(".000000000").replace("T", " ").removesuffix(" 00:00:00")

    def parsed(self, text: str) -> Any:
        """Reads a time of the same form; `ValueError` for another."""
        return as_moments([text])[0] if self.are_dates else float(text)


def read_times(columns: RowColumns, column: str | int, field: str) -> Times:
    """Reads the column that orders rows: numbers, or dates and times in ISO 8601, of which those with an offset are converted to UTC.
    `PG423` for a row without a time, or in another form."""
    cells = columns.times(column, field)
    if isinstance(cells, list) and {*map(type, cells)} == {datetime} and not any(cell.tzinfo for cell in cells):
        cells = np.array(cells, "datetime64[us]")
    values = cells if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf" else _moments_or_numbers(columns, cells, field)
    if isinstance(values, tuple):
        return Times(values[0], True)
    odd = np.flatnonzero(~np.isfinite(values)) if values.dtype.kind == "f" else values[:0]
    if len(odd):
        raise OpError("PG423", f"{columns.place(int(odd[0]))} has no time", field=field, help="remove such rows, or correct them")
    return Times(values, False)


def _moments_or_numbers(columns: RowColumns, cells: Sequence[Any], field: str) -> Any:
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        texts: Sequence[str] = []
        exact = cells.astype("datetime64[ns]")
        found = exact.view(np.int64)
        empty = np.flatnonzero(np.isnat(cells))
        wide = np.flatnonzero((exact.astype(cells.dtype) != cells) & ~np.isnat(cells))  # too far from 1970 to count in nanoseconds
        if len(wide):
            row = int(wide[0])
            message = f"{columns.place(row)} has the time {cells[row]}, and times are in the {_YEARS}"
            raise OpError("PG423", message, field=field, help="correct such rows, or write times as numbers")
    else:
        texts = [str(cell).strip() if not is_missing(cell) else "" for cell in cells]
        empty = np.flatnonzero([text.lower() in _MISSING for text in texts])
        found = None
    if len(empty):
        raise OpError("PG423", f"{columns.place(int(empty[0]))} has no time", field=field, help="remove such rows, or correct them")
    if found is not None:
        return (found,)
    try:
        return np.array([float(text.replace("_", "x")) for text in texts], np.float64)
    except ValueError:
        pass
    try:
        return (as_moments(texts),)
    except ValueError:
        row = next((row for row, text in enumerate(texts) if not _is_moment(text)), -1)
        if row >= 0:
            message = f"{columns.place(row)} has {texts[row]!r:.60}, which is neither a number nor a time in ISO 8601 in the {_YEARS}"
            raise OpError("PG423", message, field=field, help="write times such as `2024-05-31 13:00:00`, or as numbers") from None
        row = next(row for row, text in enumerate(texts) if _has_offset(text) != _has_offset(texts[0]))
        first, other = ("an offset", "none") if _has_offset(texts[0]) else ("no offset", "one")
        message = f"{columns.place(0)} has a time with {first} from UTC, {texts[0]!r:.60}, "
        message += f"and {columns.place(row)} with {other}, {texts[row]!r:.60}"
        raise OpError("PG423", message, field=field, help="write all times with an offset, or none") from None


_LONG_YEAR = re.compile(r"\d{5,7}-")  # a year of more than four digits; a date without dashes has eight


def as_moments(texts: Sequence[str]) -> Any:
    """Converts dates and times in ISO 8601 to nanoseconds since 1970, int64 `(n,)`, those with an offset to UTC. `ValueError` for
    others, for years that have no place in 64 bits, and if only some have an offset."""
    if not all(text[:1].isdigit() for text in texts):  # NumPy also reads `now`
        raise ValueError("not a time")
    long = any(_LONG_YEAR.match(text) for text in texts)
    if texts and (long or not (min(texts) >= "1678" and max(texts) < "2262")):  # NumPy wraps around in silence
        raise ValueError("not in the range of the times")
    offsets = sum(map(_has_offset, texts))
    if offsets not in (0, len(texts)):
        raise ValueError("some have an offset")
    try:
        if not offsets:
            return np.array(texts, "datetime64[ns]").view(np.int64)
    except ValueError:
        pass
    return np.array([_moment(text) for text in texts], "datetime64[ns]").view(np.int64)


def _has_offset(text: str) -> bool:
    """Tells whether a time says how far it is from UTC."""
    return text[-1:] == "Z" or "+" in text or text.count("-") > 2


def _moment(text: str) -> Any:
    from datetime import timezone

    found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    return np.datetime64(found.astimezone(timezone.utc).replace(tzinfo=None) if found.tzinfo is not None else found, "ns")


def _is_moment(text: str) -> bool:
    try:
        as_moments([text])
    except ValueError:
        return False
    return True
