"""Threefry-2x32 with 20 rounds, in integer ops that give the same bits in and out of XLA.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); constants and known-answer
vectors from the authors' Random123 library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.once import call

Word: TypeAlias = "tf.Tensor"
"""A uint32 tensor."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tuple[Word, Word]:
    """Encrypt a counter: two uint32 words of random bits for each pair of key and counter words (broadcast together)."""
    shape = tf.TensorShape([])
    for word in (*key, *counter):
        shape = tf.broadcast_static_shape(shape, word.shape)
    x0, x1 = call(_cipher(), *key, *counter)
    for word in (x0, x1) if not tf.executing_eagerly() else ():
        word.set_shape(shape)
    return x0, x1


@cache
def _cipher() -> Callable[..., tuple[Word, Word]]:
    """The rounds as a function for words of any shape: they are more than a hundred operations, which are traced once a process."""
    return tf.function(_rounds, autograph=False, input_signature=[tf.TensorSpec(None, tf.uint32)] * 4)


def _rounds(key0: Word, key1: Word, counter0: Word, counter1: Word) -> tuple[Word, Word]:
    key, counter = (key0, key1), (counter0, counter1)
    schedule = (*key, tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(key[0], key[1]), tf.constant(_PARITY, tf.uint32)))
    # A constant is a node of the graph each time that it is written.
    amounts = {bits: tf.constant(bits, tf.uint32) for half in _ROTATIONS for one in half for bits in (one, 32 - one)}
    x0, x1 = counter[0] + schedule[0], counter[1] + schedule[1]
    for block in range(5):
        for bits in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = tf.bitwise.bitwise_xor(_rotated(x1, amounts[bits], amounts[32 - bits]), x0)
        x0 = x0 + schedule[(block + 1) % 3]
        x1 = x1 + schedule[(block + 2) % 3] + tf.constant(block + 1, tf.uint32)
    return x0, x1


def key_of(u: tf.Tensor) -> tf.Tensor:
    """A key for each example, uint32 `(n, 2)`, from two draws: float64 `(n, 2)`, uniform in [0, 1)."""
    return tf.cast(tf.cast(tf.floor(u * 4294967296.0), tf.int64), tf.uint32)


def half_words(key: tf.Tensor, count: int | tf.Tensor) -> tf.Tensor:
    """Random bits by number: uint16 `(n, count)`, where number `i` of an example is a function of its key and `i` alone.

    Args:
        key: uint32 `(n, 2)`.
        count: How many numbers for each example.
    """
    pairs = (count + 1) // 2
    number = tf.cast(tf.range(pairs), tf.uint32)[None, :]
    # The second word of each pair would cost as much as another counter: XLA computes both results apart.
    words, _ = threefry2x32((key[:, :1], key[:, 1:]), (number, tf.zeros_like(number)))
    return tf.reshape(tf.bitcast(words, tf.uint16), [-1, 2 * pairs])[:, :count]


def _rotated(x: Word, left: Word, right: Word) -> Word:
    """The bits of a word moved to the left, by a number of them that adds up to 32 with `right`, and round."""
    return tf.bitwise.bitwise_or(tf.bitwise.left_shift(x, left), tf.bitwise.right_shift(x, right))
