"""Features of a table that are held in memory: labels, numbers, lists of items, arrays, and images as numbers."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pipegen.errors import Attempts, OpError, OpErrors
from pipegen.lazy import np
from pipegen.memory import available_memory
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.labels import Values, is_missing
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import NumberType, as_numbers, read_numbers, without_fractions
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import ExampleClass, LossWeight, having
from pipegen.ops.sources.features.items import Rows, read_items, side_by_side
from pipegen.ops.sources.features.predicate import parse_arithmetic
from pipegen.ops.sources.stores.base import byte_strings
from pipegen.ops.sources.tables.features import InTable, TableFeature
from pipegen.ops.sources.tables.table import Columns, Table, TableColumn
from pipegen.types import DTYPE_BYTES

_EXACT = 2**53  # float64 holds every integer below it
_BETWEEN = re.compile(r"[\s,]+")


def read_held(features: Mapping[str, InTable], table: Table, tried: Attempts) -> dict[str, Column]:
    """Reads those features that are not pixels; `tried` collects errors.

    They are `PG420` for an invalid label, `PG423` and `PG666` for an invalid number, `PG431` for items, and those of `Table.column`.
    """
    dense = {name: feature for name, feature in features.items() if feature.own_kind.storage == "dense"}
    labels = having(features, ExampleClass)
    read = {name: tried.of(_labels if name in labels else _numbers, table, name, feature) for name, feature in dense.items()}

    def place_in(table: Table, name: str) -> Place:
        feature = features[name]
        return table.at(feature.columns[0] if feature.columns else feature.column_of(name), "").place

    def reads(table: Table) -> tuple[Callable[[str], list[Any]], Callable[[str], Place]]:
        return partial(_lists, table, features), partial(place_in, table)

    others = {name: feature for name, feature in features.items() if name not in labels}
    rows = None if table.ungrouped is None else Rows(*reads(table.ungrouped), table.members)
    items = tried.of(partial(read_items, rows=rows), others, *reads(table)) or {}
    return {name: column for name, column in (*read.items(), *items.items()) if column is not None}


def read_images(name: str, feature: TableFeature, table: Table) -> Any:
    """Reads images whose pixels are numbers in the table, row after row: in a cell, between blanks or commas or as a list, or in columns.
    Returns uint8 or uint16 `(rows, height, width, channels)`. Raises `OpError`: `PG410` if they do not fit in memory, `PG423` for a number
    that is not one of a pixel, `PG449` for another number of them."""
    import warnings

    field, shape = f"features.{name}.{'columns' if feature.columns else 'column'}", feature.pixels
    at = [(column, f"{field}.{i}") for i, column in enumerate(feature.columns)] if feature.columns else [(feature.column_of(name), field)]
    columns = [table.at(*one) for one in at]
    place, rows = columns[0].place, zip(*(column.read() for column in columns), strict=True)
    dtype, high = ("uint8", 255) if feature.bits != 16 else ("uint16", 65535)
    _check_room(table.num_rows, shape, field, dtype)
    found: Any = np.empty((table.num_rows, math.prod(shape)), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # for text that is no number
        for row, cells in enumerate(rows):
            cell: Any = cells[0] if feature.columns is None else " ".join(cells) if isinstance(cells[0], str) else cells
            try:
                text = cell.strip("[]() ").replace(",", " ") if isinstance(cell, str) else None
                values = np.fromstring(text, sep=" ") if text is not None else np.ravel(np.asarray(cell, np.float64))
            except (ValueError, TypeError, DeprecationWarning):
                raise _no_pixels(f"{place(row)} holds {cell!r:.60}, which is not a list of numbers", field) from None
            if len(values) != math.prod(shape):
                message = f"{place(row)} has {count(len(values), 'number')}, but {'×'.join(map(str, shape))} pixels are {math.prod(shape)}"
                raise OpError("PG449", message, field=field, help="set the `size` and `channels` that the images have")
            wrong = ~((values >= 0) & (values <= high) & (values == np.floor(values)))
            if wrong.any():
                raise _no_pixels(f"{place(row)} holds {values[wrong][0]:g}, but a pixel is an integer from 0 to {high}", field)
            found[row] = values
    return found.reshape(len(found), *shape)


def has_lists(column: TableColumn) -> bool:
    """Tells whether the first cell of a column that is not missing is a list of numbers."""
    if column.holds_lists is not None:
        return column.holds_lists
    cell = next((cell for cell in column.read() if not is_missing(cell)), None)
    listed = isinstance(cell, (list, tuple)) or getattr(cell, "ndim", 0) == 1
    return listed and np.asarray(cell).dtype.kind in "iufb"


def read_listed(name: str, feature: TableFeature, table: Table) -> tuple[Any, Ints | None]:
    """Reads sounds or arrays that are lists of numbers in the cells of a column: the bytes of files of them, objects `(rows,)`, and their
    lengths, if these are known, int64 `(rows,)`. Raises `OpError` `PG449` for a cell that is no such list."""
    field, file = f"features.{name}.column", feature.list_file()
    column = table.at(feature.column_of(name), field)
    found: list[bytes] = []
    lengths: list[int] = []
    for row, cell in enumerate(column.read()):
        try:
            if file is None or is_missing(cell) or isinstance(cell, (str, bytes)):
                raise ValueError("it is no list of numbers")
            found.append(file.make(cell))
            lengths.append(len(cell))
        except (ValueError, TypeError) as error:
            message = f"{column.place(row)} cannot be `{name}`: {error}"
            raise OpError("PG449", message, field=field, help="correct such rows, or leave them out by `where`") from None
    return byte_strings(found), None if file is None else file.steps(np.array(lengths, np.int64))


def _no_pixels(message: str, field: str) -> OpError:
    return OpError("PG423", message, field=field, help="remove such rows, or correct them")


def _labels(table: Table, name: str, feature: InTable) -> Column:
    """Reads labels of rows that have no ignored class."""
    field, column = f"features.{name}", feature.column_of(name)
    if table.ungrouped is not None and feature.separator is not None:
        own = table.ungrouped.labels(column, f"{field}.column")
        texts: Sequence[str] = [feature.separator.join(dict.fromkeys(own[row] for row in rows if own[row])) for rows in table.members]
    else:
        texts = table.labels(column, f"{field}.column")
    cells = feature.chosen.renamed(texts, feature.separator)
    plain, place = feature.model_copy(update={"map": None, "ignore": 0}), table.at(column, "").place
    of_row = place if feature.several else lambda row: f"the label at {place(row)}"
    try:
        return feature.own_kind.read_array(name, plain, Values.of_texts(cells), of_row)
    except OpError as error:
        raise error.at(f"{field}.{error.field or 'column'}") from None


def _lists(table: Table, features: Mapping[str, InTable], name: str) -> list[Any]:
    """Returns the list of each row: values of items, or named points. An example of several rows has those of all of them."""
    if table.ungrouped is not None:
        own = _lists(table.ungrouped, features, name)
        return [[value for row in rows for value in own[row]] for rows in table.members]
    feature, field = features[name], f"features.{name}"
    if feature.columns is None:
        column = table.at(feature.column_of(name), f"{field}.column")
        return [listed(cell, feature.separator, column.place, row) for row, cell in enumerate(column.read())]
    at = [(column, f"{field}.columns.{i}") for i, column in enumerate(feature.columns)]
    columns = [table.at(*one) for one in at]
    if feature.own_kind.guides("points"):
        return points_of([table.column(*one) for one in at], [column.place for column in columns], len(feature.names or ()))
    lists = ([listed(cell, None, column.place, row) for row, cell in enumerate(column.read())] for column in columns)
    return [*map(side_by_side, zip(*lists, strict=True))]


def _numbers(table: Table, name: str, feature: InTable) -> Column:
    """Reads float32 or int64 `(n,)`, `(n, columns)` or `(n, *shape)`."""
    field, column = f"features.{name}", feature.column_of(name)
    if feature.shape is not None:
        x = feature.type()
        return Column(read_arrays(table, column, feature.shape, f"{field}.column", feature.dtype).reshape(-1, *x.shape), x)
    if feature.value is not None:
        return computed(table, name, feature, range(table.num_rows))
    if feature.columns is None:
        return Column(_one_number(table, column, f"{field}.column", feature), feature.type())
    tried = Attempts()
    each = [tried.of(_one_number, table, one, f"{field}.columns.{i}", feature) for i, one in enumerate(feature.columns)]
    if tried.errors:
        raise OpErrors(tried.errors)
    x = feature.type()
    return Column(np.stack(each, axis=-1).reshape(-1, *x.shape), x)


def computed(table: Columns, name: str, feature: InTable, rows: Sequence[int]) -> Column:
    """Computes the number that `value` describes for some rows, from columns of numbers; for errors see `read_held`."""
    value, field = feature.value or "", f"features.{name}.value"
    each: dict[str, Any] = {}
    places: list[Place] = []
    for column in dict.fromkeys(parse_arithmetic(value).columns):
        own, texts = table.at(column, field), table.column(column, field)
        places.append(partial(_place_of, table.place if own is None else own.place, rows))
        each[column] = read_numbers([texts[row] for row in rows], places[-1], field, "float64")
    with np.errstate(all="ignore"):
        numbers = parse_arithmetic(value).compute(each)

    def of_row(i: int) -> str:
        return f"`{value}` at {places[0](i)}"

    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        more = f"; {count(len(wrong) - 1, 'more row is like it', 'more rows are like it')}" if len(wrong) > 1 else ""
        what = "infinite" if np.isinf(numbers[wrong[0]]) else "not a number"
        raise OpError("PG423", f"{of_row(int(wrong[0]))} is {what}{more}", field=field, help="leave such rows out by `where`")
    if feature.dtype == "int64":
        for given, place in (*zip(each.values(), places, strict=True), (numbers, of_row)):
            _refuse_inexact(given, place, field)
    found = read_numbers([*map(repr, numbers.tolist())], of_row, field, feature.dtype, weights=feature.own_kind.has(LossWeight))
    return Column(found, feature.type())


def _place_of(place: Place, rows: Sequence[int], i: int) -> str:
    return place(rows[i])


def _refuse_inexact(numbers: Any, place: Callable[[int], str], field: str) -> None:
    """Raises `PG666` for a number so large that float64, in which values are computed, does not hold every integer."""
    odd = np.flatnonzero(np.isfinite(numbers) & (np.abs(numbers) >= _EXACT))
    if len(odd):
        message = f"{place(int(odd[0]))} has a number of {_EXACT:,} or more, which `value` may round: it is computed in float64"
        raise OpError("PG666", message, field=field, help="read the column itself, without `value`: it then stays exact")


def _one_number(table: Table, column: str | int, field: str, feature: InTable) -> Any:
    cells = table.column(column, field)
    return read_numbers(cells, table.at(column, field).place, field, feature.dtype, weights=feature.own_kind.has(LossWeight))


def read_arrays(table: Table, wanted: str | int, shape: tuple[int, ...], field: str, dtype: NumberType | None = None) -> Any:
    """Reads a column of arrays of one shape as float32 or int64 `(n, *shape)`; for `dtype` see `as_numbers`.

    Raises:
        OpError: As `Table.column`; `PG410` if they do not fit in memory, `PG449` for a cell of another shape, `PG423` for a number that is
            not finite, `PG666` for an integer that float32 cannot represent.
    """
    column = table.at(wanted, field)
    _check_room(table.num_rows, shape, field, dtype)
    values = column.arrays(shape) if column.arrays is not None else None
    if values is None:
        cells = [_array_in(cell, shape, dtype) for cell in column.read()]
        wrong = [row for row, cell in enumerate(cells) if cell is None]
        if wrong:
            more = f", like {count(len(wrong) - 1, 'other row')}" if len(wrong) > 1 else ""
            message = f"the cell in {column.place(wrong[0])} is not an array of shape {list(shape)}{more}"
            raise OpError("PG449", message, field=field, help="all cells need this `shape`; leave other rows out by `where`")
        values = np.array(cells).reshape(len(cells), *shape)

    def not_due(row: int) -> OpError:
        what = "not a 64-bit integer" if dtype == "int64" else "not finite"
        help_ = "remove such rows, or correct them"
        return OpError("PG423", f"the array in {column.place(row)} holds a number that is {what}", field=field, help=help_)

    return as_numbers(values, dtype, not_due, lambda row: f"the array in {column.place(row)}", field.rpartition(".")[0])


def _array_in(cell: Any, shape: tuple[int, ...], dtype: NumberType | None) -> Any:
    """Converts a cell to an array of numbers, or to `None` for another shape."""
    if isinstance(cell, (str, bytes)):
        return None
    try:
        value = np.asarray(cell)
        value = value if value.dtype.kind in "biuf" else np.asarray(cell, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return without_fractions(value, dtype) if value.shape == shape else None


def listed(cell: Any, separator: str | None, place: Callable[[int], str], row: int) -> Any:
    """Returns the list in a cell: one of the format, or text.

    Args:
        cell: A list or an array; one number; or text: JSON, a list as Python prints it, numbers between blanks or commas, or else one
            value. Missing is empty.
        separator: Separates the values in a text that is no list.
        place: Describes the place of a row.
        row: The row.

    Raises:
        OpError: `PG449` for text that begins like a list, and is none.
    """
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "surrogateescape")
    if isinstance(cell, str):
        text = cell.strip()
        if text[:1] in ("[", "("):
            return _written(text, place(row))
        if separator is not None:
            return [part for part in map(str.strip, text.split(separator)) if part]
        try:
            return [float(part) for part in _BETWEEN.split(text) if part]
        except ValueError:
            return [text]
    if isinstance(cell, (list, tuple)):
        return [None if is_missing(value) else value for value in cell]
    if getattr(cell, "ndim", 0):
        return cell
    return [] if is_missing(cell) else [cell]


def _written(text: str, place: str) -> Any:
    """Reads a list from text."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    help_ = "write it as JSON, such as `[[0, 0, 8, 8]]`"
    raise OpError("PG449", f"the cell in {place} begins with {text[:40]!r}, which is not a list", field="column", help=help_)


