"""Reads Parquet files as one table: their columns when they are asked for, and those inside of structs by names such as `image.bytes`."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.lazy import how_to_install
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.listing.wording import count
from pipegen.ops.sources.tables.nested import check_room, checked, read_arrow
from pipegen.ops.sources.tables.parquet_footer import leaves_of
from pipegen.ops.sources.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.sources.features.numbers import NumberType
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.blocks import BlockReader

_MAGIC = b"PAR1"
_AT_ONCE = 1 << 20
_INNER = "bytes"
"""The field of a struct that holds the bytes of a file, as the Hugging Face Hub has it."""


def read_parquet(files: Sequence[str], root: str | None = None, beside: Sequence[Note] = ()) -> ParquetFiles:
    """Opens Parquet files as one table; each column is read when it is asked for.

    Args:
        files: The absolute paths, in order.
        root: The folder that all of them lie in, where rows are known by their file and their number in it; `None` for one file whose
            rows are known by their numbers alone.
        beside: What was odd about finding them, such as files that are not read.

    Raises:
        OpError: `PG421` where one cannot be read.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        help_ = f"{how_to_install('pyarrow', 'parquet', error)}; or save the table as CSV"
        message = f"Parquet files are read by PyArrow, which cannot be imported here: {error}"
        raise OpError("PG421", message, field="path", help=help_) from None
    schemas, starts = [], [0]
    for file in files:
        try:
            with pq.ParquetFile(file) as opened:
                schemas.append(opened.schema_arrow)
                starts.append(starts[-1] + opened.metadata.num_rows)
                _check_whole(file, opened.metadata)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OpError("PG421", f"{file!r} cannot be read as Parquet: {error}", field="path") from None
    top = tuple(schemas[0].names)
    names = (*top, *(name for name in _nested(schemas[0]) if name not in top))
    called = repr(files[0]) if len(files) == 1 else f"{files[0]!r} and {count(len(files) - 1, 'more file')}"
    about = called, files[0] if root is None else root, root or os.path.dirname(files[0]), names, len(names), starts[-1]

    def values(i: int) -> Iterable[Any]:
        # By number, since two columns can have one name; reading by name alone would give the first.
        at = names[: i + 1].count(names[i]) - 1 if i < len(top) else 0
        inner = _split(schemas[0], names[i])[1] if i >= len(top) else ()
        return chain.from_iterable(_cells(file, schema, names[i], at, inner) for file, schema in zip(files, schemas, strict=True))

    return ParquetFiles(*about, values, tuple(files), tuple(schemas), tuple(starts), root is not None, tuple(beside))


def _check_whole(file: str, meta: Any) -> None:
    """Compares what the footer says of rows with what it says of row groups, and its place with the end of their columns.

    Raises:
        ValueError: Where it contradicts itself, or a second file was appended: the footer is the second one's, and its places are taken
            for those of the first.
    """
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    if sum(group.num_rows for group in groups) != meta.num_rows:
        message = f"its footer says {meta.num_rows:,} rows, and {sum(group.num_rows for group in groups):,} by row group"
        raise ValueError(message)
    end = max((leaf.end for leaves in leaves_of(file)[-1:] for leaf in leaves), default=len(_MAGIC))
    with open(file, "rb") as stream:
        head, size = stream.read(len(_MAGIC)), os.fstat(stream.fileno()).st_size
        footer = size - meta.serialized_size - len(_MAGIC) - 4
        if head != _MAGIC or end > footer:
            raise ValueError(f"it does not begin with {_MAGIC.decode()!r}" if head != _MAGIC else "its columns reach into its footer")
        stream.seek(end)
        while end < footer:  # indexes of pages, which are small
            part = stream.read(min(_AT_ONCE, footer - end + len(_MAGIC)))
            if not part or 2 * _MAGIC in part:
                raise ValueError("a second file begins inside of it: `cat` does not join Parquet files")
            end += len(part) - len(_MAGIC)
            stream.seek(end)


