"""Parquet files as one table with lazy columns, whose images are read by row group; fields of structs have names such as `image.bytes`."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

from pipegen.errors import OpError
from pipegen.files import stamp
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.notes import Note, count
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.sources.listing.blocks import Block, BlockReader
from pipegen.ops.sources.stores.base import byte_strings
from pipegen.ops.sources.stores.field_types import is_list, is_number
from pipegen.ops.sources.tables.table import ListFile, Table, TableColumn, needed

SUFFIXES = (".parquet", ".pq")
_MAGIC = b"PAR1"
_AT_ONCE = 1 << 20
Converted = TypeVar("Converted")
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
    folder, several = root or os.path.dirname(files[0]), Counter(names)

    def place(row: int) -> str:
        file = bisect_right(starts, row) - 1
        return f"row {row} of {called}" if root is None else f"row {row - starts[file]} of {files[file]!r}"

    def values(i: int) -> Iterable[Any]:
        # By number, since two columns can share a name.
        at = names[: i + 1].count(names[i]) - 1 if i < len(top) else 0
        cells = partial(_cells, inner=fields[0][names[i]][0][1:])
        return chain.from_iterable(_column(file, own, names[i], cells, at) for file, own in zip(files, fields, strict=True))

    def arrays(name: str, shape: tuple[int, ...], *, times: bool = False) -> Any:
        convert = partial(_read_lists, shape=shape, fits=_is_time if times else is_number)
        found = [_column(file, own, name, convert) for file, own in zip(files, fields, strict=True)]
        return None if any(values is None for values in found) else np.concatenate(found)

    def column(i: int, name: str) -> TableColumn:
        path, type_ = fields[0][name]
        whole = partial(arrays, name) if len(path) == several[name] == 1 else None  # else in a struct
        return TableColumn(partial(values, i), place, folder, _bytes_in(type_) is not None, _has_numbers(type_), whole)

    columns, notes = [column(i, name) for i, name in enumerate(names)], tuple(beside)
    about = called, files[0] if root is None else root, folder, names, columns, starts[-1], place, notes
    return ParquetFiles(*about, files=tuple(files), fields=tuple(fields), starts=tuple(starts) if root is not None else None)


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


def _column(file: str, fields: Fields, name: str, convert: Callable[[Any], Converted], at: int = 0) -> Converted:
    """Reads a column of one file, the one at `at` of several of its name, and converts it from Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if name not in fields:
        raise OpError("PG421", f"{file!r} has no column {name!r} of the first file", field="path")
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            column = opened.read(columns=[name]).column(at)
            if len(column) != opened.metadata.num_rows:
                raise ValueError(f"it has {len(column):,} values for {opened.metadata.num_rows:,} rows")
            return convert(column)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OpError("PG421", f"the column {name!r} of {file!r} cannot be read: {error}", field="path") from None


def _cells(column: Any, inner: tuple[str, ...]) -> list[Any]:
    """Converts a column, or a field of structs in it."""
    values: list[Any] = column.to_pylist()
    for field in inner:
        values = [None if value is None else value.get(field) for value in values]
    return values


def _is_time(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(type_) and type_.tz is None)


def _read_lists(column: Any, shape: tuple[int, ...], fits: Callable[[Any], bool]) -> Any:
    """Converts an Arrow column of nested lists to an array `(n, *shape)`, or to `None` if a cell has another shape or type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for chunk in column.chunks:
        rows = len(chunk)
        values = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        for side in shape:
            if values.null_count or not is_list(values.type):
                return None
            if not pc.all(pc.equal(pc.list_value_length(values), side), min_count=0).as_py():
                return None
            values = values.flatten()
        if values.null_count or not fits(values.type):
            return None
        found.append(values.to_numpy(zero_copy_only=False).reshape(rows, *shape))
    return np.concatenate(found) if found else np.zeros((0, *shape), np.float32)


@dataclass(frozen=True)
class ParquetFiles(Table):
    """Parquet files as one table."""

    files: tuple[str, ...] = ()  # the absolute paths
    fields: tuple[Fields, ...] = ()  # the columns of each file
    starts: tuple[int, ...] | None = None  # the number of each file's first row, with the end, if rows are identified by file and number

    def row_names(self) -> Strings:
        """Names rows by file and number, `data/a.parquet#12`, so that files can be added."""
        return super().row_names() if self.starts is None else Strings.hold(self._named(self.starts))

    def row_places(self) -> Strings:
        """Names rows by absolute path and number."""
        return super().row_places() if self.starts is None else self.row_names().below(f"{self.folder}/")

    def _named(self, starts: Sequence[int]) -> Iterator[str]:
        keys = [os.path.relpath(file, self.folder).replace(os.sep, "/") for file in self.files]
        for row in self.named():
            file = bisect_right(starts, row) - 1
            yield f"{keys[file]}#{row - starts[file]}"

    def reader(self, columns: Mapping[str, str | int], files: Mapping[str, ListFile] | None = None) -> BlockReader:
        """Returns a reader of columns by row groups; `PG421` if files differ in a column's type."""
        import pyarrow as pa

        held = {}
        for feature, wanted in columns.items():
            name = (self.names or ())[self.number(wanted, "")]
            (top, *inner), type_ = self.fields[0][name]
            for file, fields in zip(self.files, self.fields, strict=True):
                _, own = fields.get(name, ((), None))
                if own is None or _bytes_in(own) != _bytes_in(type_) or _has_numbers(own) != _has_numbers(type_):
                    is_ = "has no such column" if own is None else f"has {own} there"
                    raise OpError("PG421", f"the column {name!r} of {self.files[0]!r} is {type_}, but {file!r} {is_}", field="path")
            held[feature] = top, ".".join((*inner, *([_INNER] if _bytes_in(type_) else ()))) or None
        try:
            return RowGroups(self.files, held, files)
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


