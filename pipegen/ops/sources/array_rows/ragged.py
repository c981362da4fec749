"""Ragged arrays: one array of any length per record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.sources.features.numbers import as_numbers, without_fractions

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place
    from pipegen.ops.sources.features.numbers import NumberType


def row_of(name: str) -> Place:
    """Returns the function that names the rows of an array."""
    return lambda row: f"row {row} of `{name}`"


def read_ragged(
    name: str, given: Any, shape: tuple[int, ...] | None, place: Place | None = None, dtype: NumberType | None = "float32"
) -> Ragged:
    """Concatenates the items of all records.

    Args:
        name: The feature, for messages.
        given: A `Ragged` column, a list or an object array of one array `(items, ...)` per record, or an array `(records, items, ...)`.
        shape: Shape of an item; `None` to take it from the data. Items without an axis may be texts; others are numbers.
        place: Names the place of a record, for messages; by default the row.
        dtype: Target dtype of numbers; see `as_numbers`.

    Raises:
        OpError: `PG402` without records, `PG204` for a wrong shape, `PG419` for values that are not numbers, `PG666` for an integer that
            float32 cannot represent.
    """
    import numpy as np

    where = place or row_of(name)
    if isinstance(given, Ragged):
        rows, lengths = None, np.asarray(given.lengths, np.int64)
        values = np.asarray(given.values)
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

    ends = np.cumsum(lengths)

    def whose(item: int) -> str:
        return where(int(np.searchsorted(ends, item, side="right")))

    def wrong(item: int) -> OpError:
        what = "that are not 64-bit integers" if dtype == "int64" else "that are not finite numbers"
        return OpError("PG419", f"{whose(item)} holds values {what}", help="remove such items")

    return Ragged(as_numbers(values, dtype, wrong, whose, None), lengths)


def _row(where: str, given: Any, shape: tuple[int, ...] | None) -> Any:
    import numpy as np

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
