"""Parquet files as one table with lazy columns; fields of structs have names such as `image.bytes`."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, TypeAlias

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.notes import Note, count
from pipegen.ops.fields.numbers import NumberType
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sources.listing.blocks import BlockReader
from pipegen.ops.sources.tables.nested import check_room, checked, read_arrow
from pipegen.ops.sources.tables.row_groups import leaves_of
from pipegen.ops.sources.tables.table import Table, needed

_MAGIC = b"PAR1"
_AT_ONCE = 1 << 20
Fields: TypeAlias = dict[str, tuple[tuple[str, ...], Any]]
"""Path and Arrow type of each column, and of each field of structs, by name."""
_INNER = "bytes"  # the field of a struct with the bytes of a file, as on the Hugging Face Hub


def read_parquet(files: Sequence[str], root: str | None = None, beside: Sequence[Note] = ()) -> ParquetFiles:
    """Opens Parquet files as one table; each column is read on first use.

    Args:
        files: The absolute paths, in order.
        root: Their common folder, if rows are identified by file and number; `None` for one file whose rows are identified by number.
        beside: Findings about the files.

    Raises:
        OpError: `PG421` if one cannot be read.
    """
    with needed("Parquet files", "PyArrow", "parquet", "; or save the table as CSV"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    schemas, starts = [], [0]
    for file in files:
        try:
            with pq.ParquetFile(file) as opened:
                schemas.append(opened.schema_arrow)
                starts.append(starts[-1] + opened.metadata.num_rows)
                _check_whole(file, opened.metadata)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OpError("PG421", f"{file!r} cannot be read as Parquet: {error}", field="path") from None
    top, fields = schemas[0].names, [_fields_of(schemas[0])]
    for before, schema in pairwise(schemas):
        fields.append(fields[-1] if schema.equals(before) else _fields_of(schema))
    names = (*top, *(name for name, (path, _) in fields[0].items() if len(path) > 1))
    called = repr(files[0]) if len(files) == 1 else f"{files[0]!r} and {count(len(files) - 1, 'more file')}"
    about = called, files[0] if root is None else root, root or os.path.dirname(files[0]), names, len(names), starts[-1]

    def values(i: int) -> Iterable[Any]:
        # By number, since two columns can share a name.
        at = names[: i + 1].count(names[i]) - 1 if i < len(top) else 0
        inner = fields[0][names[i]][0][1:]
        return chain.from_iterable(_cells(file, own, names[i], at, inner) for file, own in zip(files, fields, strict=True))

    return ParquetFiles(*about, values, tuple(files), tuple(fields), tuple(starts), root is not None, tuple(beside))


def _check_whole(file: str, meta: Any) -> None:
    """Checks that the footer's counts agree, and that it follows the columns. Raises `ValueError` if the footer contradicts itself, or a
    second file was appended, whose footer is taken for that of the first."""
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    if sum(group.num_rows for group in groups) != meta.num_rows:
        message = f"its footer counts {meta.num_rows:,} rows, but {sum(group.num_rows for group in groups):,} by row group"
        raise ValueError(message)
    end = max((leaf.end for leaves in leaves_of(file)[-1:] for leaf in leaves), default=len(_MAGIC))
    with open(file, "rb") as stream:
        head, size = stream.read(len(_MAGIC)), os.fstat(stream.fileno()).st_size
        footer = size - meta.serialized_size - len(_MAGIC) - 4
        if head != _MAGIC or end > footer:
            raise ValueError(f"it does not begin with {_MAGIC.decode()!r}" if head != _MAGIC else "its columns overlap its footer")
        stream.seek(end)
        while end < footer:  # indexes of pages, which are small
            part = stream.read(min(_AT_ONCE, footer - end + len(_MAGIC)))
            if not part or 2 * _MAGIC in part:
                raise ValueError("it contains a second file; `cat` does not join Parquet files")
            end += len(part) - len(_MAGIC)
            stream.seek(end)


def _cells(file: str, fields: Fields, name: str, at: int, inner: tuple[str, ...]) -> list[Any]:
    """Reads a column of one file, or a field of a struct in it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if name not in fields:
        raise OpError("PG421", f"{file!r} has no column {name!r} of the first file", field="path")
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            column: list[Any] = opened.read(columns=[name]).column(at).to_pylist()
            if len(column) != opened.metadata.num_rows:
                raise ValueError(f"it has {len(column):,} values for {opened.metadata.num_rows:,} rows")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OpError("PG421", f"the column {name!r} of {file!r} cannot be read: {error}", field="path") from None
    for field in inner:
        column = [None if value is None else value.get(field) for value in column]
    return column


