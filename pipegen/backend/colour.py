"""Colour matrices and element-wise arithmetic on batches of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import tensorflow as tf

if TYPE_CHECKING:
    from pipegen.ops.base import Arithmetic
    from pipegen.types import Interval

ColourMatrix: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]
"""`A (..., out, in)`, `b (..., out)` and `m (..., out)` of `y = A x + b + m * mean`."""


def identity(n: tf.Tensor, channels: int) -> ColourMatrix:
    """The matrix that changes nothing, for `n` examples, in float64."""
    eye = tf.eye(channels, batch_shape=[n], dtype=tf.float64)
    zero = tf.zeros([n, channels], tf.float64)
    return eye, zero, zero


def apply_colour(
    image: tf.Tensor, matrix: ColourMatrix, clip: Interval | None, *, uses_mean: bool, mixes_channels: bool = True
) -> tf.Tensor:
    """Apply float32 matrices to `(n, height, width, in)` and clip once.

    Args:
        image: The images.
        matrix: One for each of them.
        clip: What the result is clipped to.
        uses_mean: Whether `m` can be other than zero.
        mixes_channels: Whether `A` can be more than its diagonal; if not, a value is read for one output value alone.

    Returns:
        float32 `(n, height, width, out)`.
    """
    a, b, m = matrix
    offset = b + m * mean_luma(image)[:, None] if uses_mean else b
    x = tf.cast(image, tf.float32)
    y = _mixed(x, a, offset) if mixes_channels else x * tf.linalg.diag_part(a)[:, None, None] + offset[:, None, None]
    return y if clip is None else tf.clip_by_value(y, clip.low, clip.high)


def _mixed(x: tf.Tensor, a: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
    """`A x + offset` of float32 `(n, height, width, in)`."""
    sources = [x[..., c] for c in range(x.shape[-1])]
    channels = []
    for o in range(a.shape[-2]):
        total = a[:, o, 0, None, None] * sources[0]
        for c in range(1, len(sources)):
            total = total + a[:, o, c, None, None] * sources[c]
        channels.append(total + offset[:, o, None, None])
    return tf.stack(channels, -1)


def mean_luma(image: tf.Tensor) -> tf.Tensor:
    """The mean luma (0.299 R + 0.587 G + 0.114 B) of each image, float32 `(n,)`.

    Bytes are summed as integers, exactly, and line on line: a sum over whole lines costs XLA a fifth of one over pixels.
    Floats are summed in float64, so that the order of the sum does not show.
    """
    count = tf.cast(tf.shape(image)[1] * tf.shape(image)[2], tf.float64)
    if image.dtype.is_integer:
        height, width, channels = (tf.shape(image)[a] if image.shape[a] is None else image.shape[a] for a in (1, 2, 3))
        columns = tf.reduce_sum(tf.cast(tf.reshape(image, [-1, height, width * channels]), tf.int32), 1)
        sums = tf.reduce_sum(tf.cast(tf.reshape(columns, [-1, width, channels]), tf.float64), 1)
    else:
        sums = tf.reduce_sum(tf.cast(image, tf.float64), [1, 2])
    weights = [1.0] if image.shape[-1] == 1 else [0.299, 0.587, 0.114]
    return tf.cast(tf.reduce_sum(sums * tf.constant(weights, tf.float64), -1) / count, tf.float32)


def pointwise(image: tf.Tensor, arithmetic: Arithmetic) -> tf.Tensor:
    """Element-wise arithmetic on the last axis, computed in float32."""
    dtype = tf.as_dtype(arithmetic.dtype)
    x = tf.gather(image, list(arithmetic.order), axis=-1) if arithmetic.order else image
    plain = all(v == 1 for v in arithmetic.scale) and all(v == 0 for v in arithmetic.offset)
    if plain and (dtype == x.dtype or (dtype.is_floating and x.dtype.is_integer)):
        return tf.cast(x, dtype)
    x = tf.cast(x, tf.float32)
    if not plain:
        x = x * tf.constant(arithmetic.scale, tf.float32) + tf.constant(arithmetic.offset, tf.float32)
    if dtype.is_integer:
        x = tf.clip_by_value(tf.round(x), float(dtype.min), float(dtype.max))
    return tf.cast(x, dtype)
