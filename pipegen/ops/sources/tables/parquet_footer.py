"""Reads the places of a Parquet file's columns from its footer, in Thrift's compact protocol.

PyArrow has them, too, but ends the process for some damaged footers: it does not catch what `RowGroupMetaData.column` throws in C++.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

_TAIL = 8
"""Bytes after the footer: its length, and the magic."""
_DEEPEST = 32
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 11, 12
"""Types of Thrift's compact protocol; integers of 16, 32 and 64 bits have one encoding."""
_GROUPS, _COLUMNS, _META = 4, 1, 3
_PATH, _UNPACKED, _PACKED, _DATA_AT, _DICTIONARY_AT = 3, 6, 7, 9, 11
"""Numbers of fields in Parquet's `FileMetaData`, `RowGroup`, `ColumnChunk` and `ColumnMetaData`."""


class Leaf(NamedTuple):
    """A column of a row group.

    Attributes:
        name: The column of the table that it belongs to.
        end: Its end in the file.
        unpacked: Its unpacked bytes.
    """

    name: str
    end: int
    unpacked: int


def leaves_of(file: str) -> list[list[Leaf]]:
    """Lists the columns of each row group.

    Raises:
        OSError: The file cannot be read.
        ValueError: Its footer is damaged.
    """
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