def _has_numbers(type_: Any) -> bool:
    """Tells whether a column has lists of numbers, or nested lists of them."""
    return is_list(type_) and (is_number(type_.value_type) or _has_numbers(type_.value_type))


def _numbers_in(values: Any) -> Any:
    """Converts an Arrow array of numbers, or of lists of them that have one length; `ValueError` for others."""
    import pyarrow.compute as pc

    if values.null_count:
        raise ValueError("it has missing numbers")
    if not is_list(values.type):
        return values.to_numpy(zero_copy_only=False)
    lengths = pc.unique(pc.list_value_length(values)).to_pylist()
    if len(lengths) > 1:
        raise ValueError(f"it has lists of {lengths[0]} and of {count(lengths[1], 'item')}")
    inner = _numbers_in(values.flatten())
    return inner.reshape(len(values), *lengths, *inner.shape[1:]) if lengths else inner[:0]


_HASHED = 1 << 22
_EMPTY = "the cell is empty"
_EMPTY_FIELD = "the field {!r} is empty; if a path beside it names the image, write the file again with the bytes"


class ArrowBlock(Block):
    """The encoded bytes of a row group in one Arrow buffer; `empty` is the error for a row without any."""

    def __init__(self, column: Any, empty: str) -> None:
        self.values, self.empty = column, empty
        self.nbytes = int(column.nbytes)

    def take(self, rows: Ints) -> Any:
        """Returns the bytes of some rows as objects; `ValueError` for a row without any."""
        values = [self.values[row] for row in rows.tolist()]
        if not all(value.is_valid for value in values):
            raise ValueError(self.empty)
        return byte_strings([value.as_py() for value in values])


class ListBlock(ArrowBlock):
    """The lists of numbers of a row group, as the bytes of files."""

    def __init__(self, column: Any, empty: str, file: ListFile) -> None:
        super().__init__(column, empty)
        self.make = file.make

    def take(self, rows: Ints) -> Any:
        cells = [self.values[row] for row in rows.tolist()]
        if not all(cell.is_valid for cell in cells):
            raise ValueError(self.empty)
        return byte_strings([self.make(_numbers_in(cell.values)) for cell in cells])


