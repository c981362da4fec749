"""Resampling through a 3x3 matrix: each output pixel reads neighbours at a position in fixed point, with integer weights.

So bytes are the same bits with and without XLA, at every batch size and on every TensorFlow.
"""

from __future__ import annotations

import tensorflow as tf

from pipegen.backend.kernels.positions import Located, margins
from pipegen.ops.lowering.linear import as_float32, nearest_float32

_LINEAR_BITS = 8
_CUBIC_BITS = 11
"""Bits behind the point of the cubic weights of integers: the largest sum, 1.25 · 1.25 · 255 in 2^-22, stays below 2^31."""


def read(image: tf.Tensor, located: Located, *, fill: str, constant: float = 0.0, exact: bool = False) -> tf.Tensor:
    """Read each output pixel from the input.

    `bicubic` is cubic convolution with a = -1/2, as `resize` has it (R. Keys, Cubic Convolution Interpolation for Digital Image
    Processing, 1981). It overshoots beside edges by up to 9/32 of the step; integers are clipped to what their type can hold.

    Args:
        image: `(n, height, width, channels)`, any numeric dtype.
        located: From `locate`.
        fill: What lies outside, as for `locate`.
        constant: The value of a constant fill.
        exact: Whether every bit of floats counts; see `ops/lowering/linear.py`.

    Returns:
        `(n, *size, channels)` of the same dtype; integers round half to even.
    """
    outside = constant if fill == "constant" else None
    if len(located) == 2:
        return _Reader(image, outside)(*(tf.cast(i, tf.int32) for i in located))
    *places, fy, fx = located
    cubic = len(places) == 8
    if image.dtype.is_integer:
        dtype = tf.int32 if image.dtype.size == 1 else tf.int64
        down, across = (_whole_weights(f, cubic=cubic) for f in (fy, fx))
    else:
        dtype = tf.float64 if exact else tf.float32
        down, across = (_real_weights(f, cubic=cubic) for f in (fy, fx))
    down, across = ([tf.cast(w, dtype) for w in part] for part in (down, across))
    pixels = _cubic_pixels(image, places, outside) if cubic else _linear_pixels(image, places[0], fill, constant)
    total = _weighted([nearest_float32(_weighted([tf.cast(p, dtype) for p in row], across)) for row in pixels], down)
    if not image.dtype.is_integer:
        return tf.cast(as_float32(total), image.dtype)
    whole = _rounded(total, 2 * (_CUBIC_BITS if cubic else _LINEAR_BITS))
    return tf.cast(tf.clip_by_value(whole, image.dtype.min, image.dtype.max) if cubic else whole, image.dtype)


def weigh_rows(image: tf.Tensor, first: tf.Tensor, between: tf.Tensor, fill: str, constant: float) -> tf.Tensor:
    """Reads two rows for each row of the output and weighs them, which is half of `read` where rows stay rows.

    Args:
        image: uint8 `(n, height, width, channels)`.
        first: The first row on the image with its margins, int32 `(n, rows)`.
        between: The position between it and the next in 1/256, likewise.
        fill: As for `read`.
        constant: As for `read`.

    Returns:
        256 times the values, uint16 `(n, rows, width with margins, channels)`.
    """
    padded = _with_margins(image, fill, constant)
    first, next_one = (tf.cast(tf.gather(padded, at, batch_dims=1), tf.uint16) for at in (first, first + 1))
    second = tf.cast(between, tf.uint16)[:, :, None, None]
    return first * (tf.constant(256, tf.uint16) - second) + next_one * second


def weigh_columns(rows: tf.Tensor, first: tf.Tensor, between: tf.Tensor) -> tf.Tensor:
    """Does the same with columns, of what `weigh_rows` gives, and rounds half to even, to uint8: sums are whole, so bits are `read`'s."""
    shape = [*(rows.shape[i] if rows.shape[i] is not None else tf.shape(rows)[i] for i in (0, 1)), first.shape[1] or tf.shape(first)[1]]
    left, right = (tf.cast(tf.gather(rows, tf.broadcast_to(at[:, None], shape), batch_dims=2), tf.int32) for at in (first, first + 1))
    second = between[:, None, :, None]
    return tf.cast(_rounded(left * (256 - second) + right * second, 2 * _LINEAR_BITS), tf.uint8)


def _cubic_pixels(image: tf.Tensor, places: list[tf.Tensor], outside: float | None) -> list[list[tf.Tensor]]:
    """Four rows of four pixels for each output pixel, at four rows and four columns."""
    reader = _Reader(image, outside)
    rows, columns = ([tf.cast(i, tf.int32) for i in part] for part in (places[:4], places[4:]))
    return [[reader(row, column) for column in columns] for row in rows]


def _linear_pixels(image: tf.Tensor, first: tf.Tensor, fill: str, constant: float) -> list[list[tf.Tensor]]:
    """Two rows of two pixels for each output pixel, which are neighbours.

    With margins all four are found from one position, which takes 0.6 of the time of four positions of their own.
    """
    padded = _with_margins(image, fill, constant)
    reader = _Reader(padded, None)
    return [[reader.at(first + row * reader.width + column) for column in (0, 1)] for row in (0, 1)]


