"""Computes where each pixel of a warped image is read, in fixed point.

Positions are 16.16 fixed-point integers, of which a fraction of 8 bits stays, so they are the same bits with and without
XLA, at every batch size and on every TensorFlow; and they are faster than floats. In perspective a position is a quotient
of two whole numbers, divided in float64, which IEEE 754 rounds the same way everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.ops.arguments.geometry import stays_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.arguments.geometry import Reach
    from pipegen.ops.base import ConstantFill

ONE = 1 << 16
"""1.0 in 16.16 fixed point."""

_GRID = 32
"""Bits behind the point of the numerators in perspective."""
_DEPTH_GRID = 44
"""Bits behind the point of the denominators in perspective, which are at most 1."""
_FARTHEST = 1 << 22
"""How far from the image a position in perspective can be, in pixels."""

_SMALL, _COEFFICIENT, _OFFSET = 512, (1 << 20) - 1, 1 << 30
"""The longest side, the largest coefficient and the largest offset, both in 2^-16, of which sums stay below 2^31."""

_UNROLLED = 36
"""Pixels in a row up to which LLVM unrolls a loop over them."""

Size = tuple[int | tf.Tensor, int | tf.Tensor]


def sides(image: tf.Tensor) -> Size:
    """Height and width of images `(n, height, width, ...)`, in pixels; int32 scalars where they are not known before."""
    shape = tf.shape(image)
    height, width = (image.shape[a] if image.shape[a] is not None else shape[a] for a in (1, 2))
    return height, width


def outside(fill: str | ConstantFill) -> tuple[str, float]:
    """Returns what lies outside an image, as `locate` has it, and the value of a constant fill."""
    return (fill, 0.0) if isinstance(fill, str) else ("constant", fill.constant)


def fixed_matrix(matrix: tf.Tensor, interpolation: str) -> tf.Tensor:
    """The first two rows of output-to-input matrices in fixed point, with the rounding of the read position folded in.

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
    """Projective output-to-input matrices in fixed point.

    A matrix means the same at every positive scale, so each is scaled until its third coordinate is at most 1 on the output.

    Args:
        matrix: float64 `(n, 3, 3)`, whose third coordinate is positive on what is to be seen.
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
    """Returns whether positions on images of this size can be computed in 32 bits, as long as no coefficient reaches 16."""
    sides = [*canvas, *size]
    return all(s is not None and s <= _SMALL for s in sides)


def stays_near(reaches: Sequence[Reach | None]) -> bool:
    """Returns whether no coefficient of what steps on such images multiply to reaches 16, whatever is drawn."""
    return stays_within(reaches, _COEFFICIENT >> 16, (_OFFSET >> 16) / _SMALL)


Located = tuple[tf.Tensor, ...]
"""Where each output pixel reads, `(n, height, width)` each: rows and columns inside the image, -1 for a constant fill's
outside. `nearest`: row and column. `bilinear`: the first of four pixels that are neighbours on the image with its `margins`, counted by
rows, and the position between the rows and between the columns in 1/256. `bicubic`: four rows, four columns, and the position
between the middle two of each."""


def margins(fill: str) -> tuple[int, int]:
    """Returns how many pixels of fill `bilinear` needs before and behind each side of an image, so that what it reads are neighbours."""
    return (1, 2) if fill == "constant" else (0, 1)


def locate(fixed: tf.Tensor, canvas: Size, size: Size, *, fill: str, interpolation: str, narrow: bool, near: bool = False) -> Located:
    """Computes where each output pixel reads.

    It is a function of its own because XLA on a CPU would otherwise compute it again for every channel and corner,
    which costs twice as much as reading. In perspective it is `project` and then `around`, which are best compiled apart.

    Args:
        fixed: int64 `(n, 6)` from `fixed_matrix`, or `(n, 9)` from `fixed_homography`.
        canvas: Height and width of the input, in pixels.
        size: Height and width of the output, in pixels.
        fill: `reflect`, `nearest`, `wrap` or `constant`: what lies outside.
        interpolation: `nearest`, `bilinear` or `bicubic`.
        narrow: Keep rows and columns in 16 bits, and compute affine positions in 32 where this batch's matrices allow it, as
            `fits_int32` says of the sizes.
        near: Whether every batch's matrices allow it, as `stays_near` says.

    Returns:
        What `read` takes.
    """
    index = tf.int16 if narrow else tf.int32
    # LLVM unrolls the loops over rows of about 32 pixels that are clipped into one block, on which it works for ten seconds. It does
    # not where one loop counts all pixels, which takes longer to run on large images.
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
    """Computes where each row and each column of the output reads, by matrices that keep rows rows and columns columns, `bilinear`.

    Args:
        fixed: int64 `(n, 6)` from `fixed_matrix`, whose second and fourth number are zero.
        canvas: Height and width of the input, in pixels.
        size: Height and width of the output, in pixels.
        fill: As for `locate`.

    Returns:
        The first of two neighbouring rows on the image with its `margins`, and the position between them in 1/256, int32 `(n, height)`; and
        likewise of columns, `(n, width)`.
    """
    eight = tf.constant(8, tf.int64)

    def line(scale: int, offset: int, count: int | tf.Tensor, side: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        at = fixed[:, scale, None] * tf.range(tf.cast(count, tf.int64)) + fixed[:, offset, None]
        position = tf.bitwise.right_shift(at, eight)
        between = tf.bitwise.bitwise_and(position, tf.constant(255, tf.int64))
        first, between = _pair(tf.bitwise.right_shift(position, eight), between, tf.cast(side, tf.int64), fill)
        return tf.cast(first, tf.int32), tf.cast(between, tf.int32)

    return (*line(4, 5, size[0], canvas[0]), *line(0, 2, size[1], canvas[1]))


def _row(m: tf.Tensor, first: int, size: Size, *, counted: bool = False) -> tf.Tensor:
    """One row of the matrices at every output pixel, `(n, height, width)`; `counted` computes it in one loop over all pixels."""
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
    """Positions in perspective.

    Products and sums are those of integers, since XLA contracts a float product and a sum into one rounding; dividing and scaling by
    a power of two round the same way everywhere.

    What lies at or behind the horizon (a third coordinate of 0 or less) is outside: a constant fill shows there, and the
    other fills read it as a point as far away as can be, in the direction in which it would lie.

    Args:
        fixed: int64 `(n, 9)` from `fixed_homography`.
        size: Height and width of the output, in pixels.
        fill: As for `locate`.
        interpolation: As for `locate`.

    Returns:
        x and y in 1/256 pixel, int32 `(n, height, width)`; whole pixels for `nearest`.
    """
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
    """Returns what positions in 1/256 pixel read, with what rounds them to whole pixels added if asked; rows and columns as `index`."""
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
    """The first of the two neighbours that stand for `i` and `i + 1`, on a side of length `n` with its margins, and the position
    between them for `f` / 256 between those two.

    Where a reflection turns the order around, the position is turned around too.
    """
    zero, one = tf.constant(0, i.dtype), tf.constant(1, i.dtype)
    if fill == "constant":
        before, behind = tf.constant(-1, i.dtype), n
        return tf.clip_by_value(i, before, behind) + one, tf.where(i < before, zero, f)
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