class RowGroups(BlockReader):
    """A reader of binary columns by row groups of Parquet files, each read once while its records are in use.

    Args:
        files: The absolute paths.
        columns: The column of each feature, and the field in it that holds the bytes, if any.
        made: The files of features whose column has lists of numbers.
    """

    called: str = "row groups"
    checksums: str | None = "those of pages, if written"

    def __init__(
        self, files: Sequence[str], columns: Mapping[str, tuple[str, str | None]], made: Mapping[str, ListFile] | None = None
    ) -> None:
        import pyarrow.parquet as pq

        self.files, self.columns, self.made = tuple(files), dict(columns), made or {}
        self._stamps = [stamp(file) for file in files]
        self._metadata = [pq.read_metadata(file) for file in files]
        self._place = [(file, i) for file, meta in enumerate(self._metadata) for i in range(meta.num_row_groups)]
        rows: Ints = np.array([self._metadata[file].row_group(group).num_rows for file, group in self._place], np.int64)
        super().__init__(rows)
        wanted, leaves = {name for name, _ in self.columns.values()}, [leaves_of(file) for file in self.files]
        unpacked = [sum(leaf.unpacked for leaf in leaves[file][group] if leaf.name in wanted) for file, group in self._place]
        self._row_bytes = np.array(unpacked, np.int64) // np.maximum(1, rows)  # of a row in memory, on average

    def load(self, block: int, feature: str) -> ArrowBlock:
        """Reads one column of a row group; `OSError` if that fails, or if its file changed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, group = self._place[block]
        if stamp(self.files[file]) != self._stamps[file]:
            raise OSError(f"{self.files[file]} was changed while it was in use; build the pipeline again")
        name, inner = self.columns[feature]
        try:
            # A new handle, since handles are not thread-safe. With given metadata, opening reads nothing.
            with pq.ParquetFile(self.files[file], metadata=self._metadata[file], page_checksum_verification=True) as opened:
                column = opened.read_row_group(group, columns=[name if inner is None else f"{name}.{inner}"], use_threads=False)[name]
            if len(column) != int(self.starts[block + 1] - self.starts[block]):
                raise ValueError(f"it has {len(column):,} values for {int(self.starts[block + 1] - self.starts[block]):,} rows")
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks)
            for part in inner.split(".") if inner is not None else ():
                column = column.field(part)
            empty = _EMPTY if inner is None else _EMPTY_FIELD.format(f"{name}.{inner}")
            return ArrowBlock(column, empty) if feature not in self.made else ListBlock(column, _EMPTY, self.made[feature])
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OSError(f"row group {group} of {self.files[file]} cannot be read: {error}") from error

    def lengths(self, feature: str) -> Ints | None:
        if feature not in self.made:
            return None
        import pyarrow.compute as pc

        cells = (self.load(block, feature).values for block in range(len(self._place)))
        found = [pc.list_value_length(own).fill_null(-1).to_numpy(zero_copy_only=False) for own in cells]
        return self.made[feature].steps(np.concatenate([np.zeros(0, np.int64), *found]).astype(np.int64))

    def row_sizes(self) -> Ints:
        """Returns the bytes of each record, averaged over its row group: int64 `(n,)`."""
        return np.repeat(self._row_bytes, np.diff(self.starts))

    def digest(self, *, whole: bool = False) -> str:
        """Identifies the files by their footers, with place, size and extremes of every column; or, with `whole`, by content."""
        found = hashlib.blake2b(repr(sorted(self.columns.items())).encode(), digest_size=32)
        for file in self.files:
            with open(file, "rb") as stream:
                if not whole:
                    stream.seek(-8, 2)
                    length = int.from_bytes(stream.read(4), "little")
                    stream.seek(-8 - length, 2)
                while part := stream.read(_HASHED):
                    found.update(part)
        return found.hexdigest()


_TAIL = 8  # bytes after the footer: its length, and the magic
_DEEPEST = 32
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 11, 12
"""Types of Thrift's compact protocol; integers of 16, 32 and 64 bits have one encoding."""
_GROUPS, _COLUMNS, _META = 4, 1, 3
_PATH, _UNPACKED, _PACKED, _DATA_AT, _DICTIONARY_AT = 3, 6, 7, 9, 11
"""Numbers of fields in Parquet's `FileMetaData`, `RowGroup`, `ColumnChunk` and `ColumnMetaData`."""


class Leaf(NamedTuple):
    """A column of a row group."""

    name: str  # the column of the table that it belongs to
    end: int  # its end in the file
    unpacked: int  # its unpacked bytes


def leaves_of(file: str) -> list[list[Leaf]]:
    """Lists the columns of each row group. Raises `OSError` if the file cannot be read; `ValueError` if its footer is damaged."""
    with open(file, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - _TAIL))
        length = int.from_bytes(stream.read(4), "little")
        if length > size - _TAIL:
            raise ValueError("its footer is longer than the file")
        stream.seek(size - _TAIL - length)
        reader = _Reader(stream.read(length))
    try:
        return [[_leaf(column[_META]) for column in group[_COLUMNS]] for group in reader.struct()[_GROUPS]]
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeDecodeError):
        raise ValueError("its footer is damaged: it lacks the places of columns") from None


def _leaf(meta: dict[int, Any]) -> Leaf:
    start = min(meta[_DATA_AT], meta.get(_DICTIONARY_AT, meta[_DATA_AT]))
    return Leaf(meta[_PATH][0].decode(), start + meta[_PACKED], meta[_UNPACKED])


class _Reader:
    """Parser of Thrift's compact protocol; structs are maps by field number."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise ValueError("its footer is damaged: it is nested too deep")
        found, number = {}, 0
        while head := self._byte():
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._whole()
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            if size > len(self._content) - self._at:  # each item takes a byte at least
                raise ValueError("its footer is damaged: a list exceeds it")
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            return [(self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(size)]
        if _BYTE < kind <= _I64:
            return self._whole()
        raise ValueError(f"its footer is damaged: a value has the type {kind}")

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _byte(self) -> int:
        byte = self._content[self._at]
        self._at += 1
        return byte

    def _bytes(self, size: int) -> bytes:
        if size > len(self._content) - self._at:
            raise ValueError("its footer is damaged: a value exceeds it")
        self._at += size
        return self._content[self._at - size : self._at]
