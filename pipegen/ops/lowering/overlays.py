"""Lays one colour over images of bytes, by a share for each pixel, in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pipegen.lazy import tf
from pipegen.ops.lowering.displacements import UNIT, deviation, smooth_field
from pipegen.ops.lowering.filters import Whole, rounded_shift

BITS = 12
ONE = 1 << BITS
"""What stands for a share of 1."""


def over(images: tf.Tensor, share: tf.Tensor, colour: Sequence[int]) -> tf.Tensor:
    """Blends a colour into images: y = x + share · (colour - x), rounded half to even.

    Args:
        images: int32 `(n, height, width, channels)`, from 0 to 255.
        share: int32 `(n, height, width)`, from 0 to `ONE`.
        colour: Red, green and blue; images of another number of channels get the mean of them.
    """
    channels = int(images.shape[-1])
    levels = colour if channels == len(colour) else [sum(colour) // len(colour)] * channels
    towards = (tf.constant(levels, tf.int32) - images) * share[..., None]
    return images + rounded_shift(towards, BITS)


def shares(values: tf.Tensor) -> tf.Tensor:
    """Rounds shares from float64 to the whole numbers that `over` takes."""
    return tf.cast(tf.round(tf.clip_by_value(values, 0.0, 1.0) * float(ONE)), tf.int32)


def squares(length: Whole, centre: tf.Tensor, radius: tf.Tensor) -> tf.Tensor:
    """Squares of the distances of rows or columns from centres, the radius being 1: int32 `(..., length)` in 1/`ONE`, at most 2.

    Args:
        length: The number of rows, or of columns.
        centre: float64 `(...)`, in pixels.
        radius: float64 `(...)`, in pixels.
    """
    away = (tf.range(tf.cast(length, tf.float64), dtype=tf.float64) - centre[..., None]) / tf.maximum(radius, 1.0)[..., None]
    return tf.cast(tf.round(tf.minimum(tf.square(away), 2.0) * float(ONE)), tf.int32)


def clouds(key: tf.Tensor, height: Whole, width: Whole, sigma: float) -> tf.Tensor:
    """Smooth noise of about normal distribution, of mean 0 and deviation 1: int32 `(n, height, width)` in 1/`ONE`, the same everywhere."""
    field = smooth_field(key, height, width, sigma)
    total = field[:, 0] + field[:, 1]  # whole numbers below 2^24, so that the sum is exact
    return tf.cast(tf.round(total * (ONE / (UNIT * deviation(sigma) * 2.0**0.5))), tf.int32)


def plasma(key: tf.Tensor, height: Whole, width: Whole, sigma: float) -> tf.Tensor:
    """Noise of three sizes, the smaller ones weaker, clipped at two of its deviations: int32 `(n, height, width)` in 1/`ONE`, from -1 to 1.

    Args:
        key: uint32 `(n, 2)`: the noise is a function of it alone.
        height: Of the images, in pixels.
        width: Of the images, in pixels.
        sigma: The width of the largest, in pixels, at least 4.
    """
    total = tf.constant(0)
    for octave, weight in enumerate((4, 2, 1)):
        own = tf.bitwise.bitwise_xor(key, tf.constant([0, octave], tf.uint32))
        total += clouds(own, height, width, sigma / (1 << octave)) * weight
    return tf.clip_by_value(total * 100 // 917, -ONE, ONE)  # of 2 deviations: 2 · sqrt(4² + 2² + 1²) = 9.17
