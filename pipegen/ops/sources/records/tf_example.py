"""Reads `tf.Example` messages without TensorFlow.

The layout is that of Protocol Buffers' wire format: a message is a row of fields, each a tag (number and wire type) and a value.
`Example.features` and `Features.feature` have the number 1; an entry of the map has the key as 1 and a `Feature` as 2, which holds a
list of bytes (1), floats (2) or integers (3), see `tensorflow/core/example/feature.proto`. The feature lists of a `SequenceExample` have
the number 2.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

from pipegen.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

Held = Literal["bytes", "float", "int", "steps"]
_LISTS: dict[int, Held] = {1: "bytes", 2: "float", 3: "int"}
_FEATURES, _FEATURE_LISTS = 1, 2
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
Buffer = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a key of a record.

    Attributes:
        held: The type of its list; `None` if it is empty and untyped; `steps` for a feature list of a `tf.SequenceExample`, which is not
            read.
        items: The items: `bytes`, `float` or `int`.
    """

    held: Held | None
    items: tuple[bytes | float | int, ...]


def read_example(record: Buffer) -> dict[str, Value]:
    """Reads every key of a `tf.Example`, or of a `tf.SequenceExample`, which also has feature lists.

    Raises:
        ValueError: Invalid bytes.
    """
    steps = {_text(key): Value("steps", ()) for key, _, _ in _entries(record, _FEATURE_LISTS)}
    return steps | {_text(key): _value(record[start:end]) for key, start, end in _entries(record)}


def read_key(record: Buffer, key: bytes) -> Value | None:
    """Reads one key of a `tf.Example`; `None` if it is missing.

    Raises:
        ValueError: Invalid bytes.
    """
    found = None
    for name, start, end in _entries(record):
        if name == key:  # the last one wins
            found = start, end
    return None if found is None else _value(record[found[0] : found[1]])


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _entries(record: Buffer, field: int = _FEATURES) -> Iterator[tuple[bytes, int, int]]:
    """Yields each key of one of the two maps with the place of its `Feature` or `FeatureList`."""
    for number, start, end in _fields(record, 0, len(record)):
        if number != field or start < 0:
            continue
        for inner, entry, stop in _fields(record, start, end):
            if inner != 1 or entry < 0:
                continue
            key, place = b"", (stop, stop)
            for part, first, last in _fields(record, entry, stop):
                if part == 1 and first >= 0:
                    key = bytes(record[first:last])
                elif part == 2 and first >= 0:
                    place = first, last
            yield key, *place


def _value(feature: Buffer) -> Value:
    held: Held | None = None
    items: list[bytes | float | int] = []
    for number, start, end in _fields(feature, 0, len(feature)):
        if number not in _LISTS or start < 0:
            continue
        if _LISTS[number] != held:
            held, items = _LISTS[number], []
        items += _items(feature, start, end, held)
    return Value(held, tuple(items))


def _items(feature: Buffer, start: int, end: int, held: Held) -> list[bytes | float | int]:
    """Parses the items of a list, packed or one by one."""
    found: list[bytes | float | int] = []
    at = start
    while at < end:
        tag, at = _varint(feature, at, end)
        wire = tag & 7
        if wire == _LENGTH:
            length, at = _varint(feature, at, end)
            if at + length > end:
                raise ValueError("a list exceeds its feature")
            if held == "bytes":
                found.append(bytes(feature[at : at + length]))
            elif held == "float":
                if length % 4:
                    raise ValueError("a list of floats ends within a number")
                found += struct.unpack_from(f"<{length // 4}f", feature, at)
            else:
                inner = at
                while inner < at + length:
                    number, inner = _varint(feature, inner, at + length)
                    found.append(_signed(number))
            at += length
        elif wire == _FIXED32 and held == "float":
            found += struct.unpack("<f", feature[at : at + 4]) if at + 4 <= end else _cut()
            at += 4
        elif wire == _VARINT and held == "int":
            number, at = _varint(feature, at, end)
            found.append(_signed(number))
        else:
            raise ValueError("a list has an item of another type")
    return found


def _cut() -> tuple[float, ...]:
    raise ValueError("it ends in the middle of a number")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _fields(record: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields the number and place of each field; (-1, -1) for scalars."""
    at = start
    while at < end:
        tag, at = _varint(record, at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("a field has the number 0")
        if wire == _LENGTH:
            length, at = _varint(record, at, end)
            if at + length > end:
                raise ValueError("a field exceeds the record")
            yield number, at, at + length
            at += length
            continue
        if wire == _VARINT:
            _, at = _varint(record, at, end)
        elif wire in (_FIXED32, _FIXED64):
            at += 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"a field has the unknown type {wire}")
        if at > end:
            raise ValueError("it ends in the middle of a number")
        yield number, -1, -1


def _varint(record: Buffer, at: int, end: int) -> tuple[int, int]:
    """Parses a variable-length integer, seven bits per byte, lowest first; returns it and its end."""
    number = shift = 0
    while True:
        if at >= end or shift > 63:
            raise ValueError("it ends in the middle of a number" if at >= end else "a number has more than 64 bits")
        byte = record[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
