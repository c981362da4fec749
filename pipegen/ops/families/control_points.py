"""Distortions that a grid of control points decides: each is read at distances of its own, and the pixels between them follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude, symmetric_range
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType

MOST_CELLS = 8


class ControlPointTransform(UniformTransform, DisplacementTransform):
    """Reads the points of a grid over the image, its edges included, at other places, and each pixel where a sum of functions says.

    Positions are fractions of the sides: (0, 0) is the top left corner of the image and (1, 1) the bottom right one.
    """

    x: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """How far to the right of itself each point is read, as a fraction of the width: 0.05 means from -0.05 to 0.05, a pair is the range."""
    y: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """How far below itself each point is read, as a fraction of the height: 0.05 means from -0.05 to 0.05, a pair is the range."""
    cells: Annotated[int, Field(ge=1, le=MOST_CELLS)] = 4
    """How many cells of the grid there are to a side: 4 means 5 × 5 points."""

    @model_validator(mode="after")
    def _moves_something(self) -> ControlPointTransform:
        if not self.model_fields_set & {"x", "y"}:
            raise ValueError("give `x` (a fraction of the width), `y` (a fraction of the height), or both")
        return self

    def basis(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """Returns the functions whose weighted sum is the displacement at positions, float64 `(k, ...)`, of float64 `(...)` each."""
        raise NotImplementedError

    def weights(self, moved: tf.Tensor) -> tf.Tensor:
        """Returns the weights of these functions, float64 `(n, 2, k)`, from how far to the right and down each point is read."""
        return moved

    def points(self) -> list[tuple[float, float]]:
        """Returns where the points are, `(x, y)`, row by row."""
        lines = [i / self.cells for i in range(self.cells + 1)]
        return [(x, y) for y in lines for x in lines]

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        for name in ("x", "y"):
            low, high = symmetric_range(getattr(self, name))
            if (high - low) * self.cells > 1:
                message = f"two neighbours of the {self.cells + 1} points to a side can pass each other, so the image folds over itself"
                help_ = f"with `cells: {self.cells}` a range of at most {1 / self.cells:.3g} in width keeps it flat"
                return (OpError("PG510", f"`{self.op}`: {message}", field=name, help=help_),)
        return super().lints(x)

    def weight(self) -> float:
        return 2.0 + (self.cells + 1) ** 2 / 25

    def num_draws(self) -> int:
        return 2 * (self.cells + 1) ** 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns how far from itself each point is read, row by row: fractions of the side, float64 `(..., points)`."""
        across, down = tf.split(u, 2, axis=-1)
        ranges = self.ranges()
        return {"x": uniform(across, ranges["x"]), "y": uniform(down, ranges["y"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        across, down = (256.0 * drawn[name] * tf.cast(side, tf.float64) for name, side in (("x", width), ("y", height)))
        return (self.weights(tf.stack([across, down], 1)),)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._displacements,)

    def _displacements(self, images: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns how far to the right and down each pixel is read, int32 `(n, height, width)`, in 1/256 pixel.

        The sum is one of float64, and so differs by far less than what is rounded away, in whichever order it is made.
        """
        height, width, _ = sides(images)
        down, across = ((tf.cast(tf.range(side), tf.float64) + 0.5) / tf.cast(side, tf.float64) for side in (height, width))
        x, y = tf.meshgrid(across, down)
        basis = self.basis(x, y)
        total = tf.linalg.matmul(tf.reshape(weights, [-1, basis.shape[0]]), tf.reshape(basis, [basis.shape[0], -1]))
        moved = tf.reshape(tf.cast(tf.round(total), tf.int32), [-1, 2, height, width])
        return moved[:, 0], moved[:, 1]
