"""Sharpness as Pillow defines it."""

from __future__ import annotations

from collections.abc import Callable

from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.linear import nearest_float32, working
from pipegen.ops.step_bases import AmountTransform

LARGEST = 20.0
"""The largest factor; with it, sums of bytes still fit 32 bits."""
_BITS = 18


class SharpenTransform(NeighbourhoodTransform):
    """Blends an image with its smoothed self: y = s + factor · (x - s).

    `s` is the mean of each 3 by 3 pixels with five times the weight in the middle, and `x` itself at the border.
    """

    overshoots = True
    symmetric = True
    cost = 0.5

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return _pad, _sharpen


class SharpnessTransform(AmountTransform, SharpenTransform):
    """Sharpness by a factor."""

    factors = frozenset({"factor"})

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return gains(self.amounts(u)["factor"])


def gains(factor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The multiple of 13 (s - x) that is added to x, from float64 factors `(n,)`: int32 in 1/2^18 for bytes, and float32."""
    gain = (1.0 - factor) / 13.0  # the sum of the weights of Pillow's `SMOOTH`: 5 in the middle, 1 for each of the 8 neighbours
    return tf.cast(tf.round(gain * float(1 << _BITS)), tf.int32), tf.cast(gain, tf.float32)


def _pad(images: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The images as lines of values, with a row and a pixel of zeros before and after: neighbours are then slices, correct except at the
    border."""
    height, width, channels = sides(images)
    margin = (width + 1) * channels
    flat = tf.reshape(images, [-1, height * width * channels])
    zeros = tf.zeros([tf.shape(flat)[0] if flat.shape[0] is None else flat.shape[0], margin], images.dtype)
    return tf.concat([zeros, flat, zeros], 1), whole, real


def _inside(length: int | tf.Tensor, repeat: int) -> tf.Tensor:
    """Marks all but the first and the last of `length` lines, of `repeat` values each."""
    i = tf.range(length * repeat)
    return tf.logical_and(i >= repeat, i < (length - 1) * repeat)


def _sharpen(images: tf.Tensor, padded: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The blend y = s + factor · (x - s), as lines `(n, height, width · channels)`."""
    height, width, channels = sides(images)
    row, size = width * channels, height * width * channels
    margin = row + channels
    dtype = tf.int32 if images.dtype.is_integer else working(images)

    def read(values: tf.Tensor, start: int | tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.reshape(values[:, start : start + size], [-1, height, row]), dtype)

    offsets = [dy * row + dx * channels for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    x = read(padded, margin)
    total = read(padded, margin + offsets[0])
    for offset in offsets[1:]:
        total = total + read(padded, margin + offset)
    inside = tf.logical_and(_inside(height, 1)[:, None], _inside(width, channels)[None, :])
    rougher = tf.where(inside, total - 8 * x, tf.zeros_like(x))  # 13 (s - x)
    if images.dtype.is_integer:
        total = tf.bitwise.left_shift(x, _BITS) + rougher * whole[:, None, None]
        y = tf.clip_by_value(rounded_shift(total, _BITS), 0, 255)
    else:
        y = x + nearest_float32(rougher) * tf.cast(real, dtype)[:, None, None]
    return (tf.cast(y, images.dtype),)
