"""3x3 matrices of geometric steps, from output to input pixel coordinates.

Every function takes float64 scalars or tensors of the batch's shape `(...)` and returns float64 `(..., 3, 3)`. Docstrings describe the
motion of the picture, which is the inverse of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.linear import about_centre, multiply, radians, stack

Scalar: TypeAlias = "float | tf.Tensor"
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
