"""Zoom, slant, turn and move images in one step."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, angle_lints, factor_lints, shift_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import affine
from pipegen.types import FeatureType

Angle = Annotated[float, Field(ge=-89, le=89)]


class Affine(DeterministicGeometric):
    """Magnifies, slants and turns every image about its centre, in this order, and then moves it.

    It is the run of `zoom`, `shear`, `rotation` and `translation`, written as one step; see there for the directions.
    """

    op = "affine"
    examples = (
        Example("affine: {degrees: 15, x: 0.1, factor: 1.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("affine: {shear_x: 10, shear_y: -5, fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    degrees: Number = 0.0
    """The angle in degrees, counter-clockwise."""
    x: Number = 0.0
    """The distance to the right, as a fraction of the width."""
    y: Number = 0.0
    """The distance down, as a fraction of the height."""
    shear_x: Angle = 0.0
    """The angle in degrees by which rows slide: a positive one moves the lower half to the right."""
    shear_y: Angle = 0.0
    """The angle in degrees by which columns slide, after the rows have: a positive one moves the right half down."""
    factor: Annotated[Number, Field(gt=0)] = 1.0
    """The factor for both sides; above 1 magnifies."""

    @model_validator(mode="after")
    def _given(self) -> Affine:
        if not self.model_fields_set & {"degrees", "x", "y", "shear_x", "shear_y", "factor"}:
            raise ValueError("give at least one of `degrees`, `x`, `y`, `shear_x`, `shear_y` and `factor`")
        return self

    def is_identity(self, x: FeatureType) -> bool:
        return (self.degrees, self.x, self.y, self.shear_x, self.shear_y, self.factor) == (0, 0, 0, 0, 0, 1)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        little = "little of the picture is left beyond 60"
        return (
            *angle_lints(self.op, self.degrees, most=360, why="a full turn is 360"),
            *angle_lints(self.op, self.shear_x, most=60, why=little, field="shear_x"),
            *angle_lints(self.op, self.shear_y, most=60, why=little, field="shear_y"),
            *shift_lints("x", self.x),
            *shift_lints("y", self.y),
            *factor_lints(self.op, "factor", (self.factor, self.factor), 0.2, 5.0),
        )

    def fixed(self, like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        degrees, x, y, factor = (like + v for v in (self.degrees, self.x, self.y, self.factor))
        shear = (like + self.shear_x, like + self.shear_y)
        return affine(degrees=degrees, x=x, y=y, shear=shear, factor=factor, height=height, width=width)
