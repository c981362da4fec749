"""Keyed permutations of positions: nothing is buffered, and any position can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import tensorflow as tf

from pipegen.backend.index.draws import threefry2x32
from pipegen.backend.process.graphs import compiled, vectors

_ORDER_DOMAIN = 0x6F726472
"""Separates the keys of the order from those of the draws."""


def permuted(position: tf.Tensor, seed: int, cycle: tf.Tensor, window: int, last: tf.Tensor, *, jit: bool = False) -> tf.Tensor:
    """Permutes positions within 0..last, in an order for each `cycle` and `window`: int64 `(n,)`, as are all but `window`."""
    return permute(position, keys(seed, jit=jit)(cycle, tf.zeros_like(cycle) + window), last)


def keys(seed: int, *, jit: bool = False) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns what makes the keys of orders, uint32 `(n, 3)`, from cycles and windows, int64 `(n,)` each; `jit` lets XLA compile it."""
    return partial(_key_function(jit), tf.constant([seed & 0xFFFFFFFF, seed >> 32], tf.uint32))


def permute(position: tf.Tensor, key: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Permutes positions within 0..last by a key; 8 rounds, since 4 are visibly non-random on large sets."""
    return tf.raw_ops.RandomIndexShuffle(index=position, seed=key, max_index=last, rounds=8)


@cache
def _key_function(jit: bool) -> Callable[..., tf.Tensor]:
    return compiled(_order_key, vectors(tf.uint32, tf.int64, tf.int64), jit=jit)


def _order_key(seed: tf.Tensor, cycle: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    """uint32 `(n, 3)` for RandomIndexShuffle, from the two words of the seed.

    On sets up to 65,536 that op reads only the low 8 bits of each word, so hashed words alone would repeat an order
    among a thousand epochs now and then. The low bytes are therefore a bijection of the cycle: 2^24 cycles in a row
    never share a key.
    """
    c = tf.cast(cycle, tf.uint32)
    w = tf.cast(window, tf.uint32)
    a0, a1 = threefry2x32((seed[0], seed[1]), (tf.constant(_ORDER_DOMAIN, tf.uint32), w))
    b0, b1 = threefry2x32((a0, a1), (c, tf.zeros_like(c)))
    b2, _ = threefry2x32((a0, a1), (c, tf.ones_like(c)))
    distinct = _mix24(c + a0, a1)
    keep = tf.constant(0xFFFFFF00, tf.uint32)
    byte = tf.constant(0xFF, tf.uint32)
    words = []
    for bits, shift in ((b0, 0), (b1, 8), (b2, 16)):
        part = tf.bitwise.bitwise_and(tf.bitwise.right_shift(distinct, tf.constant(shift, tf.uint32)), byte)
        words.append(tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, keep), part))
    return tf.stack(words, -1)


def _mix24(x: tf.Tensor, salt: tf.Tensor) -> tf.Tensor:
    """A bijection of the low 24 bits: odd multiplications and shifts by half the width."""
    mask = tf.constant(0xFFFFFF, tf.uint32)
    x = tf.bitwise.bitwise_and(x, mask)
    for factor in (0x9E3779, 0x85EBCB):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(12, tf.uint32)))
        x = tf.bitwise.bitwise_and(x * tf.constant(factor | 1, tf.uint32) + salt, mask)
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(12, tf.uint32)))