@dataclass(frozen=True)
class ParquetFiles(Table):
    """Parquet files as one table."""

    files: tuple[str, ...]  # their absolute paths
    fields: tuple[Fields, ...]  # the columns of each, and the fields of structs in them
    starts: tuple[int, ...]  # the number of each file's first row, with the end
    apart: bool  # whether rows are identified by file and number
    beside: tuple[Note, ...] = ()  # findings about the files

    def notes(self) -> tuple[Note, ...]:
        return self.beside

    def place(self, row: int) -> str:
        file = bisect_right(self.starts, row) - 1
        return f"row {row - self.starts[file]} of {self.files[file]!r}" if self.apart else super().place(row)

    def row_names(self, rows: Sequence[int]) -> Strings:
        """Names rows by file and number, `data/a.parquet#12`, so that files can be added."""
        return Strings.hold(self._named(rows)) if self.apart else super().row_names(rows)

    def row_places(self, rows: Sequence[int]) -> Strings:
        """Names rows by absolute path and number."""
        return self.row_names(rows).below(f"{self.folder}/") if self.apart else super().row_places(rows)

    def _named(self, rows: Sequence[int]) -> Iterator[str]:
        keys = [os.path.relpath(file, self.folder).replace(os.sep, "/") for file in self.files]
        for row in rows:
            file = bisect_right(self.starts, row) - 1
            yield f"{keys[file]}#{row - self.starts[file]}"

    def holds_bytes(self, wanted: str | int, field: str) -> bool:
        """Tells whether a column is binary, or a struct with a field `bytes`, as on the Hugging Face Hub."""
        name = (self.names or ())[self.number(wanted, field)]
        return _bytes_in(self.fields[0][name][1]) is not None

    def arrays(self, wanted: str | int, shape: tuple[int, ...], field: str, dtype: NumberType | None = None) -> Any:
        """Reads arrays without Python objects; see `Table.arrays`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        number = self.number(wanted, field)
        name = (self.names or ())[number]
        check_room(self.num_rows, shape, field, dtype)
        if self.json_place(wanted)[1] or len(self.fields[0][name][0]) > 1 or (self.names or ()).count(name) > 1:
            return super().arrays(wanted, shape, field, dtype)  # in JSON or a struct
        try:
            columns = [pq.read_table(file, columns=[name], partitioning=None, page_checksum_verification=True)[name] for file in self.files]
            rows = sum(map(len, columns))
            if rows != self.num_rows:
                raise ValueError(f"it has {rows:,} values for {self.num_rows:,} rows")
            found = [read_arrow(column, shape) for column in columns]
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise OpError("PG421", f"the column {name!r} of {self.called} cannot be read: {error}", field="path") from None
        if any(values is None for values in found):
            return super().arrays(wanted, shape, field, dtype)  # which finds the cell
        return checked(np.concatenate(found), None, self.place_in(wanted), shape, field, dtype)

    def reader(self, columns: Mapping[str, str | int]) -> BlockReader:
        """Returns a reader of columns by row groups; `PG421` if files differ in a column's type."""
        import pyarrow as pa

        from pipegen.ops.sources.tables.row_groups import RowGroups

        held = {}
        for feature, wanted in columns.items():
            name = (self.names or ())[self.number(wanted, "")]
            (top, *inner), type_ = self.fields[0][name]
            for file, fields in zip(self.files, self.fields, strict=True):
                _, own = fields.get(name, ((), None))
                if own is None or _bytes_in(own) != _bytes_in(type_):
                    is_ = "has no such column" if own is None else f"has {own} there"
                    raise OpError("PG421", f"the column {name!r} of {self.files[0]!r} is {type_}, but {file!r} {is_}", field="path")
            held[feature] = top, ".".join((*inner, *([_INNER] if _bytes_in(type_) else ()))) or None
        try:
            return RowGroups(self.files, held)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OpError("PG421", f"the row groups of {self.called} cannot be read: {error}", field="path") from None


def _fields_of(schema: Any) -> Fields:
    """Returns path and type of each column, then of the fields of structs, such as `image.bytes`, by name; the first of several alike."""
    import pyarrow as pa

    found: Fields = {}
    for field in schema:
        found.setdefault(field.name, ((field.name,), field.type))

    def inside(path: tuple[str, ...], type_: Any) -> None:
        for i in range(type_.num_fields if pa.types.is_struct(type_) else 0):
            inner = *path, type_.field(i).name
            found.setdefault(".".join(inner), (inner, type_.field(i).type))
            inside(inner, type_.field(i).type)

    for field in schema:
        inside((field.name,), field.type)
    return found


def _bytes_in(type_: Any) -> str | None:
    """Returns the field with a column's bytes: "" for the column itself, `None` without any."""
    import pyarrow as pa

    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(check(type_) for check in binary):
        return ""
    inner = type_.field(_INNER).type if pa.types.is_struct(type_) and type_.get_field_index(_INNER) >= 0 else None
    return _INNER if inner is not None and any(check(inner) for check in binary) else None


SUFFIXES = (".parquet", ".pq")
