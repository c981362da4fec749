"""Threefry-2x32 with 20 rounds, in integer ops that give the same bits in and out of XLA.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); constants and known-answer
vectors from the authors' Random123 library.
"""

from __future__ import annotations

from typing import TypeAlias

import tensorflow as tf

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA

Word: TypeAlias = tf.Tensor
"""A uint32 tensor."""


def _rotate_left(x: Word, bits: int) -> Word:
    left = tf.bitwise.left_shift(x, tf.constant(bits, tf.uint32))
    return tf.bitwise.bitwise_or(left, tf.bitwise.right_shift(x, tf.constant(32 - bits, tf.uint32)))


def threefry2x32(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tuple[Word, Word]:
    """Encrypt a counter: two uint32 words of random bits for each pair of key and counter words (broadcast together)."""
    schedule = (*key, tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(key[0], key[1]), tf.constant(_PARITY, tf.uint32)))
    x0, x1 = counter[0] + schedule[0], counter[1] + schedule[1]
    for block in range(5):
        for bits in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = tf.bitwise.bitwise_xor(_rotate_left(x1, bits), x0)
        x0 = x0 + schedule[(block + 1) % 3]
        x1 = x1 + schedule[(block + 2) % 3] + tf.constant(block + 1, tf.uint32)
    return x0, x1


def uniform(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tf.Tensor:
    """float64 in [0, 1) with 53 random bits, one for each pair of key and counter words."""
    x0, x1 = threefry2x32(key, counter)
    high = tf.cast(tf.bitwise.right_shift(x0, tf.constant(5, tf.uint32)), tf.float64)
    low = tf.cast(tf.bitwise.right_shift(x1, tf.constant(6, tf.uint32)), tf.float64)
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)
