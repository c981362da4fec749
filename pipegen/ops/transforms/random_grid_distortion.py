"""Distort images by stretching the rows and columns of a grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, Magnitude, Odd, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import uniform


class RandomGridDistortion(UniformTransform, DisplacementTransform):
    """Divides the image by a regular grid, and makes each row and each column of it wider or narrower by a factor of its own,
    drawn uniformly.

    The widths are scaled so that they fill the image again: its edges stay where they are, and nothing is uncovered. Between
    the lines of the grid positions are linear. (Albumentations' step is this with `normalized: true`; its columns are whole
    pixels wide, and what is left over is one more.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_grid_distortion"
    factors = frozenset({"factor"})
    examples = (
        Example("random_grid_distortion", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_grid_distortion: {factor: 0.5, cells: 3, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    factor: Annotated[Magnitude, ABOVE_ZERO, Odd(factor_lints, low=0.1, high=5)] = 0.3
    """What each row and column of the grid is stretched by, before all of them fill the image again: 0.3 means from 0.7 to 1.3, a pair
    is the range."""
    cells: Annotated[int, Field(ge=2, le=64)] = 5
    """How many rows and how many columns the grid has."""

    def weight(self) -> float:
        return 1.5

    def num_draws(self) -> int:
        return 2 * self.cells

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns which part of the width and height that is read each column and row has: float64 `(..., cells)`, which sum to 1."""
        stretched = (uniform(part, self.ranges()["factor"]) for part in tf.split(u, 2, axis=-1))
        columns, rows = (part / tf.reduce_sum(part, axis=-1, keepdims=True) for part in stretched)
        return {"columns": columns, "rows": rows}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        return _line(drawn["columns"], width), _line(drawn["rows"], height)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (_displacements,)


def _line(parts: tf.Tensor, side: int | tf.Tensor) -> tf.Tensor:
    """Returns how far along a side each of its pixels is read, in 1/256 pixel: int32 `(n, side)`.

    Args:
        parts: float64 `(n, cells)`, which part of it each cell reads.
        side: Its length, in pixels.
    """
    cells, length = int(parts.shape[1]), tf.cast(side, tf.float64)
    lines = tf.pad(tf.cumsum(parts, axis=1) * length, [[0, 0], [1, 0]])
    centre = tf.cast(tf.range(side), tf.float64) + 0.5
    place = centre * float(cells) / length
    cell = tf.minimum(tf.cast(place, tf.int32), cells - 1)
    first, last = (tf.gather(lines, cell + i, axis=1) for i in (0, 1))
    read = first + (last - first) * (place - tf.cast(cell, tf.float64))
    return tf.cast(tf.round((read - centre) * 256.0), tf.int32)


def _displacements(images: tf.Tensor, right: tf.Tensor, down: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns how far to the right and down each pixel is read, int32 `(n, height, width)`, in 1/256 pixel."""
    height, width, _ = sides(images)
    size = [tf.shape(right)[0], height, width]
    return tf.broadcast_to(right[:, None, :], size), tf.broadcast_to(down[:, :, None], size)
