"""Records of one message: a `tf.Example`, or the bytes of one feature."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.wording import count, quoted
from pipegen.ops.sources.records.json_fields import column_and_path, field_of, optional_at, value_at
from pipegen.ops.sources.records.stored import how_field_stored, missing_key
from pipegen.ops.sources.records.tf_example import read_example, read_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.stored import Stored
    from pipegen.ops.sources.records.tf_example import Buffer, Held, Value


def check_content(content: str, features: Mapping[str, RecordFeature], where: str | None) -> None:
    """Raises `ValueError` if records of `bytes` should be more than one image file."""
    if content != "bytes":
        return
    if where is not None:
        raise PartError("with `content: bytes` a record has no keys to compare", "where", help="remove `where`")
    if len(features) > 1:
        raise ValueError(f"with `content: bytes` a record is one feature, but `features` has {len(features)}")
    name, feature = next(iter(features.items()))
    if not kind_of(feature).pictured:
        raise PartError(f"with `content: bytes` a record is an image file, but `{name}` is `kind: {feature.kind}`", "features", name)
    if feature.key is not None:
        raise PartError("with `content: bytes` a record has no keys", "features", name, "key", help="remove `key`")


def first_keys(record: bytes, path: str) -> dict[str, Value]:
    """Reads the first record of a file; `PG431` if it is not a `tf.Example`."""
    try:
        return read_example(record)
    except ValueError as error:
        message = f"record 0 of {path!r} is not a `tf.Example`: {error}"
        help_ = write("content: bytes", "arguments", "if each record is an image file, write {}")
        raise OpError("PG431", message, field="path", help=help_) from None


def check_keys(features: Mapping[str, RecordFeature], record: Mapping[str, Value]) -> None:
    """Raises `PG431` if a record does not fit the features."""
    fields = layout_of(features, record).fields
    for name, feature in features.items():
        problem = _misfit(name, feature, feature.key or name, record) if name not in fields else None
        if problem is not None:
            raise problem


@dataclass(frozen=True)
class JsonField:
    """A feature that is a field of JSON.

    Attributes:
        key: The key of the JSON in a record.
        stored: How the field is stored.
        read: Extracts the field from the JSON.
    """

    key: str
    stored: Stored
    read: Callable[[bytes], bytes]


@dataclass(frozen=True)
class Layout:
    """The layout of messages, from the first record.

    Attributes:
        held: The type of each key's list.
        fields: The features that are fields of JSON.
    """

    held: Mapping[str, Held | None]
    fields: Mapping[str, JsonField]


def layout_of(features: Mapping[str, RecordFeature], record: Mapping[str, Value]) -> Layout:
    """Returns the layout of the first record for these features; `PG431` if a field of JSON is missing or unfit."""
    found = {}
    for name, feature in features.items():
        key, path = _key_and_path(feature.key or name, record)
        content = record[key].items[0] if path else None
        if isinstance(content, bytes):
            found[name] = JsonField(key, how_field_stored(name, feature, key, path, content), partial(field_of, path=path))
    return Layout({key: value.held for key, value in record.items()}, found)


def _found_in(record: Buffer, key: str, place: str) -> tuple[Value | None, tuple[str, ...]]:
    """Finds the value under a key of a record, or under the start of it, and the rest of the key, which is a path in JSON."""
    parts = key.split(".")
    try:
        found = ((end, read_key(record, ".".join(parts[:end]).encode())) for end in range(len(parts), 0, -1))
        end, value = next((there for there in found if there[1] is not None), (0, None))
    except ValueError as error:
        raise OpError("PG431", f"{place} is not a `tf.Example`: {error}", field="path") from None
    return value, tuple(parts[end:])


def values_in(record: Buffer, key: str, place: str) -> Any:
    """Reads the list of a record, under a key or in a field of its JSON; `PG431` without one."""
    value, path = _found_in(record, key, place)
    if value is None or value.held == "steps" or (path and (value.held != "bytes" or len(value.items) != 1)):
        known = [] if value is not None else list(read_example(bytes(record)))
        raise OpError("PG431", f"{place} has no list {key!r}" + (f"; {suggested(key, known)}" if known else ""))
    if not path:
        return value.items
    try:
        return value_at(value.items[0], path)
    except ValueError as error:
        raise OpError("PG431", f"{place}, {key!r}: {error}") from None


def cell_in(record: Buffer, key: str, place: str) -> Any:
    """Reads a value of a record, under a key or in a field of its JSON; `None` without one."""
    value, path = _found_in(record, key, place)
    items = () if value is None else value.items
    if not path or len(items) != 1:
        return None if path or not items else items[0] if len(items) == 1 else list(items)
    return optional_at(items[0], path)


def label_in(record: Buffer, key: str, place: str) -> int | float | bytes:
    """Reads the label of a record, under a key or in a field of its JSON; `PG431` without one."""
    value, path = _found_in(record, key, place)
    if value is None or len(value.items) != 1 or (path and value.held != "bytes"):
        what = "no label" if value is None else f"{count(len(value.items), 'label')} of type {value.held}"
        raise OpError("PG431", f"{place} has {what} in {key!r}", field="features")
    content = value.items[0]
    try:
        return field_of(content, path) if path and isinstance(content, bytes) else content
    except ValueError as error:
        raise OpError("PG431", f"{place}, {key!r}: {error}", field="features") from None


def _key_and_path(key: str, record: Mapping[str, Value]) -> tuple[str, tuple[str, ...]]:
    """Splits a feature's key into a key of the record and the path of a field in its JSON."""
    texts = [name for name, value in record.items() if value.held == "bytes" and len(value.items) == 1]
    return (key, ()) if key in record else column_and_path(key, texts)


def bytes_in(record: bytes, key: str) -> bytes:
    """Returns the bytes of a key of a `tf.Example`; `ValueError` without any."""
    value = read_key(record, key.encode())
    if value is None or len(value.items) != 1 or not isinstance(value.items[0], bytes):
        raise ValueError(f"it has no bytes under {key!r}")
    return value.items[0]


def _misfit(name: str, feature: RecordFeature, key: str, record: Mapping[str, Value]) -> OpError | None:
    """Describes how a feature does not fit the first record."""
    field = feature.key_field(name)
    value = record.get(key)
    if value is None:
        listed = f"its keys are {quoted(list(record))}" if record else "it has no keys"
        return missing_key(f"the first record has no key {key!r}", feature, name, key, list(record), listed)
    if value.held == "steps":
        message = f"{key!r} of the first record is a feature list of a `tf.SequenceExample`, with a value per step"
        return OpError("PG431", message, field=field, help="write a `tf.Example` for each step, with one value per key")
    holds = f"{count(len(value.items), 'item')} of type {value.held}" if value.held else "nothing"
    kind = kind_of(feature)
    wanted = math.prod(feature.stored_shape)
    if kind.pictured:
        fits, due = value.held == "bytes", "the bytes of an image file"
    elif kind.labels:
        fits, due = value.held is not None, "one class index or class name"
    else:
        fits, due = value.held in ("float", "int"), f"{count(wanted, 'number')}"
    if fits and len(value.items) == wanted:
        return None
    help_ = None
    if kind.numbers and fits and not kind.weighs and value.items:
        help_ = write(f"shape: [{len(value.items)}]", "arguments", "{} reads them as a vector")
    return OpError("PG431", f"{key!r} of the first record holds {holds}, but `{name}` needs {due}", field=field, help=help_)
