"""Records of one message: a `tf.Example`, read by Protocol Buffers without TensorFlow, or the bytes of one feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.reader import Hold, Together
from pipegen.ops.sources.records.index import Indexed, InShard
from pipegen.ops.sources.records.reader import RecordReader
from pipegen.ops.sources.records.source import RecordFeature, RecordSource, check_field, missing_key
from pipegen.ops.sources.stores.field_types import BYTES, FieldType, Form, column_and_path, field_of, optional_at, value_at

_DTYPES = {"bytes": BYTES, "float": "float32", "int": "int64", None: ""}
_OBJECT = "image/object/"
LAYOUTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "object_detection": {
        "image": {"kind": "image", "key": "image/encoded"},
        "boxes": {"kind": "boxes", "format": "rel_xyxy", "keys": [f"{_OBJECT}bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]},
        "labels": {"kind": "label", "with": "boxes", "key": f"{_OBJECT}class/label", "offset": 1},
    }
}
"""Features of each layout."""
_OF_KEY = ("key", "keys", "offset")  # arguments that belong to the key of a feature
Held = Literal["bytes", "float", "int", "steps"]
Buffer = bytes | memoryview
_SCHEMA = """
name: "pipegen/example.proto" package: "pipegen" syntax: "proto3"
message_type { name: "Bytes" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "Floats" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT } }
message_type { name: "Ints" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type { name: "Feature" oneof_decl { name: "kind" }
  field { name: "bytes" number: 1 label: LABEL_OPTIONAL type_name: "Bytes" oneof_index: 0 }
  field { name: "float" number: 2 label: LABEL_OPTIONAL type_name: "Floats" oneof_index: 0 }
  field { name: "int" number: 3 label: LABEL_OPTIONAL type_name: "Ints" oneof_index: 0 } }
message_type { name: "Entry"
  field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "value" number: 2 label: LABEL_OPTIONAL type_name: "Feature" } }
message_type { name: "Features" field { name: "entries" number: 1 label: LABEL_REPEATED type_name: "Entry" } }
message_type { name: "Steps" field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES } }
message_type { name: "Lists" field { name: "entries" number: 1 label: LABEL_REPEATED type_name: "Steps" } }
message_type { name: "Example"
  field { name: "features" number: 1 label: LABEL_OPTIONAL type_name: "Features" }
  field { name: "lists" number: 2 label: LABEL_OPTIONAL type_name: "Lists" } }
"""
"""Messages of `tensorflow/core/example/example.proto` and `feature.proto`, as a `FileDescriptorProto`; `lists` are those of a
`tf.SequenceExample`. Keys are bytes, since they may be invalid UTF-8."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a key of a record: the type of its list, and its items. The type is `None` if it is empty and untyped, `steps` for a
    feature list of a `tf.SequenceExample`, which is not read."""

    held: Held | None
    items: tuple[bytes | float | int, ...]


def laid_out(layout: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the features of a layout, changed by given ones of the same kind. Another key has no `offset` unless that is given, too."""
    found: dict[str, Any] = {**LAYOUTS[layout], **given}
    for name, known in LAYOUTS[layout].items():
        own = found[name]
        if isinstance(own, Mapping) and own.get("kind") == known["kind"]:
            moved = "key" in own or "keys" in own
            found[name] = {**{k: v for k, v in known.items() if not (moved and k in _OF_KEY)}, **own}
    return found


def _either_in(schema: dict[str, Any]) -> None:
    """Requires `features` or `layout` in a schema."""
    schema["required"] = [name for name in schema["required"] if name != "features"]
    schema["anyOf"] = [{"required": ["features"]}, {"required": ["layout"]}]


