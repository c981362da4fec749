"""Replace a random rectangle of each cell of a grid over images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.dropouts import WORD, DropoutTransform, covered
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.threefry import half_words, key_of

Cells = Annotated[int, Field(ge=1, le=WORD)]


class RandomGridDropout(DropoutTransform):
    """Replaces one rectangle in each cell of a grid by one value, at a place in its cell that is drawn for each.

    The image is cut into `cells` rows and columns of cells, which differ by a pixel at most. A hole has `ratio` of the
    height and of the width of its cell, rounded down, and at least one pixel. Its place is drawn by 16 random bits
    (Threefry-2x32) across and 16 down.
    """

    op = "random_grid_dropout"
    starts_kernel = True
    examples = (
        Example("random_grid_dropout: {cells: 6}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_grid_dropout: {cells: [4, 8], ratio: 0.3, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    cells: Cells | tuple[Cells, Cells]
    """How many rows and columns of cells there are, at most 31; a pair is `[rows, columns]`."""
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The sides of a hole as a fraction of those of its cell."""

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"cells": list(self._grid())}

    def num_draws(self) -> int:
        return 2

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The upper left corners of the holes, row by row: `top` and `left`, int32 `(n, rows · columns)`, in pixels."""
        (top, _), (left, _) = self._holes(key_of(u), shape[0], shape[1])
        rows, columns = self._grid()
        return {"top": tf.reshape(top, [-1, rows * columns]), "left": tf.reshape(left, [-1, rows * columns])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (key_of(u),)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._lines,)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        down, across = given
        own = tf.gather(across, self._row_of(sides(images)[0]), axis=1)
        return tf.not_equal(tf.bitwise.bitwise_and(down[:, :, None], own), 0)

    def _lines(self, images: tf.Tensor, key: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Of each row of pixels, which holes of its row of cells cover it, int32 `(n, height)`; and of each column of pixels, which holes
        of every row of cells: `(n, rows, width)`. A bit stands for a column of cells."""
        height, width, _ = sides(images)
        (top, tall), (left, wide) = self._holes(key, height, width)
        own = self._row_of(height)
        start, line = tf.gather(top, own, axis=1), tf.range(height)[None, :, None]
        inside = tf.logical_and(line >= start, line < start + tf.gather(tall, own)[None, :, None])
        bits = tf.bitwise.left_shift(1, tf.range(self._grid()[1]))
        return tf.reduce_sum(tf.where(inside, bits, 0), -1), covered(left, tf.zeros_like(left) + wide, width)

    def _holes(self, key: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], ...]:
        """The places of the holes, int32 `(n, rows, columns)`, and how long they are, of each row or column of cells: down, then across."""
        rows, columns = self._grid()
        words = tf.cast(tf.reshape(half_words(key, 2 * rows * columns), [-1, 2, rows, columns]), tf.int32)
        found = []
        for axis, (cells, side) in enumerate(((rows, height), (columns, width))):
            edges = tf.range(cells + 1) * side // cells
            cell = edges[1:] - edges[:-1]
            hole = tf.minimum(cell, tf.maximum(1, tf.cast(tf.floor(tf.cast(cell, tf.float64) * self.ratio), tf.int32)))
            first, spare = (v if axis else v[:, None] for v in (edges[:-1], cell - hole + 1))
            found.append((first + tf.bitwise.right_shift(words[:, axis] * spare, 16), hole))
        return tuple(found)

    def _row_of(self, height: int | tf.Tensor) -> tf.Tensor:
        """The row of cells that each row of pixels belongs to, int32 `(height,)`."""
        return ((tf.range(height) + 1) * self._grid()[0] - 1) // height

    def _grid(self) -> tuple[int, int]:
        return self.cells if isinstance(self.cells, tuple) else (self.cells, self.cells)
