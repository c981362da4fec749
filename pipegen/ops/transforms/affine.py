"""Zoom, slant, turn and move images in one step."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.checks import needs_one
from pipegen.ops.arguments.magnitudes import FAR, STEEP, TURN, Number, Odd, factor_lints
from pipegen.ops.arguments.reach import Reach
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import affine
from pipegen.ops.lowering.linear import zeros_for

Angle = Annotated[float, Field(ge=-89, le=89), STEEP]


class Affine(DeterministicGeometric):
    """Magnifies, slants and turns every image about its centre, in this order, and then moves it.

    It is the run of `zoom`, `shear`, `rotation` and `translation`, written as one step; see there for the directions.
    """

    op = "affine"
    examples = (
        Example("affine: {degrees: 15, x: 0.1, factor: 1.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("affine: {shear_x: 10, shear_y: -5, fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    degrees: Annotated[Number, TURN] = 0.0
    """The angle in degrees, counter-clockwise."""
    x: Annotated[Number, FAR] = 0.0
    """The distance to the right, as a fraction of the width."""
    y: Annotated[Number, FAR] = 0.0
    """The distance down, as a fraction of the height."""
    shear_x: Angle = 0.0
    """The angle in degrees by which rows slide: a positive one moves the lower half to the right."""
    shear_y: Angle = 0.0
    """The angle in degrees by which columns slide, after the rows have: a positive one moves the right half down."""
    factor: Annotated[Number, Field(gt=0), Odd(factor_lints, low=0.2, high=5.0, drawn=False)] = 1.0
    """The factor for both sides; above 1 magnifies."""

    _given = needs_one("degrees", "x", "y", "shear_x", "shear_y", "factor")

    def idle(self) -> bool:
        return (self.degrees, self.x, self.y, self.shear_x, self.shear_y, self.factor) == (0, 0, 0, 0, 0, 1)

    def reach(self) -> Reach:
        slants = Reach.of_slant((self.shear_x, self.shear_x), (self.shear_y, self.shear_y))
        return Reach.of_zoom((self.factor, self.factor)).then(slants).then(Reach.of_move((self.x, self.x), (self.y, self.y)))

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        degrees, x, y, factor = (like + v for v in (self.degrees, self.x, self.y, self.factor))
        shear = (like + self.shear_x, like + self.shear_y)
        return affine(degrees=degrees, x=x, y=y, shear=shear, factor=factor, height=height, width=width)
