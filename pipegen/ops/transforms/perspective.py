"""`perspective` and `random_perspective`."""

from __future__ import annotations

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Amount, Number, needs_one
from pipegen.ops.lowering.linear import cornered, uniform, zeros_for
from pipegen.ops.step_bases import GeometricTransform, UnconditionalTransform, UniformTransform
from pipegen.ops.traits import Family, Traits, same_type
from pipegen.types import FeatureType

Corner = tuple[Number, Number]


class PerspectiveTransform(GeometricTransform):
    """A projective map that moves the corners."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, projective=True)


class Perspective(UnconditionalTransform, PerspectiveTransform):
    """Shows every image in perspective: its corners move, and straight lines stay straight.

    A corner moves by `[x, y]`: x to the right, as a fraction of the width, and y down, as a fraction of the height. A corner without a
    value stays in its place. `fill` shows outside the picture, and in place of what would lie behind the viewer.
    """

    op = "perspective"
    examples = same_type(
        "perspective: {top_left: [0.15, 0], top_right: [-0.15, 0]}", "perspective: {bottom_right: [-0.2, -0.1], fill: {constant: 0}}"
    )

    top_left: Corner = (0.0, 0.0)
    """How far the top left corner moves, [x, y] in fractions of the sides, to the right and down."""
    top_right: Corner = (0.0, 0.0)
    """How far the top right corner moves, [x, y] in fractions of the sides, to the right and down."""
    bottom_left: Corner = (0.0, 0.0)
    """How far the bottom left corner moves, [x, y] in fractions of the sides, to the right and down."""
    bottom_right: Corner = (0.0, 0.0)
    """How far the bottom right corner moves, [x, y] in fractions of the sides, to the right and down."""

    _given = needs_one("top_left", "top_right", "bottom_left", "bottom_right")

    def _moves(self) -> tuple[Corner, ...]:
        return self.top_left, self.top_right, self.bottom_left, self.bottom_right

    @model_validator(mode="after")
    def _convex(self) -> Perspective:
        unit = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
        moved = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(unit, self._moves(), strict=True)]
        around = [moved[i] for i in (0, 1, 3, 2)]
        for (ax, ay), (bx, by), (cx, cy) in zip(around, around[1:] + around[:1], around[2:] + around[:2], strict=True):
            if (bx - ax) * (cy - by) - (by - ay) * (cx - bx) < 1e-6:
                raise ValueError("the corners no longer make a convex picture: one of them has crossed the line between two others")
        return self

    def idle(self) -> bool:
        return set(self._moves()) == {(0, 0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        return cornered([(like + x, like + y) for x, y in self._moves()], like, height, width)


class RandomPerspective(UniformTransform, PerspectiveTransform):
    """Shows an image in perspective: each of its corners moves by distances of its own, and straight lines stay straight.

    Eight numbers are drawn uniformly: how far the top left, top right, bottom left and bottom right corner go to the
    right (`x`) and down (`y`). `fill` shows outside the picture, and in place of what would lie behind the viewer. (Keras' layer calls the
    distance `scale`, draws up to half of it, and leaves the top left corner in place; its `factor` is the `probability` here.)
    """

    op = "random_perspective"
    draws = 8
    examples = same_type("random_perspective: {x: 0.1, y: 0.1}", "random_perspective: {x: 0.2, probability: 0.5, fill: {constant: 0}}")

    x: Amount = 0.0
    """How far each corner goes to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Amount = 0.0
    """How far each corner goes down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""

    _given = needs_one("x", "y", message="give `x` (a fraction of the width), `y` (a fraction of the height), or both")

    @model_validator(mode="after")
    def _convex(self) -> RandomPerspective:
        if self._spread() >= 1:
            # Of three corners in a row the product of the sides is (1 - spread of x)(1 - spread of y) - spread of x · spread of y.
            raise ValueError(
                f"corners must not cross, so the ranges of `x` and `y` must span less than 1 together; they span {self._spread():g} "
                "(`x: 0.1` spans 0.2, from -0.1 to 0.1)"
            )
        return self

    def _spread(self) -> float:
        """How far the corners can move apart: at 0 all move alike, and from 1 on three of them can lie on one line."""
        return sum(high - low for low, high in self.ranges().values())

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if self._spread() <= 0.9:
            return ()
        message = f"`{self.op}` can fold an image almost flat: its ranges span {self._spread():g}, and at 1 corners cross"
        return (OpError("PG510", message, help="common values lie between 0.05 and 0.2"),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`x` and `y` of the top left, top right, bottom left and bottom right corner, `(..., 4)` each."""
        return {name: uniform(u[..., i::2], bounds) for i, (name, bounds) in enumerate(self.ranges().items())}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        corners = [(drawn["x"][..., i], drawn["y"][..., i]) for i in range(4)]
        return cornered(corners, corners[0][0], height, width)
