"""From what a record stores of a label to a class index, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import np, tf
from pipegen.ops.kinds.registry import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.stored import Stored

LONGEST = 2**31 - 1
"""Bytes of the longest text."""
_STORED_BLOCK = 65535
"""Bytes of the longest block of a `gzip` file that is stored as it is."""


def class_index(name: str, stored: tf.Tensor, names: tuple[str, ...], offset: int, *, by_name: bool) -> tf.Tensor:
    """Returns the class of a record: an int64 scalar.

    Args:
        name: The feature, for messages.
        stored: A whole number, int64; or a string.
        names: The classes.
        offset: What is subtracted from numbers.
        by_name: Whether a string is the name of a class, rather than a number as text.
    """
    if by_name:
        known = tf.constant(list(names))
        matches = tf.equal(known, stored)
        found = tf.argmax(tf.cast(matches, tf.uint8), output_type=tf.int64)
        there = tf.reduce_any(matches)
        message = tf.strings.join([f"`{name}` is '", stored, "', which is no class"])
    else:
        number = tf.strings.to_number(tf.strings.strip(stored), tf.int64) if stored.dtype == tf.string else stored
        found = number - offset
        there = (found >= 0) & (found < len(names))
        listed = f"the classes are {offset} to {len(names) - 1 + offset}"
        message = tf.strings.join([f"`{name}` is ", tf.strings.as_string(number), f", and {listed}"])
    checked = tf.debugging.Assert(there, [message])
    with tf.control_dependencies([checked] if checked is not None else []):
        return tf.identity(found)


def checked_weight(name: str, value: tf.Tensor) -> tf.Tensor:
    """Returns a weight, after making sure that it is a number of 0 or more."""
    there = value >= 0
    message = tf.strings.join([f"the weight `{name}` is ", tf.strings.as_string(value), ", and weights are 0 or more"])
    checked = tf.debugging.Assert(there, [message])
    with tf.control_dependencies([checked] if checked is not None else []):
        return tf.identity(value)


def from_member(
    name: str,
    feature: RecordFeature,
    stored: Stored,
    content: tf.Tensor,
    check: tf.Tensor | None,
    classes: tuple[str, ...],
    read: Callable[[bytes], bytes] | None = None,
    *,
    whole: bool = False,
) -> tf.Tensor:
    """Returns a feature from the bytes of a member of an archive.

    Args:
        name: The feature, for messages.
        feature: Its arguments.
        stored: How it is stored.
        content: The bytes, a string scalar.
        check: What is to come out, int64; see `Members.checks`. `None` where nothing is known of it.
        classes: The classes of a label.
        read: Takes a feature out of a member that holds several, in Python; `None` for the whole member.
        whole: Whether the checksums of members that are stored as they are count as well.
    """
    kind = kind_of(feature)
    content = member_content(content, check, whole=whole)
    content = content if read is None else _taken(name, content, read)
    if kind.pictured:
        return content
    if kind.labels:
        return class_index(name, tf.strings.strip(content), classes, feature.offset, by_name=stored.by_name)
    as_text = stored.dtype == "text"
    value = tf.strings.to_number(tf.strings.strip(content), tf.float32) if as_text else _numbers(name, stored, content)
    value = tf.reshape(value, feature.stored_shape)
    return checked_weight(name, value) if kind.weighs else value


def _taken(name: str, content: tf.Tensor, read: Callable[[bytes], bytes]) -> tf.Tensor:
    """Returns what Python takes out of a member, such as a field of JSON, which TensorFlow does not read."""

    def take(stored: Any) -> Any:
        try:
            found = read(stored if isinstance(stored, bytes) else stored.item())
        except ValueError as error:
            raise ValueError(f"the member for `{name}`: {error}") from None
        return np.array(found, object)  # bytes by themselves would lose the zeros at their end

    found = tf.numpy_function(take, [content], tf.string, stateful=False)
    return tf.ensure_shape(found, [])


def member_content(content: tf.Tensor, check: tf.Tensor | None, *, whole: bool = False) -> tf.Tensor:
    """Returns the bytes of a member of an archive, inflated where it is compressed; for the arguments see `from_member`."""
    if check is None:
        return content
    plain = (lambda: tf.cond(check < 0, lambda: compared(content, ~check), lambda: content)) if whole else (lambda: content)
    return tf.cond(check > 0, lambda: inflate(content, check), plain)


def from_text(name: str, feature: RecordFeature, content: tf.Tensor, classes: tuple[str, ...], *, by_name: bool) -> tf.Tensor:
    """Returns a feature whose bytes are an image file, or the text of a label; see `class_index`."""
    return class_index(name, content, classes, feature.offset, by_name=by_name) if kind_of(feature).labels else content


def from_raw(name: str, feature: RecordFeature, dtype: str, content: tf.Tensor, classes: tuple[str, ...]) -> tf.Tensor:
    """Returns a label or numbers from their bytes, the least significant first."""
    kind, numbers = kind_of(feature), tf.io.decode_raw(content, tf.as_dtype(dtype))
    if kind.labels:
        return class_index(name, tf.cast(tf.reshape(numbers, []), tf.int64), classes, feature.offset, by_name=False)
    value = tf.reshape(tf.cast(numbers, tf.float32), feature.stored_shape)
    return checked_weight(name, value) if kind.weighs else value


def _numbers(name: str, stored: Stored, content: tf.Tensor) -> tf.Tensor:
    """Returns the numbers of an `.npy` file that has the header of the first record's, as float32."""
    there = tf.equal(tf.strings.substr(content, 0, len(stored.head)), stored.head)
    checked = tf.debugging.Assert(there, [f"`{name}` has another dtype or shape than in the first record"])
    with tf.control_dependencies([checked] if checked is not None else []):
        rest = tf.strings.substr(content, len(stored.head), LONGEST)
    if stored.dtype == "bool":
        return tf.cast(tf.io.decode_raw(rest, tf.uint8) != 0, tf.float32)
    return tf.cast(tf.io.decode_raw(rest, tf.as_dtype(stored.dtype)), tf.float32)


