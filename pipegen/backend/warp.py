"""Resampling through a 3x3 matrix, in fixed point.

Positions are 16.16 fixed-point integers and the four weights have 8 bits, so the result is the same bits with and
without XLA, at every batch size and on every TensorFlow; and it is faster than floats.
"""

from __future__ import annotations

import tensorflow as tf

ONE = 1 << 16
"""1.0 in 16.16 fixed point."""


def fixed_matrix(matrix: tf.Tensor, interpolation: str) -> tf.Tensor:
    """The first two rows of output-to-input matrices in fixed point, with the rounding of the read position folded in.

    Args:
        matrix: float64 `(n, 3, 3)`, affine.
        interpolation: `bilinear` rounds positions to 1/256 pixel, `nearest` to whole pixels.

    Returns:
        int64 `(n, 6)`: x by x, x by y, x offset, y by x, y by y, y offset.
    """
    rows = tf.reshape(matrix[:, :2, :], [-1, 6])
    limit = tf.constant(float(1 << 40), tf.float64)
    fixed = tf.cast(tf.round(tf.clip_by_value(rows * float(ONE), -limit, limit)), tf.int64)
    half = 1 << 7 if interpolation == "bilinear" else 1 << 15
    return fixed + tf.constant([0, 0, half, 0, 0, half], tf.int64)


def fits_int32(canvas: tuple[int | None, int | None], size: tuple[int | None, int | None]) -> bool:
    """Whether positions can be computed in 32 bits: coefficients up to 16 on images of this size."""
    sides = [*canvas, *size]
    return all(s is not None and s <= 512 for s in sides)


def warp(
    image: tf.Tensor, fixed: tf.Tensor, *, size: tuple[int | tf.Tensor, int | tf.Tensor], fill: str, constant: float, interpolation: str, narrow: bool
) -> tf.Tensor:
    """Read each output pixel from the input.

    Args:
        image: `(n, height, width, channels)`, any numeric dtype.
        fixed: int64 `(n, 6)` from `fixed_matrix`.
        size: Height and width of the output, in pixels.
        fill: `reflect`, `nearest`, `wrap` or `constant`: what lies outside.
        constant: The value of a constant fill.
        interpolation: `nearest` or `bilinear`.
        narrow: Compute positions in 32 bits.

    Returns:
        `(n, *size, channels)` of the same dtype; integers round half to even.
    """
    dtype = tf.int32 if narrow else tf.int64
    if narrow:
        limit = (1 << 20) - 1
        scale, offset = tf.constant(limit, tf.int64), tf.constant(1 << 30, tf.int64)
        bound = tf.stack([scale, scale, offset, scale, scale, offset])
        fixed = tf.clip_by_value(fixed, -bound, bound)
    m = tf.cast(fixed, dtype)[:, :, None, None]
    xs = tf.range(tf.cast(size[1], dtype))[None, None, :]
    ys = tf.range(tf.cast(size[0], dtype))[None, :, None]
    x = m[:, 0] * xs + m[:, 1] * ys + m[:, 2]
    y = m[:, 3] * xs + m[:, 4] * ys + m[:, 5]
    shift = tf.constant(16, dtype)
    x0, y0 = tf.bitwise.right_shift(x, shift), tf.bitwise.right_shift(y, shift)
    reader = _Reader(image, fill, constant, dtype)
    if interpolation == "nearest":
        return reader(y0, x0)
    eight, mask = tf.constant(8, dtype), tf.constant(255, dtype)
    fx = tf.bitwise.bitwise_and(tf.bitwise.right_shift(x, eight), mask)[..., None]
    fy = tf.bitwise.bitwise_and(tf.bitwise.right_shift(y, eight), mask)[..., None]
    one = tf.constant(1, dtype)
    corners = [reader(y0, x0), reader(y0, x0 + one), reader(y0 + one, x0), reader(y0 + one, x0 + one)]
    if image.dtype.is_integer:
        return _blend_integers(corners, tf.cast(fx, tf.int32), tf.cast(fy, tf.int32), image.dtype)
    return _blend_floats(corners, fx, fy, image.dtype)


def _blend_integers(corners: list[tf.Tensor], fx: tf.Tensor, fy: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    a, b, c, d = (tf.cast(v, tf.int32) for v in corners)
    total = (a * (256 - fx) + b * fx) * (256 - fy) + (c * (256 - fx) + d * fx) * fy
    whole = tf.bitwise.right_shift(total, 16)
    odd = tf.bitwise.bitwise_and(whole, 1)
    return tf.cast(tf.bitwise.right_shift(total + (ONE // 2 - 1) + odd, 16), dtype)


def _blend_floats(corners: list[tf.Tensor], fx: tf.Tensor, fy: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    a, b, c, d = (tf.cast(v, tf.float32) for v in corners)
    wx, wy = tf.cast(fx, tf.float32) * (1 / 256), tf.cast(fy, tf.float32) * (1 / 256)
    top, bottom = a * (1 - wx) + b * wx, c * (1 - wx) + d * wx
    return tf.cast(top * (1 - wy) + bottom * wy, dtype)


class _Reader:
    """Reads pixels of a batch at whole positions, which may lie outside."""

    def __init__(self, image: tf.Tensor, fill: str, constant: float, dtype: tf.DType) -> None:
        shape = tf.shape(image, out_type=dtype)
        static = image.shape
        self.n = static[0] if static[0] is not None else shape[0]
        self.height = tf.constant(static[1], dtype) if static[1] is not None else shape[1]
        self.width = tf.constant(static[2], dtype) if static[2] is not None else shape[2]
        self.channels = static[3]
        self.flat = tf.reshape(image, [self.n, -1, self.channels])
        self.fill, self.constant = fill, constant

    def __call__(self, y: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        inside_y, inside_x = self._inside(y, self.height), self._inside(x, self.width)
        flat_index = inside_y * self.width + inside_x
        shape = tf.shape(flat_index)
        pixels = tf.gather(self.flat, tf.reshape(flat_index, [self.n, -1]), batch_dims=1)
        static = flat_index.shape
        dims = [static[i] if static[i] is not None else shape[i] for i in range(3)]
        pixels = tf.reshape(pixels, [*dims, self.channels])
        if self.fill != "constant":
            return pixels
        outside = tf.logical_or(tf.not_equal(inside_y, y), tf.not_equal(inside_x, x))[..., None]
        return tf.where(outside, tf.cast(self.constant, pixels.dtype), pixels)

    def _inside(self, i: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        one = tf.constant(1, i.dtype)
        if self.fill == "reflect":
            r = _modulo(i, n + n)
            return tf.minimum(r, n + n - one - r)
        if self.fill == "wrap":
            return _modulo(i, n)
        return tf.clip_by_value(i, tf.zeros_like(n), n - one)


def _modulo(i: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """`i mod n` in [0, n), through a float quotient and a correction, which is much faster than integer division."""
    real = tf.float32 if i.dtype == tf.int32 else tf.float64
    quotient = tf.cast(tf.floor(tf.cast(i, real) / tf.cast(n, real)), i.dtype)
    r = i - quotient * n
    r = tf.where(r < 0, r + n, r)
    return tf.where(r >= n, r - n, r)


def mirror(image: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Apply matrices that only mirror axes, by reversing: `(n, height, width, channels)` and float64 `(n, 3, 3)`."""
    flip_x = (matrix[:, 0, 0] < 0)[:, None, None, None]
    flip_y = (matrix[:, 1, 1] < 0)[:, None, None, None]
    image = tf.where(flip_x, tf.reverse(image, [2]), image)
    return tf.where(flip_y, tf.reverse(image, [1]), image)
