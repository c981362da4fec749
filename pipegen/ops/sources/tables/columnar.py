"""Tables that are held by columns: a DataFrame, a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.sources.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipegen.ops.sources.listing.blocks import BlockReader

_INNER = "bytes"
"""The field of a struct that holds the bytes of a file, as the Hugging Face Hub has it."""


def from_memory(data: Any, base: str) -> Table:
    """A DataFrame of pandas or Polars, a table of Arrow, or a map from names to columns.

    Args:
        data: What `build(data=)` was given.
        base: The folder of the spec, which paths are relative to.

    Raises:
        OpError: `PG418` for anything else, and for columns of several lengths.
    """
    names: list[Any]
    of: Callable[[int], Iterable[Any]]
    if isinstance(data, Mapping):
        names = list(data)
        bare = next((name for name in names if not hasattr(data[name], "__len__") or isinstance(data[name], (str, bytes))), None)
        if bare is not None:
            kind = type(data[bare]).__name__
            raise OpError("PG418", f"the column {bare!r} of `data` is of type {kind}", help="a column is a list, or an array")
        number = {len(column) for column in data.values()}

        def of(i: int) -> Iterable[Any]:
            return iter(data[names[i]])

    elif hasattr(data, "column_names") and hasattr(data, "column"):
        names, of, number = list(data.column_names), lambda i: data.column(i).to_pylist(), {len(data)}
    elif hasattr(data, "iloc"):
        names, of, number = list(data.columns), lambda i: data.iloc[:, i].tolist(), {len(data)}
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        names, of, number = list(data.columns), lambda i: data[names[i]].to_list(), {len(data)}
    else:
        help_ = "pass a DataFrame, or a map from the names of columns to lists"
        raise OpError("PG418", f"`data` is no table, and of type {type(data).__name__}", help=help_)
    if len(number) > 1:
        raise OpError("PG418", f"the columns of `data` differ in length: {', '.join(map(str, sorted(number)))} rows")
    called = "`data`" if isinstance(data, Mapping) else f"the {type(data).__name__}"
    rows = next(iter(number), 0)
    return Table(called, "", base, tuple(map(str, names)), len(names), rows, of)


def read_parquet(file: str) -> Table:
    """A Parquet file; each column is read when it is asked for.

    Args:
        file: The absolute path.

    Raises:
        OpError: `PG421` where it cannot be read.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        help_ = "pip install 'pipegen[parquet]'; or save the table as CSV"
        message = f"Parquet files are read by PyArrow, which cannot be imported here: {error}"
        raise OpError("PG421", message, field="path", help=help_) from None
    try:
        table = pq.ParquetFile(file)
    except (OSError, ValueError) as error:  # what PyArrow raises of its own is a ValueError
        raise OpError("PG421", f"{file!r} cannot be read as Parquet: {error}", field="path") from None
    names = tuple(table.schema_arrow.names)

    def values(i: int) -> Iterable[Any]:
        try:
            # By number, since two columns can have one name; reading by name alone would give the first.
            at = names[: i + 1].count(names[i]) - 1
            column: list[Any] = table.read(columns=[names[i]]).column(at).to_pylist()
        except (OSError, ValueError) as error:
            raise OpError("PG421", f"the column {names[i]!r} of {file!r} cannot be read: {error}", field="path") from None
        return column

    rows = table.metadata.num_rows
    return ParquetFile(repr(file), file, os.path.dirname(file), names, len(names), rows, values, table.schema_arrow)


@dataclass(frozen=True)
class ParquetFile(Table):
    """A Parquet file as a table.

    Attributes:
        schema: The types of its columns, as Arrow has them.
    """

    schema: Any

    def holds_bytes(self, wanted: str | int, field: str) -> bool:
        """Returns whether a column is of a binary type, or a struct with a field `bytes`, as the Hugging Face Hub stores images."""
        return _bytes_in(self.schema.field(self.number(wanted, field)).type) is not None

    def reader(self, columns: Mapping[str, str | int]) -> BlockReader:
        """Returns what reads such columns, a row group at a time."""
        from pipegen.ops.sources.tables.row_groups import RowGroups

        held = {}
        for feature, wanted in columns.items():
            field = self.schema.field(self.number(wanted, ""))
            held[feature] = field.name, (_bytes_in(field.type) or None)
        return RowGroups([self.file], held)


def _bytes_in(type_: Any) -> str | None:
    """Returns where the bytes of a column stand: empty for the column itself, the name of a field in it, or `None` where it has none."""
    import pyarrow as pa

    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(check(type_) for check in binary):
        return ""
    inner = type_.field(_INNER).type if pa.types.is_struct(type_) and type_.get_field_index(_INNER) >= 0 else None
    return _INNER if inner is not None and any(check(inner) for check in binary) else None
