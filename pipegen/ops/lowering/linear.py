"""Small matrices with any leading batch axes, those of geometric steps, and floats that are equal on all hardware."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.graphs import target

Scalar: TypeAlias = "float | tf.Tensor"

LUMA = (0.299, 0.587, 0.114)  # the weights of red, green and blue in luma (ITU-R BT.601)


def uniform(u: tf.Tensor, bounds: tuple[Scalar, Scalar]) -> tf.Tensor:
    """Computes `low + (high - low) * u` in float64, for `u` in [0, 1); the bounds are numbers, or scalars from a schedule."""
    low, high = bounds
    return tf.convert_to_tensor(low, tf.float64) + tf.convert_to_tensor(high - low, tf.float64) * tf.cast(u, tf.float64)


def logarithms(bounds: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
    """Computes the natural logarithms of bounds above 0."""
    low, high = (tf.math.log(bound) if tf.is_tensor(bound) else math.log(bound) for bound in bounds)
    return low, high


def normal(u: tf.Tensor) -> tf.Tensor:
    """Converts `u` in [0, 1) to normal numbers of mean 0 and standard deviation 1, from -6.3 to 6.3: float64."""
    return tf.math.ndtri((tf.floor(tf.cast(u, tf.float64) * 2.0**32) + 0.5) * 2.0**-32)


def radians(degrees: tf.Tensor) -> tf.Tensor:
    """Converts degrees to radians, in float64."""
    return degrees * (math.pi / 180.0)


def stack(rows: Sequence[Sequence[Scalar]], like: tf.Tensor) -> tf.Tensor:
    """Stacks entries, given by row as numbers or tensors that broadcast to `like`, to a float64 matrix `(..., rows, columns)`; `like` is
    float64 of the batch's shape `(...)`."""
    return tf.stack([tf.stack(row, axis=-1) for row in _filled(rows, like)], axis=-2)


def vector(entries: Sequence[Scalar], like: tf.Tensor) -> tf.Tensor:
    """Stacks entries to a float64 vector `(..., n)`, broadcast to the shape of `like`."""
    (filled,) = _filled([entries], like)
    return tf.stack(filled, axis=-1)


def _filled(rows: Sequence[Sequence[Scalar]], like: tf.Tensor) -> list[list[tf.Tensor]]:
    """Broadcasts entries to the shape of `like`; equal numbers share one operation."""
    zero, known = tf.zeros_like(like, dtype=tf.float64), like.shape.is_fully_defined()
    numbers = {entry: zero + entry if entry else zero for row in rows for entry in row if isinstance(entry, float)}

    def filled(entry: Scalar) -> tf.Tensor:
        if isinstance(entry, float):
            return numbers[entry]
        return entry if known and entry.shape == like.shape else zero + entry

    return [list(map(filled, row)) for row in rows]


def about_centre(
    linear: tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]], like: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
    """Makes the 3x3 matrix, float64 `(..., 3, 3)`, that applies a 2x2 one on `(x, y)`, from output to input, about the centre of a canvas
    of a height and width in pixels, float64 scalars; `like` is as for `stack`."""
    (a, b), (c, d) = linear
    cx, cy = (width - 1.0) / 2.0, (height - 1.0) / 2.0
    return stack([[a, b, cx - (a * cx + b * cy)], [c, d, cy - (c * cx + d * cy)], [0.0, 0.0, 1.0]], like)


