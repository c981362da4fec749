"""Numbers of tensors: int64, or float32 without rounding integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pipegen.diagnostics.diagnostic import Advice, write
from pipegen.errors import OpError
from pipegen.lazy import np

NumberType = Literal["float32", "int64"]
EXACT = 2**24  # largest integer up to which float32 is exact
_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?", re.ASCII)
_INT64 = 2**63


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
    if dtype is None and values.size:
        lost = changed_whole(values, found)
        odd = first(lost) if lost is not None else None
        if odd is not None:
            at = np.unravel_index(int(np.argmax(lost[odd])), lost[odd].shape) if lost.ndim > 1 else ()
            raise rounded(place(odd), int(values[odd][at]), field)
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


def rounded(where: str, number: int, field: str | None) -> OpError:
    """Returns the `PG666` error of an integer that would be rounded."""
    near = int(np.float32(number))
    message = f"{where} holds {number}, which float32 would round to {near}"
    return OpError("PG666", message, field=field, help=keep_whole())


def keep_whole() -> tuple[Advice, Advice]:
    """Returns advice for an integer that float32 cannot represent."""
    return (
        write("dtype: int64", "arguments", "{} keeps integers exact"),
        write("dtype: float32", "arguments", "{} rounds them"),
    )
