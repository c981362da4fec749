"""Rows of arrays, from `build(data=)` and from files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.sources.listing.npz import arrays_of, read_array, read_member
from pipegen.ops.sources.listing.paths import find_file
from pipegen.ops.sources.stores.base import translated
from pipegen.ops.sources.timelines.columns import ArrayColumns, RowColumns, TableColumns
from pipegen.ops.sources.timelines.ts_files import read_ts


def columns_in_memory(data: object, base: str, wanted: Sequence[str | int]) -> RowColumns:
    """Wraps what `build(data=)` was given: a DataFrame or an Arrow table, or arrays by name; `PG418` for anything else, and without any."""
    if data is None:
        message = "`series` needs the rows from `pipegen.build(data=)`, and none were passed"
        help_ = "pass a DataFrame or arrays by name: `pipegen.build(spec, data=df)`; or name a file, such as `csv: {path: FILE}`"
        raise OpError("PG418", message, help=help_)
    if not isinstance(data, Mapping):
        from pipegen.ops.sources.table_sources import from_memory

        return TableColumns(from_memory(data, base))
    unread = next((name for name in data if name not in wanted), None)
    if unread is not None and all(name in data for name in wanted):  # else its name is wrong
        message = f"`data` has the array {str(unread)!r}, which no feature reads"
        raise OpError("PG418", message, field="features", help="add a feature of this name, or remove the array")
    return ArrayColumns("`data`", {str(name): as_values(values) for name, values in data.items()})


def as_values(values: Any) -> Any:
    """Converts a list, a column of a table or an array to an array; what a mask hides is missing."""
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return values.data
        numbers: Any = values.astype(np.float64) if values.dtype.kind in "biu" else values
        return np.ma.filled(numbers, np.nan) if numbers.dtype.kind == "f" else np.ma.filled(numbers.astype(object), None)
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def read_arrays_of(form: str, base: str, path: str, wanted: Sequence[str | int]) -> RowColumns:
    """Reads arrays of a file of one of the forms `npz`, `npy`, `hdf5` and `ts`, mapped into memory where possible. `PG401` if it does not
    exist, `PG406` and `PG430` if it cannot be read."""
    file = find_file(base, path, what="file", field=f"{form}.path", help="name a file, relative to the spec's")
    called = repr(file)
    try:
        if form == "npy":
            return ArrayColumns(called, {os.path.splitext(os.path.basename(file))[0]: read_array(file, "path")})
        if form == "npz":
            members = arrays_of(file)
            chosen = [name for name in members if name in wanted] or [*members]
            return ArrayColumns(called, {name: read_member(file, members[name]) for name in chosen})
        if form == "ts":
            return read_ts(file)
        from pipegen.ops.sources.hdf5 import read_sets

        with translated("HDF5", "series", f"{form}.path", "PG430"):
            return ArrayColumns(called, read_sets(file, wanted))
    except OpError as error:
        raise error.at(f"{form}.path" if error.field in (None, "path") else error.field) from None
