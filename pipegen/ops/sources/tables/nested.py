"""Reads columns of a table whose cells are lists of numbers, all of one shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.memory import available_memory
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_BYTES = 4


def read_cells(cells: Iterable[Any], shape: tuple[int, ...]) -> list[Any]:
    """Reads cells of Python, each as an array of float32, or `None` where it is not of the shape."""
    import numpy as np

    def read(cell: Any) -> Any:
        try:
            value = np.asarray(cell, np.float32)
        except (TypeError, ValueError):
            return None
        return value if value.shape == shape else None

    return [None if isinstance(cell, (str, bytes)) else read(cell) for cell in cells]


def read_arrow(column: Any, shape: tuple[int, ...]) -> Any:
    """Reads a column of Arrow, of lists inside of lists: float32 `(n, *shape)`, or `None` where a cell is not of the shape."""
    import numpy as np
    import pyarrow as pa

    found = []
    for chunk in column.chunks:
        rows = len(chunk)
        values = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        for side in shape:
            if values.null_count or not _is_list(values.type) or not _all_have(values, side):
                return None
            values = values.flatten()
        if values.null_count or not _is_number(values.type):
            return None
        found.append(values.to_numpy(zero_copy_only=False).astype(np.float32).reshape(rows, *shape))
    return np.concatenate(found) if found else np.zeros((0, *shape), np.float32)


def check_room(rows: int, shape: tuple[int, ...], field: str) -> None:
    """Checks that the arrays of so many rows fit in memory, in which they are held.

    Raises:
        OpError: `PG410`.
    """
    need, free = rows * math.prod(shape) * _BYTES, available_memory() // 2
    if need > free:
        arrays = f"{count(rows, 'array')} of {math.prod(shape):,} numbers"
        message = f"{arrays} take {need / 2**30:,.1f} GiB, and half of the free memory is {free / 2**30:,.1f} GiB"
        help_ = "arrays of a table are held in memory; `kind: array` with a file for each, or a source of records, reads them one by one"
        raise OpError("PG410", message, field=field, help=help_)


def checked(values: Any, cells: Sequence[Any] | None, place: Callable[[int], str], shape: tuple[int, ...], field: str) -> Any:
    """The arrays of a column: float32 `(n, *shape)`.

    Args:
        values: The arrays, or `None` where a cell has another shape.
        cells: Those of each row, where some are not of the shape; `None` stands for these.
        place: Says where a row stands.
        shape: The shape of each.
        field: The argument that names the column, for errors.

    Raises:
        OpError: `PG449` where a cell is no array of the shape, `PG423` where it holds what is no finite number.
    """
    import numpy as np

    if values is None:
        wrong = [row for row, cell in enumerate(cells or ()) if cell is None]
        more = f", and those of {count(len(wrong) - 1, 'other row')} are none either" if len(wrong) > 1 else ""
        message = f"the cell in {place(wrong[0])} is no array of the shape {list(shape)}{more}"
        raise OpError("PG449", message, field=field, help="`shape` is that of every cell; leave other rows out by `where`")
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(1))
    if len(bad):
        more = f"; {count(len(bad) - 1, 'more row is wrong', 'more rows are wrong')} in this column" if len(bad) > 1 else ""
        message = f"the array in {place(int(bad[0]))} holds what is no finite number{more}"
        raise OpError("PG423", message, field=field, help="leave such rows out, or fill them in")
    return values


def _is_list(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def _is_number(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def _all_have(values: Any, side: int) -> bool:
    """Returns whether all lists have so many items."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_fixed_size_list(values.type):
        return bool(values.type.list_size == side)
    lengths = pc.min_max(pc.list_value_length(values)).as_py() if len(values) else {"min": side, "max": side}
    return bool(lengths["min"] == lengths["max"] == side)
