"""`random_grid_shuffle`: shuffled cells of an image."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import as_pair
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.traits import Traits, same_type
from pipegen.types import FeatureType

Cells = Annotated[int, Field(ge=1, le=16)]


class RandomGridShuffle(DisplacementTransform):
    """Divides the image by a regular grid and shuffles its cells, every order as likely: a jigsaw puzzle.

    Cells have one size, in whole pixels; the rest of a side stays at the bottom and at the right. Pixels are copied, and masks move with
    their image. Boxes and points do not move, since a cell may cut the objects that they mark.
    """

    op = "random_grid_shuffle"
    cost = 1.6
    random = True
    pairs = frozenset({"cells"})
    examples = same_type("random_grid_shuffle: {cells: 3}", "random_grid_shuffle: {cells: [2, 4], probability: 0.5}")

    cells: Cells | tuple[Cells, Cells] = 3
    """The number of rows and of columns of the grid, at most 16; a pair is `[rows, columns]`."""

    def idle(self) -> bool:
        return super().idle() or as_pair(self.cells) == (1, 1)

    def traits(self, x: FeatureType) -> Traits:
        return replace(super().traits(x), displaces=False)  # a field with jumps has no inverse that could move points

    def infer(self, x: FeatureType) -> FeatureType:
        rows, columns = as_pair(self.cells)
        if (x.height is not None and x.height < rows) or (x.width is not None and x.width < columns):
            message = f"`{self.op}` needs a pixel for each of {rows}×{columns} cells, and gets {x.height}×{x.width}"
            raise OpError("PG206", message, field="cells", help="take fewer cells")
        return super().infer(x)

    def num_draws(self) -> int:
        rows, columns = as_pair(self.cells)
        return rows * columns

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`order`: the cell that is shown in the place of each, counted by rows, int32 `(..., cells)`."""
        return {"order": tf.argsort(u, axis=-1, stable=True)}

    def phase(self, images: tf.Tensor, order: tf.Tensor) -> tuple[tf.Tensor, ...]:
        rows, columns = as_pair(self.cells)
        height, width, _ = sides(images)
        down, across = height // rows, width // columns
        row, column = tf.range(height) // down, tf.range(width) // across
        inside = (row < rows)[:, None] & (column < columns)
        own = tf.minimum(row, rows - 1)[:, None] * columns + tf.minimum(column, columns - 1)
        shown = tf.reshape(tf.gather(order, tf.reshape(own, [-1]), axis=1), [-1, height, width])
        moved = shown // columns - own // columns, shown % columns - own % columns
        zero = tf.zeros_like(shown)
        return tf.where(inside, moved[1] * across * 256, zero), tf.where(inside, moved[0] * down * 256, zero)