class MessageSource(RecordSource):
    """Files whose records are messages."""

    model_config = ConfigDict(json_schema_extra=_either_in)
    labels_of_one_type: ClassVar[bool] = True

    content: Literal["example", "bytes"] = "example"
    """Content of a record: a `tf.Example`, or the `bytes` of the only feature, such as a JPEG file."""
    layout: Literal["object_detection"] | None = Field(default=None, exclude=True)
    """Known keys in place of `features`. `object_detection`, the records of TensorFlow's Object Detection API: `image`, `boxes` from the
    four `image/object/bbox/` lists, and `labels` of these from `image/object/class/label`, counted from 1. `features` beside it
    change these (`{labels: {kind: label, key: image/object/class/text}}`) or add others."""

    @classmethod
    def written_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        layout, features = given.get("layout"), given.get("features", {})
        if not isinstance(layout, str) or layout not in LAYOUTS or not isinstance(features, Mapping):
            return given
        return {**{key: value for key, value in given.items() if key != "layout"}, "features": laid_out(layout, features)}

    @model_validator(mode="after")
    def _one_of_bytes(self) -> MessageSource:
        if self.content == "bytes":
            for name in ("where", "join"):
                if getattr(self, name) is not None:
                    raise PartError("with `content: bytes` a record has no keys to compare", name, help=f"remove `{name}`")
            if len(self.features) > 1:
                raise ValueError(f"with `content: bytes` a record is one feature, but `features` has {len(self.features)}")
            name, feature = next(iter(self.features.items()))
            if not feature.own_kind.has_files:
                message = f"with `content: bytes` a record is a file, but `{name}` is `kind: {feature.kind}`"
                raise PartError(message, "features", name)
            if feature.key is not None:
                raise PartError("with `content: bytes` a record has no keys", "features", name, "key", help="remove `key`")
        return self

    def first_message(self, found: Indexed) -> bytes:
        """Reads the first record."""
        raise NotImplementedError

    def types(self, found: Indexed) -> dict[str, FieldType]:
        if self.content == "bytes":
            return dict.fromkeys(self.features, FieldType())
        record = self._first_record(found)
        return {name: _type_in(record, name, feature) for name, feature in self.read_features.items()}

    def _first_record(self, found: Indexed) -> Mapping[str, Value]:
        try:
            return read_example(self.first_message(found))
        except ValueError as error:
            message = f"record 0 of {found.first.file.path!r} is not a `tf.Example`: {error}"
            help_ = write("content: bytes", "arguments", "if each record is an image file, write {}")
            raise OpError("PG431", message, field="path", help=help_) from None

    def stored(self, form: Form, name: str, key: str, records: InShard) -> Sequence[Any]:
        every: Iterable[Any] = self.contents(name, records)
        return [_value_in(form, record, key, f"{records.file.path}#{row}") for row, record in enumerate(every)]

    def known_keys(self, found: Indexed) -> Sequence[str]:
        return list(self._first_record(found))

    def column_names(self) -> tuple[str, ...] | None:
        return None if self.content == "example" else ()

    def first_label(self, name: str, found: Indexed) -> Any:
        return _value_in("label", self.first_message(found), self.key_of(name), "the first record")

    def within(self, name: str, content: Buffer, types: Mapping[str, FieldType]) -> bytes:
        if self.content == "bytes":
            return bytes(content)
        value, samples = read_key(content, self.key_of(name)), self.features[name].own_kind.samples
        if types[name].samples and samples is not None and value is not None and _DTYPES[value.held] == types[name].samples:
            return samples.file_of_list(value.items, self.features[name])
        if value is None or len(value.items) != 1 or not isinstance(value.items[0], bytes):
            raise ValueError(f"it has no bytes under {self.key_of(name)!r}")
        return value.items[0]

    def parse(self, reader: Any, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        from pipegen.ops.lowering.record_values import parse_example

        if self.content == "bytes":
            return dict.fromkeys(features, parts[""])
        lookups = {name: label.lookup for name, label in reader.label_columns.items() if name in features}
        return parse_example(parts[""], {name: self.features[name] for name in features}, reader.types, lookups)


class MessageReader(RecordReader):
    """A reader of messages: one call into Python reads them, and the graph parses them."""

    source: MessageSource

    def messages(self, shards: Any, rows: Any) -> Any:
        """Reads the messages of records, int64 `(n,)` each: objects `(n,)`; `OSError` or `ValueError` if a file is damaged."""
        raise NotImplementedError

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return [self.source.within(feature, message, self.types) for message in self.messages(*place).tolist()]

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.record_values import parsed
        from pipegen.ops.lowering.stored_readers import called

        self.check()
        messages = called(lambda _, *place: [self.messages(*place)], {"": ("string", ())})
        return parsed(messages, lambda names, message: self.source.parse(self, names, {"": message}, {}))


def _type_in(record: Mapping[str, Value], name: str, feature: RecordFeature) -> FieldType:
    """Returns the type of a feature in the first record; `PG431` if it is missing or does not fit."""
    key, value = feature.key or name, record.get(feature.key or name)
    if value is None:
        texts = [column for column, one in record.items() if one.held == "bytes" and len(one.items) == 1]
        column, path = column_and_path(key, texts)
        if not path:
            raise missing_key("the first record", feature, name, key, list(record), none="it has no keys")
        (text,) = record[column].items
        try:
            held = FieldType.of_member(field_of(text, path), path)
        except ValueError as error:
            raise OpError("PG431", f"{column!r} of the first record: {error}", field=f"features.{name}.key") from None
    elif value.held == "steps":
        message = f"{key!r} of the first record is a feature list of a `tf.SequenceExample`, with a value per step"
        help_ = "write a `tf.Example` for each step, with one value per key"
        raise OpError("PG431", message, field=feature.key_field(name), help=help_)
    else:
        items = len(value.items)
        if feature.own_kind.has_files and feature.own_kind.samples is not None and value.held in ("int", "float") and items > 1:
            return FieldType(samples=_DTYPES[value.held])
        held = FieldType(_DTYPES[value.held], () if items == 1 else (items,), called="" if value.held else "nothing")
    check_field(name, feature, key, held, " of the first record")
    return held


def _value_in(form: Form, record: Buffer, key: str, place: str) -> Any:
    """Reads a value of a record, under a key or in a field of its JSON; `PG431` without one, `None` for a cell without one."""
    try:
        features = _features(record)
    except ValueError as error:
        raise OpError("PG431", f"{place} is not a `tf.Example`: {error}", field="path") from None
    column, path = column_and_path(key, features)
    value = _value(features[column]) if column in features else None
    items = () if value is None else value.items
    fits = not path or (value is not None and value.held == "bytes" and len(items) == 1)
    if form == "cell":
        one = items[0] if len(items) == 1 else list(items) or None
        return one if not path else optional_at(one, path) if fits else None
    if form == "list" and (value is None or not fits):
        known = [] if value is not None else list(read_example(record))
        raise OpError("PG431", f"{place} has no list {key!r}" + (f"; {suggested(key, known)}" if known else ""))
    if form == "label" and (value is None or len(items) != 1 or not fits):
        what = "no label" if value is None else f"{count(len(items), 'label')} of type {value.held}"
        raise OpError("PG431", f"{place} has {what} in {key!r}", field="features")
    try:
        if form == "list":
            return value_at(items[0], path, each=True) if path else items
        return field_of(items[0], path) if path else items[0]
    except ValueError as error:
        raise OpError("PG431", f"{place}, {key!r}: {error}", field=None if form == "list" else "features") from None


def read_example(record: Buffer) -> dict[str, Value]:
    """Reads every key of a `tf.Example`, or of a `tf.SequenceExample`, which also has feature lists; `ValueError` for invalid bytes."""
    steps = {_text(entry.key): Value("steps", ()) for entry in _parsed(record).lists.entries}
    return steps | {key: _value(feature) for key, feature in _features(record).items()}


def read_key(record: Buffer, key: str) -> Value | None:
    """Reads one key of a `tf.Example`; `None` if it is missing, `ValueError` for invalid bytes."""
    feature = _features(record).get(key)
    return None if feature is None else _value(feature)


def _features(record: Buffer) -> dict[str, Any]:
    return {_text(entry.key): entry.value for entry in _parsed(record).features.entries}


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
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto()).SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pipegen.Example"))