def multiply(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Computes `first @ second` for `(..., n, n)`, with sums in a fixed order."""
    return tf.reduce_sum(tf.expand_dims(first, -1) * tf.expand_dims(second, -3), -2)


def diagonal(values: Sequence[Scalar], like: tf.Tensor) -> tf.Tensor:
    """Makes a diagonal matrix: float64 `(..., n, n)`."""
    return stack([[value if i == j else 0.0 for j in range(len(values))] for i, value in enumerate(values)], like)


def zeros(channels: int, like: tf.Tensor) -> tf.Tensor:
    """Makes a float64 zero vector `(..., channels)`."""
    return vector([0.0] * channels, like)


def zeros_for(u: tf.Tensor) -> tf.Tensor:
    """Makes float64 zeros of the batch's shape `(...)`, from draws `(..., num_draws)`, also for 0 draws."""
    like = tf.zeros(tf.shape(u)[:-1], tf.float64)
    like.set_shape(u.shape[:-1])
    return like


def product(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Multiplies a matrix and a batch of matrices, `(rows, inner)` and `(..., inner, columns)`, or `(..., rows, inner)` and
    `(inner, columns)`, in full float32 precision, also on an accelerator."""
    if target() != "device" or a.dtype != tf.float32:
        return tf.linalg.matmul(a, b)
    from pipegen.private.tensorflow import dot_in_full_precision

    found = dot_in_full_precision(a, b)
    several = b.shape.rank - 2  # the batch dimensions follow the rows now
    return tf.transpose(found, [*range(1, several + 1), 0, several + 1]) if several else found


_DROPPED = 29  # bits of a float64 that a float32 does not have


def working(images: tf.Tensor) -> tf.DType:
    """Returns the dtype for the floats of a step: float64 for images of float64, else float32."""
    return tf.float64 if images.dtype == tf.float64 else tf.float32


def nearest_float32(values: tf.Tensor) -> tf.Tensor:
    """Rounds float64 values to the nearest float32, half to even; the result is float64, and other dtypes stay unchanged.

    It works on the bits, as integers: XLA removes a cast to float32 and back (in TensorFlow 2.16). Other runtimes round differently
    anyway, so it is skipped there.
    """
    if values.dtype != tf.float64 or target() == "converter":
        return values
    bits = tf.bitcast(values, tf.int64)
    odd = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, tf.constant(_DROPPED, tf.int64)), tf.constant(1, tf.int64))
    rounded = bits + odd + tf.constant((1 << (_DROPPED - 1)) - 1, tf.int64)
    return tf.bitcast(tf.bitwise.bitwise_and(rounded, tf.constant(-(1 << _DROPPED), tf.int64)), tf.float64)


def as_float32(values: tf.Tensor) -> tf.Tensor:
    """Converts float64 to float32, rounded half to even; other dtypes stay unchanged."""
    return tf.cast(nearest_float32(values), tf.float32) if values.dtype == tf.float64 else values


# The matrices of geometric steps, float64 `(..., 3, 3)`, from output to input pixel coordinates, of float64 scalars or tensors of the
# batch's shape `(...)`. Docstrings describe the motion of the picture, which is the inverse of the matrix.

Point: TypeAlias = "tuple[Scalar, Scalar]"


def mirrored(across: Scalar, down: Scalar, like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Flips the picture left to right if `across` is 1, not 0, and top to bottom if `down` is."""
    rows = [[1.0 - 2.0 * across, 0.0, across * (width - 1.0)], [0.0, 1.0 - 2.0 * down, down * (height - 1.0)], [0.0, 0.0, 1.0]]
    return stack(rows, like)


def quarter_turned(turns: tf.Tensor, mirror: Scalar, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Flips the picture left to right if `mirror` is 1, not 0, and then rotates it counter-clockwise by 0 to 3 quarters."""
    odd = tf.math.floormod(turns, 2.0)
    across = tf.cast(tf.logical_or(turns == 1.0, turns == 2.0), tf.float64)
    across = across + mirror - 2.0 * across * mirror
    down = tf.cast(turns >= 2.0, tf.float64)
    right, low = 1.0 - 2.0 * across, 1.0 - 2.0 * down
    rows = [
        [(1.0 - odd) * right, odd * right, across * (width - 1.0)],
        [odd * low, (1.0 - odd) * low, down * (height - 1.0)],
        [0.0, 0.0, 1.0],
    ]
    return stack(rows, turns)


def turned(angle: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Rotates the picture about the centre, visually counter-clockwise, by an angle in radians."""
    cos, sin = tf.cos(angle), tf.sin(angle)
    return about_centre(((cos, -sin), (sin, cos)), angle, height, width)


def slanted(x: Scalar, y: Scalar, like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Shears the picture about the centre by slopes: content moves to x' = x + `x` y, and then to y' = y + `y` x'."""
    return about_centre(((1.0 + x * y, -x), (-y, 1.0)), like, height, width)


def magnified(across: tf.Tensor, down: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Magnifies the picture about the centre by a factor for each side."""
    return about_centre(((1.0 / across, 0.0), (0.0, 1.0 / down)), across, height, width)


def moved(right: tf.Tensor, down: tf.Tensor) -> tf.Tensor:
    """Moves the picture by distances in pixels."""
    return stack([[1.0, 0.0, -right], [0.0, 1.0, -down], [0.0, 0.0, 1.0]], right)


def affine(
    *, degrees: tf.Tensor, x: tf.Tensor, y: tf.Tensor, shear: Point, factor: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
    """Magnifies (by a factor above 1), shears and rotates the picture about the centre, and then moves it.

    Angles are in degrees, counter-clockwise, those of the shear along x and along y; `x` and `y` are the distances to the right and down as
    fractions of the width and the height of the canvas, float64 scalars in pixels.
    """
    along_x, along_y = (tf.tan(radians(angle)) for angle in shear)
    matrix = multiply(magnified(factor, factor, height, width), slanted(along_x, along_y, degrees, height, width))
    return multiply(multiply(matrix, turned(radians(degrees), height, width)), moved(x * width, y * height))


def cornered(corners: Sequence[Point], like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Moves the top left, top right, bottom left and bottom right corner of the picture to the right and down, by fractions of the width
    and the height of the canvas, float64 scalars in pixels: to a convex quadrilateral that is not flipped. Corners are those of the
    outermost pixels.

    It is the inverse, by the adjugate, of the map from the unit square to a quadrilateral in closed form (P. Heckbert, Fundamentals of
    Texture Mapping and Image Warping, 1989, section 2.2.3), so that the third coordinate is positive on the picture.
    """
    unit = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    (x0, y0), (x1, y1), (x3, y3), (x2, y2) = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(unit, corners, strict=True)]
    sx, sy = x0 - x1 + x2 - x3, y0 - y1 + y2 - y3
    ax, ay, bx, by = x1 - x2, y1 - y2, x3 - x2, y3 - y2
    area = ax * by - bx * ay
    g, h = (sx * by - bx * sy) / area, (ax * sy - sx * ay) / area
    a, b, c = x1 - x0 + g * x1, x3 - x0 + h * x3, x0
    d, e, f = y1 - y0 + g * y1, y3 - y0 + h * y3, y0
    inverse = [
        [e - f * h, c * h - b, b * f - c * e],
        [f * g - d, a - c * g, c * d - a * f],
        [d * h - e * g, b * g - a * h, a * e - b * d],
    ]
    determinant = a * inverse[0][0] + b * inverse[1][0] + c * inverse[2][0]
    sides = (width, height, 1.0)
    rows = [[inverse[i][j] / determinant * (sides[i] / sides[j]) for j in range(3)] for i in range(3)]
    # From the corner of the first pixel, the origin of fractions, to its centre, and back.
    across, down, w = ((p, q, (p + q) * 0.5 + r) for p, q, r in rows)
    back = [[v - 0.5 * o for v, o in zip(row, w, strict=True)] for row in (across, down)]
    return stack([*back, list(w)], like)