def compared(content: tf.Tensor, check: tf.Tensor) -> tf.Tensor:
    """Returns what a member of a ZIP archive holds that is stored as it is, after its checksum was compared.

    TensorFlow computes no CRC-32, but it unpacks `gzip` files, which have one, and may hold bytes as they are (RFC 1951, 3.2.4).
    """
    size = tf.strings.length(content)
    starts = tf.range(0, tf.maximum(size, 1), _STORED_BLOCK)
    lengths = tf.minimum(size - starts, _STORED_BLOCK)
    last = tf.cast(starts + _STORED_BLOCK >= size, tf.int32)
    heads = [last, lengths % 256, lengths // 256, 255 - lengths % 256, 255 - lengths // 256]
    blocks = [*(_letter(byte) for byte in heads), tf.strings.substr(tf.broadcast_to(content, tf.shape(starts)), starts, lengths)]
    return inflate(tf.strings.reduce_join(tf.strings.join(blocks)), check)


def _letter(byte: tf.Tensor) -> tf.Tensor:
    """Returns numbers from 0 to 255 as strings of one byte."""
    return tf.gather(tf.constant([bytes([i]) for i in range(256)]), byte)


def inflate(content: tf.Tensor, check: tf.Tensor) -> tf.Tensor:
    """Returns what a deflated member of a ZIP archive holds. With a head and a tail it is a `gzip` file, which TensorFlow reads.

    Its checksum and its length are compared (RFC 1952).
    """
    tail = [tf.bitwise.bitwise_and(tf.bitwise.right_shift(check, 8 * i), 255) for i in range(8)]
    whole = tf.strings.join([b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", content, *map(_letter, tail)])
    found = tf.io.decode_compressed(whole, "GZIP")
    # Where the stored bytes end too early, the tail is read as if it were of them.
    there = tf.equal(tf.cast(tf.strings.length(found), tf.int64), tf.bitwise.right_shift(check, 32))
    checked = tf.debugging.Assert(there, ["a member of the archive is damaged"])
    with tf.control_dependencies([checked] if checked is not None else []):
        return tf.identity(found)
