"""Resampling through a 3x3 matrix: each output pixel reads neighbours at a position in fixed point, with integer weights.

So uint8 results are equal to the bit with and without XLA, at every batch size and on every TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul

import tensorflow as tf

from pipegen.ops.arguments.geometry import ConstantFill, Reach, stays_within
from pipegen.ops.lowering.filters import rounded_shift
from pipegen.ops.lowering.linear import as_float32, nearest_float32

ONE = 1 << 16  # 1.0 in 16.16 fixed point

_GRID = 32  # fractional bits of the numerators in perspective
_DEPTH_GRID = 44  # fractional bits of the denominators in perspective, which are at most 1
_FARTHEST = 1 << 22  # largest distance of a position in perspective from the image, in pixels

_SMALL, _COEFFICIENT, _OFFSET = 512, (1 << 20) - 1, 1 << 30
"""The longest side, the largest coefficient and the largest offset, both in 2^-16, whose sums stay below 2^31."""

_UNROLLED = 36  # most pixels in a row for which LLVM unrolls a loop

Size = tuple[int | tf.Tensor, int | tf.Tensor]


def sides(image: tf.Tensor) -> Size:
    """Returns height and width of images `(n, height, width, ...)` in pixels; int32 scalars if they are not static."""
    shape = tf.shape(image)
    height, width = (image.shape[a] if image.shape[a] is not None else shape[a] for a in (1, 2))
    return height, width


def outside(fill: str | ConstantFill) -> tuple[str, float]:
    """Returns the fill mode of `locate`, and the value of a constant fill."""
    return (fill, 0.0) if isinstance(fill, str) else ("constant", fill.constant)


def fixed_matrix(matrix: tf.Tensor, interpolation: str) -> tf.Tensor:
    """Converts the first two rows of output-to-input matrices to fixed point, with the rounding of the read position folded in.

    Args:
        matrix: float64 `(n, 3, 3)`, affine.
        interpolation: `bilinear` and `bicubic` round positions to 1/256 pixel, `nearest` to whole pixels.

    Returns:
        int64 `(n, 6)`: x by x, x by y, x offset, y by x, y by y, y offset.
    """
    rows = tf.reshape(matrix[:, :2, :], [-1, 6])
    limit = tf.constant(float(1 << 40), tf.float64)
    fixed = tf.cast(tf.round(tf.clip_by_value(rows * float(ONE), -limit, limit)), tf.int64)
    half = 1 << 15 if interpolation == "nearest" else 1 << 7
    return fixed + tf.constant([0, 0, half, 0, 0, half], tf.int64)


def fixed_homography(matrix: tf.Tensor, size: Size) -> tf.Tensor:
    """Converts projective output-to-input matrices to fixed point.

    A homography is defined up to a positive scale, so each is scaled until its third coordinate is at most 1 on the output.

    Args:
        matrix: float64 `(n, 3, 3)`, whose third coordinate is positive on the visible part.
        size: Height and width of the output, in pixels.

    Returns:
        int64 `(n, 9)`, by rows: the numerators of x and of y in 2^-32, their denominator in 2^-44.
    """
    height, width = (tf.cast(side, tf.float64) for side in size)
    depth = tf.abs(matrix[:, 2])
    most = depth[:, 0] * (width - 1.0) + depth[:, 1] * (height - 1.0) + depth[:, 2]
    entries = tf.reshape(matrix / most[:, None, None], [-1, 9])
    coefficient, offset = float(1 << 44), float(1 << 60)  # their sums over 32767 pixels stay below 2^63
    limits = tf.constant([coefficient, coefficient, offset] * 3, tf.float64)
    grid = tf.constant([float(1 << _GRID)] * 6 + [float(1 << _DEPTH_GRID)] * 3, tf.float64)
    return tf.cast(tf.round(tf.clip_by_value(entries * grid, -limits, limits)), tf.int64)


def fits_int32(canvas: tuple[int | None, int | None], size: tuple[int | None, int | None]) -> bool:
    """Checks that positions on images of this size fit 32 bits, as long as no coefficient reaches 16."""
    sides = [*canvas, *size]
    return all(s is not None and s <= _SMALL for s in sides)


def stays_near(reaches: Sequence[Reach | None]) -> bool:
    """Checks that no coefficient of the steps' product can reach 16 on such images, for any draw."""
    return stays_within(reaches, _COEFFICIENT >> 16, (_OFFSET >> 16) / _SMALL)


