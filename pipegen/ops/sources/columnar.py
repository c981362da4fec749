"""Tables that are held by columns: a DataFrame, a Parquet file. Their cells are read as the text that a table of text would have."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.sources.columns import LIST
from pipegen.ops.sources.table import Table, column_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class ColumnTable(Table):
    """A table of which only those columns are read that are asked for.

    Attributes:
        columns: From the number of a column to its values.
        called: What the table is called in messages.
    """

    columns: Callable[[int], Iterable[Any]]
    called: str

    def place(self, row: int) -> str:
        """The row, counted from 0, and the table's name."""
        return f"row {row} of {self.called}"

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """See `Table.column`."""
        if not self.num_rows:
            raise OpError("PG402", f"{self.called} has no rows", field="path" if self.file else None)
        number = column_number(wanted, self.names, len(self.names or ()), self.called, field)
        return tuple(map(text_of, self.columns(number)))


def text_of(value: Any) -> str:
    """What a table of text would say: nothing for a missing value, no fraction for a whole number, `LIST` before each item of a list."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    if isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0):
        items = sorted(value) if isinstance(value, (set, frozenset)) else list(value)
        return "".join(LIST + text_of(item) for item in items)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def from_memory(data: Any, base: str) -> ColumnTable:
    """A DataFrame of pandas or Polars, a table of Arrow, or a map from names to columns.

    Args:
        data: What `build(data=)` was given.
        base: The folder of the spec, which paths are relative to.

    Raises:
        OpError: `PG418` for anything else, and for columns of several lengths.
    """
    names: list[Any]
    of: Callable[[Any], Iterable[Any]]
    if isinstance(data, Mapping):
        names, of = list(data), lambda name: data[name]
        number = {len(column) for column in data.values() if hasattr(column, "__len__")}
    elif hasattr(data, "column_names") and hasattr(data, "column"):
        names, of, number = list(data.column_names), lambda name: data.column(name).to_pylist(), {len(data)}
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        names, of, number = list(data.columns), lambda name: data[name].to_list(), {len(data)}
    else:
        help_ = "pass a DataFrame, or a map from the names of columns to lists"
        raise OpError("PG418", f"`data` is no table, but a {type(data).__name__}", help=help_)
    if len(number) > 1:
        raise OpError("PG418", f"the columns of `data` differ in length: {', '.join(map(str, sorted(number)))} rows")
    called = "`data`" if isinstance(data, Mapping) else f"the {type(data).__name__}"
    rows = next(iter(number), 0)
    return ColumnTable("", tuple(map(str, names)), (), (), folder=base, num_rows=rows, columns=lambda i: of(names[i]), called=called)


def read_parquet(file: str) -> ColumnTable:
    """A Parquet file; each column is read when it is asked for.

    Args:
        file: The absolute path.

    Raises:
        OpError: `PG421` where it cannot be read.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError:
        help_ = "pip install 'pipegen[parquet]'; or save the table as CSV"
        raise OpError("PG421", "Parquet files are read by PyArrow, which is not installed here", field="path", help=help_) from None
    try:
        table = pq.ParquetFile(file)
    except (OSError, ValueError) as error:  # what PyArrow raises of its own is a ValueError
        raise OpError("PG421", f"{file!r} cannot be read as Parquet: {error}", field="path") from None
    names = tuple(table.schema_arrow.names)

    def values(i: int) -> Iterable[Any]:
        try:
            column: list[Any] = table.read(columns=[names[i]]).column(0).to_pylist()
        except (OSError, ValueError) as error:
            raise OpError("PG421", f"the column {names[i]!r} of {file!r} cannot be read: {error}", field="path") from None
        return column

    rows = table.metadata.num_rows
    return ColumnTable(file, names, (), (), folder=os.path.dirname(file), num_rows=rows, columns=values, called=repr(file))
