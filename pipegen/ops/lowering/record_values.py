"""From what a record stores of a label to a class index, checked."""

from __future__ import annotations

from pipegen.lazy import tf


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
