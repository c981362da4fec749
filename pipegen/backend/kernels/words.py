"""Unaligned reads of 64-bit words: eight bytes with one look-up.

XLA on a CPU computes the index of every gathered value anew, so fewer and wider values make a gather fast.
"""

from __future__ import annotations

import tensorflow as tf

BYTES = 8
"""Bytes of a word."""


def as_words(values: tf.Tensor) -> tf.Tensor:
    """Casts bytes to little-endian words: uint8 `(...)` to uint64 `(m,)`; the last word is padded with zeros.

    Outside XLA nothing is copied if the bytes fill whole words.
    """
    flat = tf.reshape(values, [-1])
    if values.shape.num_elements() is None or values.shape.num_elements() % BYTES:
        flat = tf.pad(flat, [[0, -tf.size(flat) % BYTES]])
    return tf.bitcast(tf.reshape(flat, [-1, BYTES]), tf.uint64)


def read_words(words: tf.Tensor, start: tf.Tensor, behind: tf.Tensor) -> tf.Tensor:
    """Reads eight bytes at any offset as a word; bytes after the last word are undefined.

    Args:
        words: uint64 `(m,)`.
        start: Byte offsets, int64 `(n, 1)`.
        behind: Byte offsets from those, int32 `(n, k)`.

    Returns:
        uint64 `(n, k)`.
    """
    at = tf.cast(tf.bitwise.bitwise_and(start, _wide(BYTES - 1)), tf.int32) + behind
    index = tf.bitwise.right_shift(start, _wide(3)) + tf.cast(tf.bitwise.right_shift(at, 3), tf.int64)
    shift = tf.cast(tf.bitwise.bitwise_and(at, BYTES - 1) * 8, tf.uint64)
    last = tf.shape(words, tf.int64)[0] - 1
    low, high = (tf.gather(words, tf.minimum(i, last)) for i in (index, index + 1))
    # Two shifts: an aligned word would need one by 64 bits, which is undefined.
    one, most = tf.constant(1, tf.uint64), tf.constant(63, tf.uint64)
    above = tf.bitwise.left_shift(tf.bitwise.left_shift(high, one), most - shift)
    return tf.bitwise.bitwise_or(tf.bitwise.right_shift(low, shift), above)


def _wide(value: int) -> tf.Tensor:
    return tf.constant(value, tf.int64)


def planes(word: tf.Tensor, count: int) -> tf.Tensor:
    """Splits the first bytes of words into planes: uint64 `(n, k)` to uint8 `(n, count, k)`."""
    shifts = tf.range(count, dtype=tf.int32) * 8
    shifted = tf.bitwise.right_shift(word[:, None], tf.cast(shifts, tf.uint64)[:, None])
    return tf.cast(tf.bitwise.bitwise_and(shifted, tf.constant(255, tf.uint64)), tf.uint8)
