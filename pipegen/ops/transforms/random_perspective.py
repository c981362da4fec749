"""Show images in a random perspective."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude
from pipegen.ops.base import IMAGE_224, Example, Family, Traits
from pipegen.ops.families.uniform import UniformGeometric
from pipegen.ops.lowering.affine import cornered
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType


class RandomPerspective(UniformGeometric):
    """Shows an image in perspective: each of its corners moves by distances of its own, and straight lines stay straight.

    Eight numbers are drawn uniformly: how far the top left, top right, bottom left and bottom right corner go to the
    right (`x`) and down (`y`). Where the picture does not reach is `fill`; so is what would lie behind the viewer.
    (Keras' layer calls the distance `scale`, of which it draws up to one half, and leaves the top left corner where it
    is; its `factor` is the `probability` here.)
    """

    op = "random_perspective"
    examples = (
        Example("random_perspective: {x: 0.1, y: 0.1}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_perspective: {x: 0.2, probability: 0.5, fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    x: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """How far each corner goes to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """How far each corner goes down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""

    @model_validator(mode="after")
    def _convex(self) -> RandomPerspective:
        if not self.model_fields_set & {"x", "y"}:
            raise ValueError("give `x` (a fraction of the width), `y` (a fraction of the height), or both")
        if self._spread() >= 1:
            # Of three corners in a row the product of the sides is (1 - spread of x)(1 - spread of y) - spread of x · spread of y.
            raise ValueError(
                f"corners must not cross, so the ranges of `x` and `y` must span less than 1 together; they span {self._spread():g} "
                "(`x: 0.1` spans 0.2, from -0.1 to 0.1)"
            )
        return self

    def _spread(self) -> float:
        """Returns how far corners can come apart: 0 moves them all alike, and from 1 on three of them can lie on one line."""
        return sum(high - low for low, high in self.ranges().values())

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, projective=True)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if self._spread() <= 0.9:
            return ()
        message = f"`{self.op}` can fold a picture almost flat: its ranges span {self._spread():g}, and at 1 corners cross"
        return (OpError("PG510", message, help="common values lie between 0.05 and 0.2"),)

    def num_draws(self) -> int:
        return 8

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`x` and `y` of the top left, top right, bottom left and bottom right corner, `(..., 4)` each."""
        return {name: uniform(u[..., i::2], bounds) for i, (name, bounds) in enumerate(self.ranges().items())}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        corners = [(drawn["x"][..., i], drawn["y"][..., i]) for i in range(4)]
        return cornered(corners, corners[0][0], height, width)
