"""Reads `tf.Example` messages without TensorFlow, by Protocol Buffers."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pipegen.frozen import dataclass

Held = Literal["bytes", "float", "int", "steps"]
Buffer = bytes | memoryview
_MESSAGES = {
    "Bytes": {"value": (1, "repeated bytes")},
    "Floats": {"value": (1, "repeated float")},
    "Ints": {"value": (1, "repeated int64")},
    "Feature": {"bytes": (1, "Bytes"), "float": (2, "Floats"), "int": (3, "Ints")},
    "Entry": {"key": (1, "bytes"), "value": (2, "Feature")},
    "Features": {"entries": (1, "repeated Entry")},
    "Entries": {"key": (1, "bytes"), "value": (2, "bytes")},
    "Lists": {"entries": (1, "repeated Entries")},
    "Example": {"features": (1, "Features"), "lists": (2, "Lists")},
}
"""Number and type of each field, as in `tensorflow/core/example/example.proto` and `feature.proto`; `lists` are those of a
`tf.SequenceExample`. Keys are bytes, since they may be invalid UTF-8."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a key of a record: the type of its list, and its items. The type is `None` if it is empty and untyped, `steps` for a
    feature list of a `tf.SequenceExample`, which is not read."""

    held: Held | None
    items: tuple[bytes | float | int, ...]


def read_example(record: Buffer) -> dict[str, Value]:
    """Reads every key of a `tf.Example`, or of a `tf.SequenceExample`, which also has feature lists; `ValueError` for invalid bytes."""
    example = _parsed(record)
    steps = {_text(entry.key): Value("steps", ()) for entry in example.lists.entries}
    return steps | {_text(entry.key): _value(entry.value) for entry in example.features.entries}


def read_key(record: Buffer, key: bytes) -> Value | None:
    """Reads one key of a `tf.Example`; `None` if it is missing, `ValueError` for invalid bytes."""
    found = [entry for entry in _parsed(record).features.entries if entry.key == key]
    return _value(found[-1].value) if found else None


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _value(feature: Any) -> Value:
    held = feature.WhichOneof("kind")
    return Value(held, tuple(getattr(feature, held).value) if held is not None else ())


def _parsed(record: Buffer) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return _example().FromString(bytes(record))
    except DecodeError:
        raise ValueError("its bytes are not a message of Protocol Buffers") from None


@cache
def _example() -> Any:
    """Makes the class of the message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="pipegen/example.proto", package="pipegen", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for called, (number, kind) in fields.items():
            word = kind.rpartition(" ")[2]
            about = {"type_name": f".pipegen.{word}"} if word in _MESSAGES else {"type": getattr(kinds, f"TYPE_{word.upper()}")}
            label = kinds.LABEL_OPTIONAL if word == kind else kinds.LABEL_REPEATED
            one = message.field.add(name=called, number=number, label=label, **about)
            if name == "Feature":
                one.oneof_index = 0
        if name == "Feature":
            message.oneof_decl.add(name="kind")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pipegen.Example"))
