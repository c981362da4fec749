"""Smooth random fields: noise on a grid, spread by Gaussian weights, exact wherever it is computed.

Noise and weights are whole numbers of at most 11 bits, kept as floats, so that their products sum without rounding in
float32 (and in TF32), in any order: a matrix product then gives the same bits everywhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pipegen.lazy import tf
from pipegen.ops.lowering.filters import gaussian_radius
from pipegen.ops.lowering.products import product
from pipegen.ops.lowering.threefry import half_words

if TYPE_CHECKING:
    from pipegen.ops.lowering.filters import Whole

_WEIGHT = 1 << 11
"""The sum of the weights of one pixel, and the largest value between the two products."""
_NOISE = 1 << 8
UNIT = float(_WEIGHT * _WEIGHT)
"""What stands for 1 in a field."""


def spacing(sigma: float) -> int:
    """Returns how far apart the points of the grid are, in pixels, such that a Gaussian of this sigma hides it."""
    return max(1, int(sigma))


def deviation(sigma: float) -> float:
    """Returns the standard deviation of a field, as a share of what its noise reaches."""
    return spacing(sigma) / (math.sqrt(12.0 * math.pi) * sigma)


def smooth_field(key: tf.Tensor, height: Whole, width: Whole, sigma: float) -> tf.Tensor:
    """Two fields of noise for each example, uniform in [-1, 1] at the points of a grid and averaged with Gaussian weights.

    The noise goes on outside the image, so that a field has the same deviation everywhere.

    Args:
        key: uint32 `(n, 2)`: the fields are a function of it alone.
        height: Of the images, in pixels.
        width: Of the images, in pixels.
        sigma: The standard deviation of the weights, in pixels.

    Returns:
        float32 `(n, 2, height, width)`: whole numbers, `UNIT` standing for 1.
    """
    rows, columns = _points(height, sigma), _points(width, sigma)
    noise = tf.reshape(_noise(key, 2 * rows * columns), [-1, 2, rows, columns])
    down = product(_weights(height, sigma), noise)  # (n, 2, height, columns)
    return product(tf.round(down * (1.0 / _NOISE)), tf.transpose(_weights(width, sigma)))


def _noise(key: tf.Tensor, count: Whole) -> tf.Tensor:
    """Odd numbers from -255 to 255, each as likely: float32 `(n, count)`."""
    bytes_ = tf.bitwise.right_shift(half_words(key, count), tf.constant(8, tf.uint16))
    return tf.cast(2 * tf.cast(bytes_, tf.int32) - 255, tf.float32)


def _points(length: Whole, sigma: float) -> Whole:
    """Points of the grid along a side: from 3 sigma before the image to 3 sigma behind it."""
    step = spacing(sigma)
    return (length - 1 + 2 * _reach(sigma)) // step + 2


def _reach(sigma: float) -> int:
    return gaussian_radius(sigma)


def _weights(length: Whole, sigma: float) -> tf.Tensor:
    """Returns how much each point of the grid counts at each pixel: float32 `(length, points)`, whole numbers that sum to `_WEIGHT`."""
    step, reach = spacing(sigma), _reach(sigma)
    points = _points(length, sigma)
    pixel = tf.cast(tf.range(length), tf.float64)[:, None]
    place = tf.cast(tf.range(points) * step - reach, tf.float64)[None, :]
    bell = tf.exp(-tf.square((pixel - place) / sigma) / 2.0)
    whole = tf.round(bell / tf.reduce_sum(bell, 1, keepdims=True) * float(_WEIGHT))
    nearest = tf.one_hot((tf.range(length) + reach + step // 2) // step, points, dtype=tf.float64)
    return tf.cast(whole + nearest * (float(_WEIGHT) - tf.reduce_sum(whole, 1, keepdims=True)), tf.float32)
