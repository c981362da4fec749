"""Floats that a later step rounds to whole numbers: computed in float64 out of float32 values, and rounded to float32 once.

A compiler may join a product and a sum, which rounds once where two operations round twice. Products of float32 values are exact as
float64, so that it makes no difference there; sums in a fixed order then have the same bits everywhere.
"""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.lowering.target import target

_DROPPED = 29
"""How many bits of a float64 a float32 does not have."""


def working(images: tf.Tensor) -> tf.DType:
    """Returns what the floats of a step are computed in: float64 where the images are, else float32."""
    return tf.float64 if images.dtype == tf.float64 else tf.float32


def nearest_float32(values: tf.Tensor) -> tf.Tensor:
    """Rounds float64 values to the nearest that float32 can hold, half to even; they stay float64, and others stay as they are.

    It is done on the bits, as integers: XLA leaves out a cast to float32 and back (TensorFlow 2.16 does). Other runtimes, whose rounding is
    their own in any case, are spared it.
    """
    if values.dtype != tf.float64 or target() == "converter":
        return values
    bits = tf.bitcast(values, tf.int64)
    odd = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, tf.constant(_DROPPED, tf.int64)), tf.constant(1, tf.int64))
    rounded = bits + odd + tf.constant((1 << (_DROPPED - 1)) - 1, tf.int64)
    return tf.bitcast(tf.bitwise.bitwise_and(rounded, tf.constant(-(1 << _DROPPED), tf.int64)), tf.float64)


def as_float32(values: tf.Tensor) -> tf.Tensor:
    """Returns float32 of float64 values, each rounded to the nearest, half to even; others stay as they are."""
    return tf.cast(nearest_float32(values), tf.float32) if values.dtype == tf.float64 else values