def _cells(file: str, schema: Any, name: str, at: int, inner: tuple[str, ...]) -> list[Any]:
    """The values of a column of one file; of one inside of a struct, what stands there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _type_of(schema, name) is None:
        raise OpError("PG421", f"{file!r} has no column {name!r}, which the first file has", field="path")
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            column: list[Any] = opened.read(columns=[name]).column(at).to_pylist()
            if len(column) != opened.metadata.num_rows:
                raise ValueError(f"it has {len(column):,} values, and {opened.metadata.num_rows:,} rows are due")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OpError("PG421", f"the column {name!r} of {file!r} cannot be read: {error}", field="path") from None
    for field in inner:
        column = [None if value is None else value.get(field) for value in column]
    return column


@dataclass(frozen=True)
class ParquetFiles(Table):
    """Parquet files as one table.

    Attributes:
        files: Their absolute paths.
        schemas: The types of the columns of each, as Arrow has them.
        starts: The number of the first row of each, with the end.
        apart: Whether a row is known by its file, and its number in that.
        beside: What was odd about finding them.
    """

    files: tuple[str, ...]
    schemas: tuple[Any, ...]
    starts: tuple[int, ...]
    apart: bool
    beside: tuple[Note, ...] = ()

    def notes(self) -> tuple[Note, ...]:
        """Returns what was odd about finding the files."""
        return self.beside

    def place(self, row: int) -> str:
        """Says in which file a row stands."""
        file = bisect_right(self.starts, row) - 1
        return f"row {row - self.starts[file]} of {self.files[file]!r}" if self.apart else super().place(row)

    def row_names(self, rows: Sequence[int]) -> Strings:
        """Names each row by its file and its number there, `data/a.parquet#12`, so that other files may come beside it."""
        return Strings.hold(self._named(rows)) if self.apart else super().row_names(rows)

    def row_places(self, rows: Sequence[int]) -> Strings:
        """Returns the same with absolute paths."""
        return self.row_names(rows).below(f"{self.folder}/") if self.apart else super().row_places(rows)

    def _named(self, rows: Sequence[int]) -> Iterator[str]:
        keys = [os.path.relpath(file, self.folder).replace(os.sep, "/") for file in self.files]
        for row in rows:
            file = bisect_right(self.starts, row) - 1
            yield f"{keys[file]}#{row - self.starts[file]}"

    def holds_bytes(self, wanted: str | int, field: str) -> bool:
        """Returns whether a column is of a binary type, or a struct with a field `bytes`, as the Hugging Face Hub stores images."""
        name = (self.names or ())[self.number(wanted, field)]
        return _bytes_in(_type_of(self.schemas[0], name)) is not None

    def arrays(self, wanted: str | int, shape: tuple[int, ...], field: str, dtype: NumberType | None = None) -> Any:
        """Reads them without making objects of Python; see `Table.arrays`."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        number = self.number(wanted, field)
        name = (self.names or ())[number]
        check_room(self.num_rows, shape, field, dtype)
        if self.json_place(wanted)[1] or number >= len(self.schemas[0].names) or (self.names or ()).count(name) > 1:
            return super().arrays(wanted, shape, field, dtype)  # inside of JSON, or of a struct
        try:
            columns = [pq.read_table(file, columns=[name], partitioning=None, page_checksum_verification=True)[name] for file in self.files]
            rows = sum(map(len, columns))
            if rows != self.num_rows:
                raise ValueError(f"it has {rows:,} values, and {self.num_rows:,} rows are due")
            found = [read_arrow(column, shape) for column in columns]
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise OpError("PG421", f"the column {name!r} of {self.called} cannot be read: {error}", field="path") from None
        if any(values is None for values in found):
            return super().arrays(wanted, shape, field, dtype)  # which finds the cell
        return checked(np.concatenate(found), None, self.place_in(wanted), shape, field, dtype)

    def reader(self, columns: Mapping[str, str | int]) -> BlockReader:
        """Returns what reads such columns, a row group at a time.

        Raises:
            OpError: `PG421` where a file has another type of column than the first.
        """
        import pyarrow as pa

        from pipegen.ops.sources.tables.row_groups import RowGroups

        held = {}
        for feature, wanted in columns.items():
            name = (self.names or ())[self.number(wanted, "")]
            type_ = _type_of(self.schemas[0], name)
            for file, schema in zip(self.files, self.schemas, strict=True):
                own = _type_of(schema, name)
                if own is None or _bytes_in(own) != _bytes_in(type_):
                    is_ = "has no such column" if own is None else f"has {own} there"
                    raise OpError("PG421", f"the column {name!r} of {self.files[0]!r} is {type_}, and {file!r} {is_}", field="path")
            top, inner = _split(self.schemas[0], name)
            held[feature] = top, ".".join((*inner, *([_INNER] if _bytes_in(type_) else ()))) or None
        try:
            return RowGroups(self.files, held)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OpError("PG421", f"the row groups of {self.called} cannot be read: {error}", field="path") from None


def _nested(schema: Any) -> Iterator[str]:
    """Yields the names of the columns that stand inside of structs, such as `image.bytes`."""
    import pyarrow as pa

    def inside(name: str, type_: Any) -> Iterator[str]:
        for i in range(type_.num_fields if pa.types.is_struct(type_) else 0):
            field = type_.field(i)
            yield f"{name}.{field.name}"
            yield from inside(f"{name}.{field.name}", field.type)

    for field in schema:
        yield from inside(field.name, field.type)


def _split(schema: Any, name: str) -> tuple[str, tuple[str, ...]]:
    """Returns the column of the table that a name is about, and the fields that lead on from there; none for the column itself."""
    if name in schema.names:
        return name, ()
    top = next((top for top in schema.names if name.startswith(f"{top}.")), name)
    return top, tuple(name[len(top) + 1 :].split(".")) if top != name else ()


def _type_of(schema: Any, name: str) -> Any:
    """Returns the type of a column, also of one inside of a struct; `None` where there is none."""
    import pyarrow as pa

    top, inner = _split(schema, name)
    found: Any = schema.field(schema.names.index(top)).type if top in schema.names else None
    for field in inner:
        if found is None or not pa.types.is_struct(found) or found.get_field_index(field) < 0:
            return None
        found = found.field(field).type
    return found


def _bytes_in(type_: Any) -> str | None:
    """Returns where the bytes of a column stand: empty for the column itself, the name of a field in it, or `None` where it has none."""
    import pyarrow as pa

    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(check(type_) for check in binary):
        return ""
    inner = type_.field(_INNER).type if pa.types.is_struct(type_) and type_.get_field_index(_INNER) >= 0 else None
    return _INNER if inner is not None and any(check(inner) for check in binary) else None