def _with_margins(image: tf.Tensor, fill: str, constant: float) -> tf.Tensor:
    """The image with what `margins` says, for `bilinear`."""
    if fill == "constant":
        sides = list(margins(fill))
        return tf.pad(image, [[0, 0], sides, sides, [0, 0]], constant_values=tf.cast(constant, image.dtype))
    for axis in (1, 2):
        first = image[:, :1] if axis == 1 else image[:, :, :1]
        last = image[:, -1:] if axis == 1 else image[:, :, -1:]
        image = tf.concat([image, first if fill == "wrap" else last], axis)
    return image


def _weighted(values: list[tf.Tensor], weights: list[tf.Tensor]) -> tf.Tensor:
    total = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total = total + value * weight
    return total


def _rounded(total: tf.Tensor, bits: int) -> tf.Tensor:
    """`total` / 2^bits, rounded half to even."""
    shift, one = tf.constant(bits, total.dtype), tf.constant(1, total.dtype)
    odd = tf.bitwise.bitwise_and(tf.bitwise.right_shift(total, shift), one)
    return tf.bitwise.right_shift(total + tf.constant((1 << (bits - 1)) - 1, total.dtype) + odd, shift)


def _whole_weights(between: tf.Tensor, *, cubic: bool) -> list[tf.Tensor]:
    """Weights at positions in 1/256, int32 `(n, height, width, 1)`, which sum to 1 in `_LINEAR_BITS` or `_CUBIC_BITS`."""
    f = tf.cast(between, tf.int32)[..., None]
    if not cubic:
        return [256 - f, f]
    first, _, third, last = (_rounded_up(n, 25 - _CUBIC_BITS) for n in _cubic(f))
    return [first, (1 << _CUBIC_BITS) - first - third - last, third, last]


def _rounded_up(n: tf.Tensor, bits: int) -> tf.Tensor:
    """`n` / 2^bits, rounded half up."""
    return tf.bitwise.right_shift(n + (1 << (bits - 1)), bits)


def _real_weights(between: tf.Tensor, *, cubic: bool) -> list[tf.Tensor]:
    """Weights at positions in 1/256, float32 `(n, height, width, 1)`."""
    f = tf.cast(between, tf.int32)[..., None]
    if cubic:
        return [tf.cast(n, tf.float32) * 2.0**-25 for n in _cubic(f)]
    second = tf.cast(f, tf.float32) * (1 / 256)
    return [1 - second, second]


def _cubic(f: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Keys' weights of four neighbours in 2^-25, int32, at `f` / 256 behind the second: exact."""
    square = f * f
    cube = square * f
    return (
        512 * square - cube - 65536 * f,
        3 * cube - 1280 * square + (1 << 25),
        1024 * square - 3 * cube + 65536 * f,
        cube - 256 * square,
    )


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
        """The pixels at rows and columns."""
        at = row * self.width + column
        if self.constant is None:
            return self.at(at)
        outside = tf.logical_or(row < 0, column < 0)
        pixels = self.at(tf.where(outside, tf.zeros_like(at), at))
        return tf.where(outside[..., None], tf.cast(self.constant, pixels.dtype), pixels)

    def at(self, place: tf.Tensor) -> tf.Tensor:
        """The pixels at places counted by rows, `(n, height, width)`."""
        shape, static = tf.shape(place), place.shape
        pixels = tf.gather(self.flat, tf.reshape(place, [self.n, -1]), batch_dims=1)
        dims = [static[i] if static[i] is not None else shape[i] for i in range(3)]
        return tf.reshape(pixels, [*dims, self.channels])


def mirror(image: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Apply matrices that only mirror axes, by reversing: `(n, height, width, channels)` and float64 `(n, 3, 3)`."""
    flip_x, flip_y, _ = (tf.reshape(sign, [-1, 1, 1, 1]) for sign in tf.unstack(tf.linalg.diag_part(matrix) < 0, num=3, axis=1))
    image = tf.where(flip_x, tf.reverse(image, [2]), image)
    return tf.where(flip_y, tf.reverse(image, [1]), image)


def turn(image: tf.Tensor, matrix: tf.Tensor, *, always: bool) -> tf.Tensor:
    """Apply matrices that mirror axes and swap them, by reversing and transposing.

    Args:
        image: `(n, height, width, channels)`; squares, where only some of the matrices swap.
        matrix: float64 `(n, 3, 3)`, whose upper left has entries of -1, 0 and 1.
        always: Whether all of them swap the axes.

    Returns:
        The images, of which the swapped ones are `(n, width, height, channels)`.
    """
    swapped = tf.transpose(image, [0, 2, 1, 3])
    if not always:
        swapped = tf.where(tf.reshape(matrix[:, 0, 0] == 0, [-1, 1, 1, 1]), swapped, image)
    # The sign stands in another row where the axes are swapped, and 0 in the other.
    return mirror(swapped, tf.linalg.diag(matrix[:, 0] + matrix[:, 1]))
