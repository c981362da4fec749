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
    """Whether positions on images of this size can be computed in 32 bits, as long as no coefficient reaches 16."""
    sides = [*canvas, *size]
    return all(s is not None and s <= 512 for s in sides)


Located = tuple[tf.Tensor, ...]
"""Where each output pixel reads, `(n, height, width)` each: rows and columns inside the image, -1 for a constant fill's
outside. `nearest`: row and column. `bilinear`: two rows, two columns, and the weights of the second ones in 1/256."""


def locate(
    fixed: tf.Tensor,
    *,
    canvas: tuple[int | tf.Tensor, int | tf.Tensor],
    size: tuple[int | tf.Tensor, int | tf.Tensor],
    fill: str,
    interpolation: str,
    narrow: bool,
) -> Located:
    """Where each output pixel reads.

    It is a function of its own because XLA on a CPU would otherwise compute it again for every channel and corner,
    which costs twice as much as reading.

    Args:
        fixed: int64 `(n, 6)` from `fixed_matrix`.
        canvas: Height and width of the input, in pixels.
        size: Height and width of the output, in pixels.
        fill: `reflect`, `nearest`, `wrap` or `constant`: what lies outside.
        interpolation: `nearest` or `bilinear`.
        narrow: Compute positions in 32 bits where this batch's matrices allow it, as `fits_int32` says of the sizes.
    """
    index = tf.int16 if narrow else tf.int32

    def positions(dtype: tf.DType) -> Located:
        return _positions(fixed, dtype, index, canvas, size, fill, interpolation)

    if not narrow:
        return positions(tf.int64)
    coefficient, offset = (1 << 20) - 1, 1 << 30  # their sums over 512 pixels stay below 2^31
    bound = tf.constant([coefficient, coefficient, offset, coefficient, coefficient, offset], tf.int64)
    fits = tf.reduce_all(tf.abs(fixed) <= bound)
    return tf.cond(fits, lambda: positions(tf.int32), lambda: positions(tf.int64))


def _positions(
    fixed: tf.Tensor,
    dtype: tf.DType,
    index: tf.DType,
    canvas: tuple[int | tf.Tensor, int | tf.Tensor],
    size: tuple[int | tf.Tensor, int | tf.Tensor],
    fill: str,
    interpolation: str,
) -> Located:
    """`locate`, computed in `dtype`, its rows and columns given as `index`."""
    m = tf.cast(fixed, dtype)[:, :, None, None]
    xs = tf.range(tf.cast(size[1], dtype))[None, None, :]
    ys = tf.range(tf.cast(size[0], dtype))[None, :, None]
    x = m[:, 0] * xs + m[:, 1] * ys + m[:, 2]
    y = m[:, 3] * xs + m[:, 4] * ys + m[:, 5]
    shift = tf.constant(16, dtype)
    column, row = tf.bitwise.right_shift(x, shift), tf.bitwise.right_shift(y, shift)
    height, width = tf.cast(canvas[0], dtype), tf.cast(canvas[1], dtype)

    def inside(i: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        return tf.cast(_inside(i, n, fill), index)

    if interpolation == "nearest":
        return inside(row, height), inside(column, width)
    eight, mask, one = tf.constant(8, dtype), tf.constant(255, dtype), tf.constant(1, dtype)
    weights = (tf.cast(tf.bitwise.bitwise_and(tf.bitwise.right_shift(v, eight), mask), tf.uint8) for v in (y, x))
    return inside(row, height), inside(row + one, height), inside(column, width), inside(column + one, width), *weights


def read(image: tf.Tensor, located: Located, *, constant: float | None) -> tf.Tensor:
    """Read each output pixel from the input.

    Args:
        image: `(n, height, width, channels)`, any numeric dtype.
        located: From `locate`.
        constant: The value of a constant fill, else `None`.

    Returns:
        `(n, *size, channels)` of the same dtype; integers round half to even.
    """
    reader = _Reader(image, constant)
    if len(located) == 2:
        return reader(*(tf.cast(i, tf.int32) for i in located))
    y0, y1, x0, x1 = (tf.cast(i, tf.int32) for i in located[:4])
    fy, fx = (tf.cast(f, tf.int32)[..., None] for f in located[4:])
    corners = [reader(y0, x0), reader(y0, x1), reader(y1, x0), reader(y1, x1)]
    if image.dtype.is_integer:
        return _blend_integers(corners, fx, fy, image.dtype)
    return _blend_floats(corners, fx, fy, image.dtype)


def warp(
    image: tf.Tensor,
    fixed: tf.Tensor,
    *,
    size: tuple[int | tf.Tensor, int | tf.Tensor],
    fill: str,
    constant: float,
    interpolation: str,
    narrow: bool,
) -> tf.Tensor:
    """`locate`, then `read`: resample `(n, height, width, channels)` through `fixed_matrix` matrices."""
    shape = tf.shape(image)
    canvas = tuple(image.shape[a] if image.shape[a] is not None else shape[a] for a in (1, 2))
    located = locate(fixed, canvas=(canvas[0], canvas[1]), size=size, fill=fill, interpolation=interpolation, narrow=narrow)
    return read(image, located, constant=constant if fill == "constant" else None)


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
    """Reads pixels of a batch at whole positions inside it, or at -1 for a constant."""

    def __init__(self, image: tf.Tensor, constant: float | None) -> None:
        shape, static = tf.shape(image), image.shape
        self.n = static[0] if static[0] is not None else shape[0]
        self.width = static[2] if static[2] is not None else shape[2]
        self.channels = static[3]
        self.flat = tf.reshape(image, [self.n, -1, self.channels])
        self.constant = constant

    def __call__(self, row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
        at = row * self.width + column
        if self.constant is not None:
            outside = tf.logical_or(row < 0, column < 0)
            at = tf.where(outside, tf.zeros_like(at), at)
        shape, static = tf.shape(at), at.shape
        pixels = tf.gather(self.flat, tf.reshape(at, [self.n, -1]), batch_dims=1)
        dims = [static[i] if static[i] is not None else shape[i] for i in range(3)]
        pixels = tf.reshape(pixels, [*dims, self.channels])
        if self.constant is None:
            return pixels
        return tf.where(outside[..., None], tf.cast(self.constant, pixels.dtype), pixels)


def _inside(i: tf.Tensor, n: tf.Tensor, fill: str) -> tf.Tensor:
    """The position inside 0..n-1 that a position stands for; -1 where a constant does."""
    one = tf.constant(1, i.dtype)
    if fill == "reflect":
        r = _modulo(i, n + n)
        return tf.minimum(r, n + n - one - r)
    if fill == "wrap":
        return _modulo(i, n)
    if fill == "constant":
        return tf.where(tf.logical_or(i < 0, i >= n), -tf.ones_like(i), i)
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