Located = tuple[tf.Tensor, ...]
"""The positions that each output pixel reads, `(n, height, width)` each: rows and columns of the image, -1 outside with a constant fill.

`nearest`: row and column. `bilinear`: the index of the first of four neighbours on the image with its `margins`, and the position between
the rows and between the columns in 1/256. `bicubic`: four rows, four columns, and the position between the middle two of each."""


def margins(fill: str) -> tuple[int, int]:
    """Returns the pixels of fill that `bilinear` needs before and after each axis of an image, so that it reads neighbours."""
    return (1, 2) if fill == "constant" else (0, 1)


def locate(fixed: tf.Tensor, canvas: Size, size: Size, *, fill: str, interpolation: str, narrow: bool, near: bool = False) -> Located:
    """Computes the positions that each output pixel reads.

    It is compiled separately, or XLA on a CPU would compute it again for every channel and corner, which costs twice as much as reading.
    In perspective it is `project` and then `around`, which are best compiled separately, too.

    Args:
        fixed: int64 `(n, 6)` from `fixed_matrix`, or `(n, 9)` from `fixed_homography`.
        canvas: Height and width of the input, in pixels.
        size: Height and width of the output, in pixels.
        fill: The fill mode outside: `reflect`, `nearest`, `wrap` or `constant`.
        interpolation: `nearest`, `bilinear` or `bicubic`.
        narrow: Keep rows and columns in 16 bits, and compute affine positions in 32 bits if this batch's matrices allow it; requires
            `fits_int32` of the sizes.
        near: Whether every batch's matrices allow it; requires `stays_near`.

    Returns:
        The positions for `read`.
    """
    index = tf.int16 if narrow else tf.int32
    # LLVM unrolls loops over rows of about 32 clipped pixels into one block, which takes it ten seconds. One loop over all pixels avoids
    # that, but runs longer on large images.
    counted = isinstance(size[1], int) and size[1] <= _UNROLLED and fill in ("nearest", "constant")

    def positions(dtype: tf.DType) -> Located:
        m = tf.cast(fixed, dtype)
        eight = tf.constant(8, dtype)
        x, y = (tf.bitwise.right_shift(_row(m, first, size, counted=counted), eight) for first in (0, 3))
        return around(x, y, canvas, fill, interpolation, index)

    if fixed.shape[-1] == 9:
        return around(*project(fixed, size=size, fill=fill, interpolation=interpolation), canvas, fill, interpolation, index)
    if not narrow:
        return positions(tf.int64)
    if near:
        return positions(tf.int32)
    bound = tf.constant([*[_COEFFICIENT, _COEFFICIENT, _OFFSET] * 2], tf.int64)
    fits = tf.reduce_all(tf.abs(fixed) <= bound)
    return tf.cond(fits, lambda: positions(tf.int32), lambda: positions(tf.int64))


