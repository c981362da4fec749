"""Conversion of stored values of records, with checks: labels, numbers, members of archives, fields of `tf.Example`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipegen.lazy import np, tf
from pipegen.ops.kinds.base import ExampleClass, LossWeight, Numbers, kind_of
from pipegen.ops.lowering.graphs import asserted
from pipegen.ops.lowering.python_calls import numpy_function
from pipegen.ops.lowering.stored_readers import each_record

if TYPE_CHECKING:
    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.listing.reader import Read, Together
    from pipegen.ops.sources.records.columns import Lookup
    from pipegen.ops.sources.records.source import RecordFeature
    from pipegen.ops.sources.stores.field_types import FieldType


LONGEST = 2**31 - 1  # bytes of the longest string
_STORED_BLOCK = 65535  # bytes of the longest uncompressed block of a `gzip` file


_BLANKS = r"^[\pZ\t-\r\x1c-\x1f\x{85}]+|[\pZ\t-\r\x1c-\x1f\x{85}]+$"  # the characters that Python's `strip` removes
_WHOLE = r"^(-?(?:0|[1-9][0-9]{0,17}))(?:\.0+)?$"


def class_index(name: str, stored: tf.Tensor, lookup: Lookup) -> tf.Tensor:
    """Looks up the class index, an int64 scalar, of a stored label, a number or a string. A value that is not in `lookup` is an error,
    whose message names the feature."""
    if lookup.by_text is not None:
        text = _text(stored)
        known = tf.constant(list(lookup.by_text))
        exact, without = tf.equal(known, text), tf.equal(known, tf.strings.regex_replace(text, _WHOLE, r"\1"))
        matches = tf.where(tf.reduce_any(exact), exact, without)
        found = tf.gather(tf.constant(list(lookup.by_text.values()), tf.int64), tf.argmax(tf.cast(matches, tf.uint8)))
        there = tf.reduce_any(matches)
        message = tf.strings.join([f"`{name}` is '", text, "', which is not a class"])
    else:
        text, whole = _text(stored), tf.constant(True)
        if stored.dtype == tf.string:
            whole = tf.strings.regex_full_match(text, _WHOLE)
            digits = tf.strings.regex_replace(text, r"\.0+$", "")
            number = tf.strings.to_number(tf.where(whole, digits, "0"), tf.int64)
        else:
            number = tf.cast(stored, tf.int64)
            if stored.dtype.is_floating:
                whole = tf.equal(tf.cast(number, stored.dtype), stored)
        found = number - lookup.offset
        there = whole & (found >= 0) & (found < lookup.size)
        if lookup.table is not None:
            found = tf.gather(tf.constant(lookup.table), tf.where(there, found, 0))
        listed = f", and the classes are the whole numbers {lookup.offset} to {lookup.size - 1 + lookup.offset}"
        message = tf.strings.join([f"`{name}` is ", text, listed])
    return asserted(found, there, message)


def _text(stored: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(stored, _BLANKS, "") if stored.dtype == tf.string else tf.strings.as_string(stored)


_DIGITS = r"^([+-]?[0-9]+)(?:\.0*)?$"
_ROUNDED = frozenset({"int32", "uint32", "int64", "uint64"})  # integer dtypes with values that float32 cannot hold


def number(name: str, feature: RecordFeature, value: tf.Tensor) -> tf.Tensor:
    """Converts stored numbers to those of a tensor or a weight, float32 or int64; an integer that would change is an error."""
    weighs, stored = kind_of(feature).has(LossWeight), value.dtype
    if feature.dtype == "int64":
        found = tf.cast(value, tf.int64)
        unsigned = found >= 0 if stored == tf.uint64 else None
        kept = tf.equal(tf.cast(found, stored), value) if stored.is_floating else unsigned
        said = f", which is not a whole number of 64 bits, and `{name}` is `dtype: int64`"
    else:
        found, kept = tf.cast(value, tf.float32), None
        if feature.dtype is None and not weighs and stored.name in _ROUNDED:
            kept = tf.equal(tf.cast(found, stored), value) & (found < float(stored.max))
        said = ", which float32 would round: `dtype: int64` keeps whole numbers as they are"
    if weighs:
        message = tf.strings.join([f"the weight `{name}` is ", tf.strings.as_string(found), ", and weights are 0 or more"])
        return asserted(found, found >= 0, message)
    return found if kept is None else _kept(name, found, kept, value, said)


def _kept(name: str, found: tf.Tensor, kept: tf.Tensor, value: tf.Tensor, said: str) -> tf.Tensor:
    """Checks that each number equals the stored one."""
    first = tf.argmin(tf.cast(tf.reshape(kept, [-1]), tf.uint8))
    message = tf.strings.join([f"`{name}` holds ", tf.strings.as_string(tf.reshape(value, [-1])[first]), said])
    return asserted(found, tf.reduce_all(kept), message)


def _from_text(name: str, feature: RecordFeature, content: tf.Tensor) -> tf.Tensor:
    """Parses a number: int64 if integers must stay exact, else float32."""
    text = tf.strings.strip(content)
    if feature.dtype == "float32" or kind_of(feature).has(LossWeight):
        return tf.strings.to_number(text, tf.float32)
    whole = tf.strings.regex_full_match(text, _DIGITS)
    digits = tf.where(whole, tf.strings.regex_replace(text, _DIGITS, r"\1"), "0")
    exact = tf.strings.to_number(tf.strings.regex_replace(digits, r"^\+", ""), tf.int64)
    if feature.dtype == "int64":
        return asserted(exact, whole, tf.strings.join([f"`{name}` is '", text, "', which is not a whole number of 64 bits"]))
    found = tf.strings.to_number(text, tf.float32)
    same = ~whole | (tf.equal(tf.cast(found, tf.int64), exact) & (found < float(tf.int64.max)))
    said = ", which float32 would round: `dtype: int64` keeps whole numbers as they are"
    return _kept(name, found, same, exact, said)


def from_member(
    name: str,
    feature: RecordFeature,
    held: FieldType,
    content: tf.Tensor,
    check: tf.Tensor | None,
    lookup: Lookup | None,
    *,
    whole: bool = False,
) -> tf.Tensor:
    """Converts the bytes of a stored value, such as a member of an archive, a string scalar, to a feature.

    `check` is the checksum and the size of the content, int64 as from `Members.checks`, `None` if unknown; with `whole`, checksums of
    uncompressed members are compared, too. `lookup` has the classes of a label.
    """
    content = member_content(content, check, whole=whole)
    content = _field(name, content, held) if held.path else content
    if kind_of(feature).has_files:
        return content
    value = _numbers(name, held, content) if held.numeric and (lookup is None or not held.head) else content
    if lookup is not None:
        return class_index(name, tf.reshape(value, []) if held.numeric else value, lookup)
    return number(name, feature, tf.reshape(value if held.numeric else _from_text(name, feature, content), feature.stored_shape))


def _field(name: str, content: tf.Tensor, held: FieldType) -> tf.Tensor:
    """Reads a field of JSON in Python, since TensorFlow cannot."""

    def take(stored: Any) -> Any:
        try:
            found = held.member(stored if isinstance(stored, bytes) else stored.item())
        except ValueError as error:
            raise ValueError(f"the member for `{name}`: {error}") from None
        return np.array(found, object)  # plain bytes would lose trailing zeros

    return tf.ensure_shape(numpy_function(take, [content], tf.string, stateful=False), [])


def member_content(content: tf.Tensor, check: tf.Tensor | None, *, whole: bool = False) -> tf.Tensor:
    """Inflates a member of an archive if it is compressed; for the arguments see `from_member`."""
    if check is None:
        return content
    plain = (lambda: tf.cond(check < 0, lambda: compared(content, ~check), lambda: content)) if whole else (lambda: content)
    return tf.cond(check > 0, lambda: inflate(content, check), plain)


def _numbers(name: str, stored: FieldType, content: tf.Tensor) -> tf.Tensor:
    """Reads little-endian numbers, of an `.npy` file with the same header as in the first record."""
    if not stored.head:
        return tf.io.decode_raw(content, tf.as_dtype(stored.dtype))
    there = tf.equal(tf.strings.substr(content, 0, len(stored.head)), stored.head)
    rest = tf.strings.substr(content, len(stored.head), LONGEST)
    rest = asserted(rest, there, f"`{name}` has another dtype or shape than in the first record")
    if stored.dtype == "bool":
        return tf.cast(tf.io.decode_raw(rest, tf.uint8) != 0, tf.uint8)
    return tf.io.decode_raw(rest, tf.as_dtype(stored.dtype))


def compared(content: tf.Tensor, check: tf.Tensor) -> tf.Tensor:
    """Compares the checksum of an uncompressed member of a ZIP archive; returns its content. TensorFlow has no CRC-32, but it reads `gzip`
    files, which have one, and may hold uncompressed blocks (RFC 1951, 3.2.4)."""
    size = tf.strings.length(content)
    starts = tf.range(0, tf.maximum(size, 1), _STORED_BLOCK)
    lengths = tf.minimum(size - starts, _STORED_BLOCK)
    last = tf.cast(starts + _STORED_BLOCK >= size, tf.int32)
    heads = [last, lengths % 256, lengths // 256, 255 - lengths % 256, 255 - lengths // 256]
    blocks = [*(_letter(byte) for byte in heads), tf.strings.substr(tf.broadcast_to(content, tf.shape(starts)), starts, lengths)]
    return inflate(tf.strings.reduce_join(tf.strings.join(blocks)), check)


def _letter(byte: tf.Tensor) -> tf.Tensor:
    """Converts numbers from 0 to 255 to strings of one byte."""
    return tf.gather(tf.constant([bytes([i]) for i in range(256)]), byte)


def inflate(content: tf.Tensor, check: tf.Tensor) -> tf.Tensor:
    """Inflates a member of a ZIP archive: with a head and a tail it is a `gzip` file, which TensorFlow reads. Checksum and length are
    compared (RFC 1952)."""
    tail = [tf.bitwise.bitwise_and(tf.bitwise.right_shift(check, 8 * i), 255) for i in range(8)]
    whole = tf.strings.join([b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", content, *map(_letter, tail)])
    found = tf.io.decode_compressed(whole, "GZIP")
    # If the content is cut short, the tail is read as a part of it.
    there = tf.equal(tf.cast(tf.strings.length(found), tf.int64), tf.bitwise.right_shift(check, 32))
    return asserted(found, there, "a member of the archive is damaged")


def parse_example(
    record: tf.Tensor, features: Mapping[str, RecordFeature], types: Mapping[str, FieldType], classes: Mapping[str, Lookup]
) -> dict[str, tf.Tensor]:
    """Parses features of one record, a string scalar: encoded ones as string scalars, labels as int64 class indices by the classes of each,
    others as float32 or int64 of their shapes."""
    asked, keys = {}, {}
    for name, feature in features.items():
        held, keys[name] = types[name], feature.key or name
        keys[name] = keys[name].removesuffix("".join(f".{part}" for part in held.path))
        numbers = (feature.stored_shape, tf.as_dtype(held.dtype)) if held.numeric and not held.path else None
        one = tf.io.FixedLenFeature(*(numbers or ((), tf.string)))
        every = tf.io.FixedLenSequenceFeature((), tf.as_dtype(held.samples), allow_missing=True) if held.samples else None
        asked[keys[name]] = every or one
    found = tf.io.parse_single_example(record, asked)
    values = {}
    for name, feature in features.items():
        value, held, kind = found[keys[name]], types[name], kind_of(feature)
        if held.path:
            value = from_member(name, feature, held, value, None, classes.get(name))
        elif held.samples and kind.samples is not None:
            value = kind.samples.pack_list(name, value, feature)
        elif kind.has(ExampleClass):
            value = class_index(name, value, classes[name])
        elif kind.has(Numbers):
            value = number(name, feature, value)
        values[name] = value
    return values


def renumbered(values: Any, table: Ints) -> Any:
    """Looks class indices, a tensor or a list of them, up in an int64 table."""
    if isinstance(values, list):
        return [tf.gather(tf.constant(table), value) for value in values]
    return tf.gather(tf.constant(table), values)


def same_for_all(value: Any) -> Read:
    """Makes a reader that returns one array for every record: `shape` from scalar places, `(n, *shape)` from `(n,)`."""

    def read(*place: tf.Tensor) -> tf.Tensor:
        held = tf.constant(value)
        found = tf.broadcast_to(held, tf.concat([tf.shape(place[0]), tf.shape(held)], 0))
        found.set_shape([*place[0].shape, *value.shape])
        return found

    return read


def parsed(messages: Together, parse: Callable[[Sequence[str], Any], dict[str, Any]]) -> Together:
    """Makes a reader of several features of records that are one message each: `messages` reads these under the name `""`, and `parse`
    makes features, given their names, of one message, a string scalar."""

    def read(names: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> dict[str, Any]:
        found = messages(("",), shard, row)[""]
        return each_record(names, lambda place: parse(names, place[0]), (found,), lambda: parse(names, tf.constant("")))

    return read
