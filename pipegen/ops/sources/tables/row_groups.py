"""`RowGroups`: reads images from a column of Parquet files, by row group."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.files import stamp
from pipegen.lazy import np
from pipegen.ops.sources.listing.blocks import BlockReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.fields.strings import Ints

_HASHED = 1 << 22
_EMPTY = "the cell is empty"
_EMPTY_FIELD = "the field {!r} is empty; if a path beside it names the image, write the file again with the bytes"


class ArrowBlock:
    """The encoded bytes of a row group in one Arrow buffer; `empty` is the error for a row without any."""

    def __init__(self, column: Any, empty: str) -> None:
        self.column, self.empty = column, empty
        self.nbytes = int(column.nbytes)

    def take(self, rows: Ints) -> Any:
        """Returns the bytes of some rows as objects; `ValueError` for a row without any."""
        found: Any = np.empty(len(rows), object)
        for place, row in enumerate(rows.tolist()):
            value = self.column[row]
            if not value.is_valid:
                raise ValueError(self.empty)
            found[place] = value.as_py()
        return found


class RowGroups(BlockReader):
    """A reader of binary columns by row groups of Parquet files, each read once while its records are in use.

    Args:
        files: The absolute paths.
        columns: The column of each feature, and the field in it that holds the bytes, if any.
    """

    called: str = "row groups"
    checksums: str | None = "those of pages, if written"

    def __init__(self, files: Sequence[str], columns: Mapping[str, tuple[str, str | None]]) -> None:
        import pyarrow.parquet as pq

        self.files, self.columns = tuple(files), dict(columns)
        self._stamps = [stamp(file) for file in files]
        held = [pq.read_metadata(file) for file in files]
        sizes = [meta.row_group(i).num_rows for meta in held for i in range(meta.num_row_groups)]
        self._metadata = held
        self._place = [(file, i) for file, meta in enumerate(held) for i in range(meta.num_row_groups)]
        super().__init__(np.array(sizes, np.int64))
        self.row_bytes = self._row_bytes(held)

    def _row_bytes(self, held: Sequence[Any]) -> Ints:
        """Returns the average bytes of a row in memory for each row group: int64 `(blocks,)`."""
        wanted = {name for name, _ in self.columns.values()}
        leaves = [leaves_of(file) for file in self.files]
        found = []
        for file, group in self._place:
            size = sum(leaf.unpacked for leaf in leaves[file][group] if leaf.name in wanted)
            found.append(size // max(1, held[file].row_group(group).num_rows))
        return np.array(found, np.int64)

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
            return ArrowBlock(column, _EMPTY if inner is None else _EMPTY_FIELD.format(f"{name}.{inner}"))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OSError(f"row group {group} of {self.files[file]} cannot be read: {error}") from error

    def row_sizes(self) -> Ints:
        """Returns the bytes of each record, averaged over its row group: int64 `(n,)`."""
        return np.repeat(self.row_bytes, np.diff(self.starts))

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