def points_of(columns: Sequence[Sequence[str]], places: Sequence[Callable[[int], str]], names: int) -> list[Any]:
    """Returns the named points of each row, `(names, 3)`: x, y and visibility. A point without x and y is absent.

    Args:
        columns: The cells of x and y of each name, or of x, y and visibility.
        places: Describes the place of a row, for each column.
        names: The number of names.

    Raises:
        OpError: `PG423` for a cell that is no number, or a point with only one of x and y.
    """
    width, rows = len(columns) // names, len(columns[0])
    empty = np.array([[not cell for cell in column] for column in columns]).T.reshape(rows, names, width)
    numbers = (read_numbers([cell or "0" for cell in cells], places[i], f"columns.{i}", "float32") for i, cells in enumerate(columns))
    values = np.stack([*numbers], -1).reshape(rows, names, width)
    half = empty[..., 0] != empty[..., 1]
    if half.any():
        row, point = (int(i[0]) for i in np.nonzero(half))
        at = width * point + int(empty[row, point, 1])
        message = f"{places[at](row)} has an empty cell for one number of a point, but not for the other"
        raise OpError("PG423", message, field=f"columns.{at}", help="leave both empty for a point that is absent")
    seen = ~empty[..., 0] * (values[..., 2] if width > 2 else 2.0)
    return [*np.concatenate([values[..., :2], seen[..., None]], -1)]


def _check_room(rows: int, shape: tuple[int, ...], field: str, dtype: str | None = None) -> None:
    """Raises `PG410` if the arrays of `rows` rows do not fit in memory."""
    need, free = rows * math.prod(shape) * DTYPE_BYTES[dtype or "float32"], available_memory() // 2
    if need > free:
        arrays = f"{count(rows, 'array')} of {math.prod(shape):,} numbers"
        message = f"{arrays} take {need / 2**30:,.1f} GiB; half of the free memory is {free / 2**30:,.1f} GiB"
        help_ = "arrays of a table stay in memory; to read them one by one, use `kind: array` with files, or a source of records"
        raise OpError("PG410", message, field=field, help=help_)
