"""Conversion of points from a stored image to the upright one."""

from __future__ import annotations

from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.exif import TURNS


def turned_points(points: Any, orientation: int, sides: Any) -> Any:
    """Turns points like `exif.orient` turns pixels.

    Args:
        points: x and y, `(n, ..., 2)`.
        orientation: The EXIF orientation, 1 to 8.
        sides: The largest y and x on the stored image of each, `(n, 2)`.
    """
    transposes, mirrored = TURNS[orientation]
    high, wide = (np.reshape(side, [-1, *([1] * (points.ndim - 2))]) for side in (sides[:, 0], sides[:, 1]))
    x, y = points[..., 0], points[..., 1]
    if transposes:
        x, y, high, wide = y, x, wide, high
    return np.stack([wide - x if 1 in mirrored else x, high - y if 0 in mirrored else y], -1)
