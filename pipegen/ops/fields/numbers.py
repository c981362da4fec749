"""Reads numbers of all records: float32 that rounds no integer, or int64; from texts, arrays, or lists of any number of items."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.columns import Place, Ragged
from pipegen.ops.fields.labels import LIST
from pipegen.ops.fields.notes import count
from pipegen.types import times

NumberType = Literal["float32", "int64"]  # the dtype of numbers
EXACT = 2**24  # largest integer up to which float32 is exact
LARGEST = 3.4028234663852886e38  # the largest float32
_INT64 = 2**63
_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?", re.ASCII)


def whole_number(text: str) -> int:
    """Parses an integer without going through a float; `ValueError` for anything else, or beyond int64."""
    found = _WHOLE.fullmatch(text.strip())
    number = int(found[1]) if found is not None and len(text) < 100 else _INT64
    if not -_INT64 <= number < _INT64:
        raise ValueError(text)
    return number


def without_fractions(values: Any, dtype: NumberType | None) -> Any:
    """Converts integral floats to int64 if that is the target, to join them with integers that no float can represent."""
    if dtype != "int64" or values.dtype.kind != "f":
        return values
    whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < float(_INT64))
    return values.astype(np.int64) if whole.all() else values


def check_cells(cells: Sequence[str], place: Callable[[int], str], field: str) -> None:
    """Raises `PG666` if float32 would round a column of integers; columns with other numbers may be rounded."""
    found = [_WHOLE.fullmatch(cell) for cell in cells]
    if None in found:
        return
    for row, match in enumerate(found):
        number = int(match[1]) if match is not None else 0
        if abs(number) > EXACT and int(np.float32(number)) != number:
            raise rounded(place(row), number, field)


def as_numbers(values: Any, dtype: NumberType | None, row: Callable[[int], OpError], place: Callable[[int], str], field: str | None) -> Any:
    """Converts an array to float32 or int64.

    Args:
        values: Numbers `(n, ...)`.
        dtype: The target; `None` is float32 without rounded integers.
        row: Makes the error of a row with a number that is not finite, or for int64 not an integer.
        place: Describes the place of a row.
        field: The argument of errors.

    Raises:
        OpError: From `row`; `PG666`.
    """

    def first(wrong: Any) -> int | None:
        rows = wrong.any(tuple(range(1, wrong.ndim)))
        return int(np.argmax(rows)) if rows.any() else None

    if dtype == "int64":
        if values.dtype.kind == "f":
            odd = first(~(np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < float(_INT64))))
        else:
            odd = first(values >= np.uint64(_INT64)) if values.dtype == np.uint64 else None
        if odd is not None:
            raise row(odd)
        return values.astype(np.int64)
    with np.errstate(all="ignore"):  # overflow becomes infinite, which is found below
        found = values.astype(np.float32)
    odd = first(~np.isfinite(found))
    if odd is not None:
        raise row(odd)
    whole = first_rounded(values, len(values)) if dtype is None and values.size else None
    if whole is not None:
        raise rounded(place(whole[0]), whole[1], field)
    return found


def changed_whole(values: Any, found: Any) -> Any:
    """Tells which integers float32 rounded, bool `(n, ...)`; `None` if that is impossible, or if some values are fractions."""
    if values.dtype.kind in "iu" and values.dtype.itemsize >= 4:
        if int(values.max()) <= EXACT and int(values.min()) >= -EXACT:
            return None
        with np.errstate(all="ignore"):
            return found.astype(values.dtype) != values
    if values.dtype.kind == "f" and values.dtype.itemsize > 4 and bool((np.floor(values) == values).all()):
        return found.astype(values.dtype) != values
    return None


def first_rounded(values: Any, at_once: int) -> tuple[int, int] | None:
    """Returns the row of the first integer that float32 rounds, and that integer, of values `(rows, ...)` with NaN for missing ones; `None`
    without one, or if some values are fractions. Looks at so many rows together."""
    found = None
    if values.dtype.kind not in "iuf" or values.dtype.itemsize < 4 + (values.dtype.kind == "f"):
        return None
    for begin in range(0, len(values), at_once):
        some = values[begin : begin + at_once]
        if values.dtype.kind == "f":
            some = np.where(np.abs(some) <= LARGEST, some, 0)  # neither NaN nor infinite as float32
            if not (np.floor(some) == some).all():
                return None
        with np.errstate(all="ignore"):
            lost = changed_whole(some, some.astype(np.float32)) if found is None else None
        if lost is not None and lost.any():
            at = np.unravel_index(int(np.argmax(lost)), lost.shape)
            found = begin + int(at[0]), int(some[at])
            if values.dtype.kind != "f":
                break
    return found


def rounded(where: str, number: int, field: str | None, *, exact: bool = True) -> OpError:
    """Returns the `PG666` error of an integer that would be rounded, where int64 may be `exact`."""
    near = int(np.float32(number))
    message = f"{where} holds {number}, which float32 would round to {near}"
    keeps = (write("dtype: int64", "arguments", "{} keeps integers exact"),) if exact else ()
    return OpError("PG666", message, field=field, help=(*keeps, write("dtype: float32", "arguments", "{} rounds them")))


def read_numbers(
    cells: Sequence[str],
    place: Callable[[int], str],
    field: str,
    dtype: NumberType | Literal["float64"] | None,
    *,
    weights: bool = False,
) -> Any:
    """Reads a column as float32, int64 or float64 `(n,)`.

    Args:
        cells: The text of each row.
        place: Describes the place of a row.
        field: The argument that names the column, for errors.
        dtype: The target; `None` is float32 without rounded integers.
        weights: Whether negative numbers are errors.

    Raises:
        OpError: `PG423` for a cell that is not a finite number, or for int64 not an integer; `PG666` for an integer that float32 cannot
            represent.
    """
    values: Any = np.empty(len(cells), dtype or np.float32)
    read = whole_number if dtype == "int64" else _number
    wrong: list[tuple[str, str]] = []
    for row, cell in enumerate(cells):
        try:
            values[row] = read(cell)
        except ValueError:
            wrong.append((_no_number(place(row), cell, whole=dtype == "int64"), "remove such rows, or correct them"))
            continue
        if weights and values[row] < 0:
            help_ = "weights must be 0 or more; an example of weight 2 counts twice in the loss"
            wrong.append((f"{place(row)} has the weight {values[row]:g}", help_))
    if wrong:
        more = f"; {count(len(wrong) - 1, 'more row is wrong', 'more rows are wrong')} in this column" if len(wrong) > 1 else ""
        raise OpError("PG423", wrong[0][0] + more, field=field, help=wrong[0][1])
    if dtype is None and not weights:
        check_cells(cells, place, ".".join(field.split(".")[:2]))
    return values


def _number(cell: str) -> float:
    """Parses a finite number; `ValueError` for anything else."""
    value = float(cell.replace("_", "x"))  # underscores between digits are Python's own
    if not abs(value) <= LARGEST:
        raise ValueError(cell)
    return value


def _no_number(where: str, cell: str, *, whole: bool) -> str:
    if cell.startswith(LIST):
        return f"{where} holds a list; it needs one number"
    what = "a 64-bit integer" if whole else "a number"
    return f"{where} has {cell!r}, which is not {what}" if cell else f"{where} has an empty cell; it needs a number"


def as_array(name: str, given: Any) -> Any:
    """Converts data to a NumPy array; `PG418` for objects."""
    try:
        array = given if isinstance(given, np.memmap) else np.asarray(given)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype == object:
        message = f"`{name}` is not an array of numbers: its items are objects, or differ in shape"
        raise OpError(
            "PG418",
            message,
            help="images or sounds of different sizes cannot be rows of one array; keep them as files, or give them one size first",
        )
    return array


def check_channels(name: str, shape: Sequence[int], help_: str, field: str | None = None) -> None:
    """Raises `PG204` if the channels of images `(n, height, width, channels)` seem to come first."""
    if shape[-1] > 4 and shape[1] in (1, 3, 4):
        message = f"the channels of `{name}` seem to come first: its shape is {tuple(shape)}"
        raise OpError("PG204", message, field=field, help=help_)


def read_ragged(name: str, given: Any, shape: tuple[int, ...] | None, where: Place, dtype: NumberType | None = "float32") -> Ragged:
    """Concatenates the items of all records.

    Args:
        name: The feature, for messages.
        given: A `Ragged` column, a list or an object array of one array `(items, ...)` per record, or an array `(records, items, ...)`.
        shape: Shape of an item; `None` to take it from the data. Items without an axis may be texts; others are numbers.
        where: Names the place of a record, for messages.
        dtype: Target dtype of numbers; see `as_numbers`.

    Raises:
        OpError: `PG402` without records, `PG204` for a wrong shape, `PG419` for values that are not numbers, `PG666` for an integer that
            float32 cannot represent.
    """
    if isinstance(given, Ragged):
        values, lengths = np.asarray(given.values), np.asarray(given.lengths, np.int64)
    else:
        try:
            rows = [without_fractions(_row(where(i), row, shape), dtype) for i, row in enumerate(given)]
        except TypeError:
            raise OpError(
                "PG418", f"`{name}` must be a list of arrays, not `{type(given).__name__}`", help="pass one array per image"
            ) from None
        lengths = np.array([len(row) for row in rows], np.int64)
        full = [row for row in rows if len(row)]
        inner = shape if shape is not None else (full[0].shape[1:] if full else ())
        odd = next((i for i, row in enumerate(rows) if len(row) and row.shape[1:] != inner), None)
        if odd is not None:
            message = f"{where(odd)} has the shape {rows[odd].shape}, but each item needs the shape {tuple(inner)}"
            raise OpError("PG204", message, help=_help(shape))
        values = np.concatenate(full) if full else np.zeros((0, *inner), np.float32)
    if not len(lengths):
        raise OpError("PG402", f"the array `{name}` has no rows")
    if shape == () and values.dtype.kind in "USiub":
        return Ragged(values, lengths)
    if values.dtype.kind not in "biuf":
        raise OpError("PG419", f"the values of `{name}` are {values.dtype}", help="they must be numbers")

    items = Ragged(values, lengths)

    def whose(item: int) -> str:
        return where(items.place(item)[0])

    return Ragged(as_numbers(values, dtype, partial(unfit, whose, dtype, "items"), whose, None), lengths)


def unfit(where: Place, dtype: NumberType | None, such: str, place: int) -> OpError:
    """Returns the error of a row, or an item, with numbers that do not fit the dtype."""
    what = "that are not 64-bit integers" if dtype == "int64" else "that are not finite numbers"
    return OpError("PG419", f"{where(place)} holds values {what}", help=f"remove such {such}")


def _row(where: str, given: Any, shape: tuple[int, ...] | None) -> Any:
    try:
        row = np.asarray(given)
    except ValueError:
        row = np.empty((), object)
    if row.dtype == object and all(isinstance(v, str) for v in row.reshape(-1).tolist()) and row.ndim == 1:
        row = row.astype(str)
    if row.dtype == object or row.ndim == 0:
        raise OpError("PG204", f"{where} is not an array of items", help=_help(shape))
    return row


def _help(shape: tuple[int, ...] | None) -> str:
    inner = "".join(f", {side}" for side in shape or ())
    return f"pass an array `(items{inner}{',' if not inner else ''})` per image; `numpy.zeros((0{inner or ','}))` has no items"


def npy_of_list(values: Any, shape: tuple[int | None, ...]) -> bytes:
    """Returns the bytes of a `.npy` file of nested lists of numbers, or of an array, of a shape with `None` for a side that varies;
    `ValueError` for others."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError("its lists differ in length") from None
    if not array.size and array.ndim == 1 and None in shape:
        array = np.zeros([side or 0 for side in shape], np.float32)
    if array.dtype.kind not in "biuf":
        raise ValueError("it holds other values than numbers")
    if array.ndim != len(shape) or any(side not in (None, own) for side, own in zip(shape, array.shape, strict=True)):
        raise ValueError(f"it is {times(array.shape)}, and should be {times(shape)}")
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()
