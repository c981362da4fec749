"""Separable Gaussian filters on batches of images: weights for each example, a reflected border, exact integers for bytes.

XLA on a CPU computes what is read more than once again for each reader, so the filter is three functions, each of which
reads what the one before has finished: `widen`, `filter_rows`, `filter_columns`. They work on lines, `(n, height,
width · channels)`: a loop over three channels, the innermost ones of an image, is several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.floats import nearest_float32, working

Whole: TypeAlias = "int | tf.Tensor"

BITS = 14
"""The weights of bytes are integers whose sum is 2 to this power; between the two passes, a byte has 8 more bits."""


def gaussian_radius(sigma: float) -> int:
    """Returns how far a Gaussian reaches, in pixels: 3 sigma, rounded, and at least 1. What lies farther weighs 0.3% together."""
    return max(1, int(3.0 * sigma + 0.5))


def gaussian_weights(sigma: tf.Tensor, radius: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The weights of the pixels at distances 0 to `radius`; those at a distance above 0 count twice in their sum.

    Args:
        sigma: float64 `(n,)`: the standard deviation, in pixels; 0 leaves an image as it is.
        radius: The largest distance.

    Returns:
        int32 `(n, radius + 1)` that sum to exactly 2 to the power of `BITS`, and float32 that sum to 1.
    """
    distance = tf.range(radius + 1, dtype=tf.float64)
    # A sigma so small that all the weight is in the middle stands for 0.
    bell = tf.exp(-tf.square(distance / tf.maximum(sigma, 1e-3)[:, None]) / 2.0)
    real = bell / (2.0 * tf.reduce_sum(bell, -1, keepdims=True) - bell[:, :1])
    sides = tf.cast(tf.round(real[:, 1:] * float(1 << BITS)), tf.int32)
    middle = (1 << BITS) - 2 * tf.reduce_sum(sides, -1, keepdims=True)
    return tf.concat([middle, sides], -1), tf.cast(real, tf.float32)


def widen(images: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Gives images `(n, height, width, channels)` as lines, with as many more pixels at the left and at the right as the weights
    reach, reflected; and the weights."""
    radius = int(real.shape[-1]) - 1
    height, width, channels = sides(images)
    lines = tf.reshape(images, [-1, height, width * channels])

    def beyond(first: Whole) -> tf.Tensor:
        columns = reflect(tf.range(radius) + first, width)[:, None] * channels + tf.range(channels)
        return tf.gather(lines, tf.reshape(columns, [-1]), axis=2)

    return tf.concat([beyond(-radius), lines, beyond(width)], 2), whole, real


def filter_rows(images: tf.Tensor, wide: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Sum each value with those above and below, weighted.

    Args:
        images: `(n, height, width, channels)`, uint8 or floats.
        wide: From `widen`.
        whole: int32 `(n, radius + 1)`, the weights for bytes.
        real: float32, the weights for floats.

    Returns:
        As many lines, uint16 in 1/256 of a level for bytes, else floats; and the weights.
    """
    radius = int(real.shape[-1]) - 1
    height, _, _ = sides(images)

    def line(offset: int) -> tf.Tensor:
        return tf.gather(wide, _reflected(offset, height), axis=1)

    if not images.dtype.is_integer:
        return nearest_float32(_weighted(line, tf.cast(real, working(images)), radius)), whole, real
    shift = BITS - 8
    total = _weighted(line, whole, radius) + (1 << (shift - 1))
    return tf.cast(tf.bitwise.right_shift(total, shift), tf.uint16), whole, real


def filter_columns(images: tf.Tensor, wide: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Sums each value with those to the left and to the right, weighted, from what `filter_rows` gives.

    Returns:
        Lines `(n, height, width · channels)` of the images' dtype; bytes round half to even.
    """
    radius = int(real.shape[-1]) - 1
    _, width, channels = sides(images)

    def column(offset: int) -> tf.Tensor:
        start = (radius + offset) * channels
        return wide[:, :, start : start + width * channels]

    if not images.dtype.is_integer:
        return (tf.cast(_weighted(column, tf.cast(real, working(images)), radius), images.dtype),)
    return (tf.cast(rounded_shift(_weighted(column, whole, radius), BITS + 8), images.dtype),)


def beside(phase: Callable[..., tuple[tf.Tensor, ...]]) -> Callable[..., tuple[tf.Tensor, ...]]:
    """Returns the same function of images and parameters, which takes one more before them and hands it on as it is."""

    def carrying(images: tf.Tensor, first: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return first, *phase(images, *given)

    return carrying


def rounded_shift(x: tf.Tensor, bits: int) -> tf.Tensor:
    """int32 divided by 2 to the power of `bits`, rounded half to even."""
    odd = tf.bitwise.bitwise_and(tf.bitwise.right_shift(x, bits), 1)
    return tf.bitwise.right_shift(x + ((1 << (bits - 1)) - 1) + odd, bits)


def _weighted(at: object, weights: tf.Tensor, radius: int) -> tf.Tensor:
    """The sum of what `at` gives at offsets of up to `radius` lines; equal weights are multiplied once, unless that would not be exact."""

    def read(offset: int) -> tf.Tensor:
        return tf.cast(at(offset), weights.dtype)  # type: ignore[operator]

    middle, *others = tf.unstack(tf.reshape(weights, [-1, radius + 1, 1, 1]), axis=1)
    total = read(0) * middle
    for d, weight in enumerate(others, 1):
        pair = read(-d) * weight + read(d) * weight if weights.dtype == tf.float64 else (read(-d) + read(d)) * weight
        total = total + pair
    return total


def sides(images: tf.Tensor) -> tuple[Whole, Whole, int]:
    """Height, width and channels; a tensor where a side is not known before."""
    shape = tf.shape(images)
    height, width = (images.shape[a] if images.shape[a] is not None else shape[a] for a in (1, 2))
    return height, width, int(images.shape[3])


def _reflected(offset: int, length: Whole) -> tf.Tensor:
    """Returns which line stands `offset` lines behind each one, int32 `(length,)`: a constant where the length is known."""
    if isinstance(length, int):
        lines = [(i + offset) % (2 * length) for i in range(length)]
        return tf.constant([min(i, 2 * length - 1 - i) for i in lines], tf.int32)
    return reflect(tf.range(length) + offset, length)


def reflect(i: tf.Tensor, length: Whole) -> tf.Tensor:
    """The line inside 0..length-1 that a line stands for (abc|cba, the edge repeated)."""
    i = tf.math.floormod(i, 2 * length)
    return tf.minimum(i, 2 * length - 1 - i)