def locate_lines(fixed: tf.Tensor, canvas: Size, size: Size, fill: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes the positions that each row and each column of the output reads, for matrices that map rows to rows, `bilinear`.

    The arguments are those of `locate`; the second and fourth number of `fixed`, int64 `(n, 6)`, are zero. Returns the first of two
    neighbouring rows on the image with its `margins`, and the position between them in 1/256, int32 `(n, height)`; the same for columns,
    `(n, width)`."""
    eight = tf.constant(8, tf.int64)

    def line(scale: int, offset: int, count: int | tf.Tensor, side: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        at = fixed[:, scale, None] * tf.range(tf.cast(count, tf.int64)) + fixed[:, offset, None]
        position = tf.bitwise.right_shift(at, eight)
        between = tf.bitwise.bitwise_and(position, tf.constant(255, tf.int64))
        first, between = _pair(tf.bitwise.right_shift(position, eight), between, tf.cast(side, tf.int64), fill)
        return tf.cast(first, tf.int32), tf.cast(between, tf.int32)

    return (*line(4, 5, size[0], canvas[0]), *line(0, 2, size[1], canvas[1]))


def _row(m: tf.Tensor, first: int, size: Size, *, counted: bool = False) -> tf.Tensor:
    """Evaluates one row of the matrices at every output pixel, `(n, height, width)`; `counted` uses one loop over all pixels."""
    height, width = size
    if counted and isinstance(height, int) and isinstance(width, int):
        pixel = tf.range(height * width)
        x, y = tf.cast(pixel % width, m.dtype), tf.cast(pixel // width, m.dtype)
        a, b, c = tf.split(m[:, first : first + 3], 3, axis=1)
        return tf.reshape(a * x + b * y + c, [-1, height, width])
    xs = tf.range(tf.cast(size[1], m.dtype))[None, None, :]
    ys = tf.range(tf.cast(size[0], m.dtype))[None, :, None]
    a, b, c = tf.unstack(tf.reshape(m[:, first : first + 3], [-1, 3, 1, 1]), axis=1)
    return a * xs + b * ys + c


def project(fixed: tf.Tensor, *, size: Size, fill: str, interpolation: str) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes positions in perspective.

    Products and sums are in integers, since XLA contracts a float product and a sum into one rounding. Division and scaling by a power of
    two round the same everywhere.

    Points at or behind the horizon (a third coordinate of 0 or less) are outside: a constant fill shows there, and the other fills read a
    point at the largest distance in that direction. The arguments are those of `locate`; `fixed` is int64 `(n, 9)`. Returns x and y in
    1/256 pixel, int32 `(n, height, width)`; whole pixels for `nearest`."""
    depth = _row(fixed, 6, size)
    unit = 1 if interpolation == "nearest" else 256
    scale, farthest = float(unit << (_DEPTH_GRID - _GRID)), float(unit * _FARTHEST)
    divisor = tf.cast(tf.maximum(depth, tf.ones_like(depth)), tf.float64)

    def quotient(first: int) -> tf.Tensor:
        real = tf.cast(_row(fixed, first, size), tf.float64) * scale / divisor
        return tf.cast(tf.floor(tf.clip_by_value(real + 0.5, -farthest, farthest)), tf.int32) * (256 // unit)

    x, y = quotient(0), quotient(3)
    return x, tf.where(depth > 0, y, -256 * _FARTHEST) if fill == "constant" else y


def around(x: tf.Tensor, y: tf.Tensor, canvas: Size, fill: str, interpolation: str, index: tf.DType) -> Located:
    """Computes the pixels that positions in 1/256 pixel read, with rows and columns as `index`. Rounding offsets are already added."""
    eight, mask = tf.constant(8, x.dtype), tf.constant(255, x.dtype)
    whole, between = zip(*((tf.bitwise.right_shift(p, eight), tf.bitwise.bitwise_and(p, mask)) for p in (y, x)), strict=True)
    if interpolation == "bilinear":
        (row, fy), (column, fx) = (_pair(i, f, tf.cast(n, x.dtype), fill) for i, f, n in zip(whole, between, canvas, strict=True))
        width = tf.cast(canvas[1] + sum(margins(fill)), tf.int32)
        return tf.cast(row, tf.int32) * width + tf.cast(column, tf.int32), tf.cast(fy, tf.uint8), tf.cast(fx, tf.uint8)
    steps = {"nearest": (0,), "bicubic": (-1, 0, 1, 2)}[interpolation]
    places = []
    for position, side in zip(whole, canvas, strict=True):
        places += [tf.cast(_inside(position + tf.constant(i, x.dtype), tf.cast(side, x.dtype), fill), index) for i in steps]
    if interpolation == "nearest":
        return tuple(places)
    return (*places, *(tf.cast(f, tf.uint8) for f in between))


def _pair(i: tf.Tensor, f: tf.Tensor, n: tf.Tensor, fill: str) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps neighbours `i` and `i + 1` and the position `f` / 256 between them into an axis of length `n` with its margins.

    If a reflection reverses the order, the position is reversed, too.
    """
    zero, one = tf.constant(0, i.dtype), tf.constant(1, i.dtype)
    if fill == "constant":
        before = tf.constant(-1, i.dtype)
        return tf.clip_by_value(i, before, n) + one, tf.where(i < before, zero, f)
    if fill == "wrap":
        return _modulo(i, n), f
    if fill == "nearest":
        return tf.clip_by_value(i, zero, n - one), tf.where(i < zero, zero, f)
    twice = n + n
    k = _modulo(i, twice)
    back = twice - one - k
    turned = tf.maximum(tf.where(f > zero, back - one, back), zero)
    opposite = tf.where(back > zero, tf.bitwise.bitwise_and(tf.constant(256, i.dtype) - f, tf.constant(255, i.dtype)), zero)
    return tf.where(k < n, k, turned), tf.where(k < n, f, opposite)


def _inside(i: tf.Tensor, n: tf.Tensor, fill: str) -> tf.Tensor:
    """Maps a position into 0..n-1; -1 outside with a constant fill."""
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
    """`i mod n` in [0, n), by a float quotient and a correction, which is much faster than integer division."""
    real = tf.float32 if i.dtype == tf.int32 else tf.float64
    quotient = tf.cast(tf.floor(tf.cast(i, real) / tf.cast(n, real)), i.dtype)
    r = i - quotient * n
    r = tf.where(r < 0, r + n, r)
    return tf.where(r >= n, r - n, r)


_LINEAR_BITS = 8
_CUBIC_BITS = 11  # fractional bits of the cubic weights of integers: the largest sum, 1.25 · 1.25 · 255 in 2^-22, stays below 2^31


def read(image: tf.Tensor, located: Located, fill: str | ConstantFill, *, exact: bool = False) -> tf.Tensor:
    """Reads each output pixel from the input.

    `bicubic` is cubic convolution with a = -1/2, as in `resize` (R. Keys, Cubic Convolution Interpolation for Digital Image Processing,
    1981). It overshoots at edges by up to 9/32 of the step; integers are clipped to the range of their dtype.

    Args:
        image: `(n, height, width, channels)`, any numeric dtype.
        located: From `locate`.
        fill: The fill, as steps have it.
        exact: Whether every bit of floats counts; see `ops/lowering/linear.py`.

    Returns:
        `(n, *size, channels)` of the same dtype; integers round half to even.
    """
    mode, constant = outside(fill)
    beyond = constant if mode == "constant" else None
    if len(located) == 2:
        return _Reader(image, beyond)(*(tf.cast(i, tf.int32) for i in located))
    *places, fy, fx = located
    cubic = len(places) == 8
    if image.dtype.is_integer:
        dtype = tf.int32 if image.dtype.size == 1 else tf.int64
        down, across = (_whole_weights(f, cubic=cubic) for f in (fy, fx))
    else:
        dtype = tf.float64 if exact else tf.float32
        down, across = (_real_weights(f, cubic=cubic) for f in (fy, fx))
    down, across = ([tf.cast(w, dtype) for w in part] for part in (down, across))
    if cubic:
        reader = _Reader(image, beyond)
        rows, columns = ([tf.cast(i, tf.int32) for i in part] for part in (places[:4], places[4:]))
        pixels = [[reader(row, column) for column in columns] for row in rows]
    else:  # with margins all four come from one position, which takes 0.6 of the time of four positions
        reader = _Reader(_with_margins(image, mode, constant), None)
        pixels = [[reader.at(places[0] + row * reader.width + column) for column in (0, 1)] for row in (0, 1)]
    total = _weighted([nearest_float32(_weighted([tf.cast(p, dtype) for p in row], across)) for row in pixels], down)
    if not image.dtype.is_integer:
        return tf.cast(as_float32(total), image.dtype)
    whole = rounded_shift(total, 2 * (_CUBIC_BITS if cubic else _LINEAR_BITS))
    return tf.cast(tf.clip_by_value(whole, image.dtype.min, image.dtype.max) if cubic else whole, image.dtype)


def weigh_rows(image: tf.Tensor, first: tf.Tensor, between: tf.Tensor, fill: str, constant: float) -> tf.Tensor:
    """Reads two rows for each row of the output and weighs them: half of `read`, for matrices that map rows to rows.

    Args:
        image: uint8 `(n, height, width, channels)`.
        first: The first row on the image with its margins, int32 `(n, rows)`.
        between: The position between it and the next in 1/256, int32 `(n, rows)`.
        fill: The fill mode, as for `locate`.
        constant: The value of a constant fill.

    Returns:
        256 times the values, uint16 `(n, rows, width with margins, channels)`.
    """
    padded = _with_margins(image, fill, constant)
    first, next_one = (tf.cast(tf.gather(padded, at, batch_dims=1), tf.uint16) for at in (first, first + 1))
    second = tf.cast(between, tf.uint16)[:, :, None, None]
    return first * (tf.constant(256, tf.uint16) - second) + next_one * second


def weigh_columns(rows: tf.Tensor, first: tf.Tensor, between: tf.Tensor) -> tf.Tensor:
    """Weighs two columns of the result of `weigh_rows` and rounds half to even, to uint8: integer sums, so the bits are those of `read`."""
    shape = [*(rows.shape[i] if rows.shape[i] is not None else tf.shape(rows)[i] for i in (0, 1)), first.shape[1] or tf.shape(first)[1]]
    left, right = (tf.cast(tf.gather(rows, tf.broadcast_to(at[:, None], shape), batch_dims=2), tf.int32) for at in (first, first + 1))
    second = between[:, None, :, None]
    return tf.cast(rounded_shift(left * (256 - second) + right * second, 2 * _LINEAR_BITS), tf.uint8)


def _with_margins(image: tf.Tensor, fill: str, constant: float) -> tf.Tensor:
    """Pads an image with its `margins`, for `bilinear`."""
    if fill == "constant":
        sides = list(margins(fill))
        return tf.pad(image, [[0, 0], sides, sides, [0, 0]], constant_values=tf.cast(constant, image.dtype))
    for axis in (1, 2):
        first = image[:, :1] if axis == 1 else image[:, :, :1]
        last = image[:, -1:] if axis == 1 else image[:, :, -1:]
        image = tf.concat([image, first if fill == "wrap" else last], axis)
    return image


def _weighted(values: list[tf.Tensor], weights: list[tf.Tensor]) -> tf.Tensor:
    return reduce(add, map(mul, values, weights))


def _whole_weights(between: tf.Tensor, *, cubic: bool) -> list[tf.Tensor]:
    """Computes weights at positions in 1/256, int32 `(n, height, width, 1)`, which sum to 1 in `_LINEAR_BITS` or `_CUBIC_BITS`."""
    f = tf.cast(between, tf.int32)[..., None]
    if not cubic:
        return [256 - f, f]
    shift = 25 - _CUBIC_BITS
    first, _, third, last = (tf.bitwise.right_shift(n + (1 << (shift - 1)), shift) for n in _cubic(f))  # rounded half up
    return [first, (1 << _CUBIC_BITS) - first - third - last, third, last]


def _real_weights(between: tf.Tensor, *, cubic: bool) -> list[tf.Tensor]:
    """Computes weights at positions in 1/256, float32 `(n, height, width, 1)`."""
    f = tf.cast(between, tf.int32)[..., None]
    if cubic:
        return [tf.cast(n, tf.float32) * 2.0**-25 for n in _cubic(f)]
    second = tf.cast(f, tf.float32) * (1 / 256)
    return [1 - second, second]


def _cubic(f: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes Keys' weights of four neighbours in 2^-25, int32, at `f` / 256 after the second: exact."""
    square = f * f
    cube = square * f
    return (
        512 * square - cube - 65536 * f,
        3 * cube - 1280 * square + (1 << 25),
        1024 * square - 3 * cube + 65536 * f,
        cube - 256 * square,
    )


class _Reader:
    """Pixels of a batch at integer positions, or a constant at -1."""

    def __init__(self, image: tf.Tensor, constant: float | None) -> None:
        shape, static = tf.shape(image), image.shape
        self.n = static[0] if static[0] is not None else shape[0]
        self.width = static[2] if static[2] is not None else shape[2]
        self.channels = static[3]
        self.flat = tf.reshape(image, [self.n, -1, self.channels])
        self.constant = constant

    def __call__(self, row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
        """Reads pixels at rows and columns."""
        at = row * self.width + column
        if self.constant is None:
            return self.at(at)
        outside = tf.logical_or(row < 0, column < 0)
        pixels = self.at(tf.where(outside, tf.zeros_like(at), at))
        return tf.where(outside[..., None], tf.cast(self.constant, pixels.dtype), pixels)

    def at(self, place: tf.Tensor) -> tf.Tensor:
        """Reads pixels at flat indices `(n, height, width)`."""
        shape, static = tf.shape(place), place.shape
        pixels = tf.gather(self.flat, tf.reshape(place, [self.n, -1]), batch_dims=1)
        dims = [static[i] if static[i] is not None else shape[i] for i in range(3)]
        return tf.reshape(pixels, [*dims, self.channels])


def mirror(image: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Applies matrices that only mirror axes, by reversing: `(n, height, width, channels)` and float64 `(n, 3, 3)`."""
    flip_x, flip_y, _ = (tf.reshape(sign, [-1, 1, 1, 1]) for sign in tf.unstack(tf.linalg.diag_part(matrix) < 0, num=3, axis=1))
    image = tf.where(flip_x, tf.reverse(image, [2]), image)
    return tf.where(flip_y, tf.reverse(image, [1]), image)


def turn(image: tf.Tensor, matrix: tf.Tensor, *, always: bool) -> tf.Tensor:
    """Applies matrices that mirror and swap axes, by reversing and transposing; swapped images are `(n, width, height, channels)`.

    Args:
        image: `(n, height, width, channels)`; squares if only some of the matrices swap.
        matrix: float64 `(n, 3, 3)`, whose upper left has entries of -1, 0 and 1.
        always: Whether all of them swap the axes.
    """
    swapped = tf.transpose(image, [0, 2, 1, 3])
    if not always:
        swapped = tf.where(tf.reshape(matrix[:, 0, 0] == 0, [-1, 1, 1, 1]), swapped, image)
    # Each column of the upper left has one entry that is not 0: its sign.
    return mirror(swapped, tf.linalg.diag(matrix[:, 0] + matrix[:, 1]))
