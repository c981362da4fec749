"""Uniform numbers from Threefry-2x32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.ops.lowering.random import threefry2x32 as threefry2x32

if TYPE_CHECKING:
    from pipegen.ops.lowering.random import Word


def uniform(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tf.Tensor:
    """float64 in [0, 1) with 53 random bits, one for each pair of key and counter words."""
    x0, x1 = threefry2x32(key, counter)
    high = tf.cast(tf.bitwise.right_shift(x0, tf.constant(5, tf.uint32)), tf.float64)
    low = tf.cast(tf.bitwise.right_shift(x1, tf.constant(6, tf.uint32)), tf.float64)
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)
