"""Show images in perspective."""

from __future__ import annotations

from pydantic import model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.checks import needs_one
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.base import IMAGE_224, Example, Family, Traits
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import cornered
from pipegen.ops.lowering.linear import zeros_for
from pipegen.types import FeatureType

Corner = tuple[Number, Number]


class Perspective(DeterministicGeometric):
    """Shows every image in perspective: its corners move, and straight lines stay straight.

    A corner moves by `[x, y]`: x to the right, as a fraction of the width, and y down, as a fraction of the height. A
    corner without a value stays in its place. `fill` shows where the picture does not reach, and what would lie behind the viewer.
    """

    op = "perspective"
    examples = (
        Example("perspective: {top_left: [0.15, 0], top_right: [-0.15, 0]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("perspective: {bottom_right: [-0.2, -0.1], fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
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

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, projective=True)

    def idle(self) -> bool:
        return set(self._moves()) == {(0, 0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        return cornered([(like + x, like + y) for x, y in self._moves()], like, height, width)
