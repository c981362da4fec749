"""Zoom, slant, turn and move images at random, in one step."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import (
    Magnitude,
    angle_lints,
    check_factor,
    check_magnitude,
    factor_lints,
    factor_range,
    shift_lints,
    symmetric_range,
)
from pipegen.ops.base import IMAGE_224, Example, GeometricTransform
from pipegen.ops.lowering.affine import affine
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType


class RandomAffine(GeometricTransform):
    """Magnifies, slants and turns an image about its centre, in this order, and then moves it; each amount is drawn uniformly.

    It is the run of `random_zoom`, `random_shear`, `random_rotation` and `random_translation`, written as one step; see
    there for the directions. An argument without a value changes nothing.
    """

    op = "random_affine"
    random = True
    factors = frozenset({"factor"})
    examples = (
        Example("random_affine: {degrees: 20, x: 0.1, y: 0.1, factor: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_affine: {degrees: 10, shear_x: 10, shear_y: 5, interpolation: bicubic}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_affine: {x: [0, 0.1], factor: [0.5, 1], fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    degrees: Magnitude = 0.0
    """The angle in degrees, counter-clockwise: 20 means from -20 to 20, a pair is the range."""
    x: Magnitude = 0.0
    """The distance to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Magnitude = 0.0
    """The distance down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""
    shear_x: Magnitude = 0.0
    """The angle in degrees by which rows slide, a positive one moving the lower half to the right: 10 means from -10 to 10,
    a pair is the range; it stays below 90."""
    shear_y: Magnitude = 0.0
    """The angle in degrees by which columns slide, after the rows have, a positive one moving the right half down: 10 means
    from -10 to 10, a pair is the range; it stays below 90."""
    factor: Magnitude = 0.0
    """The factor for both sides; above 1 magnifies: 0.2 means from 0.8 to 1.2, a pair is the range."""

    @field_validator("degrees", "x", "y")
    @classmethod
    def _around_zero(cls, value: Magnitude, info: ValidationInfo) -> Magnitude:
        check_magnitude(value, info.field_name or "")
        return value

    @field_validator("shear_x", "shear_y")
    @classmethod
    def _slant(cls, value: Magnitude, info: ValidationInfo) -> Magnitude:
        check_magnitude(value, info.field_name or "", -89, 89)
        return value

    @field_validator("factor")
    @classmethod
    def _factor(cls, value: Magnitude) -> Magnitude:
        check_factor(value, "factor", exclusive=True)
        return value

    @model_validator(mode="after")
    def _given(self) -> RandomAffine:
        if not self.model_fields_set & {"degrees", "x", "y", "shear_x", "shear_y", "factor"}:
            raise ValueError("give at least one of `degrees`, `x`, `y`, `shear_x`, `shear_y` and `factor`")
        return self

    def _ranges(self) -> tuple[tuple[float, float], ...]:
        """Of the angle, the distances, the slants and the factor."""
        around_zero = (self.degrees, self.x, self.y, self.shear_x, self.shear_y)
        return (*(symmetric_range(m) for m in around_zero), factor_range(self.factor))

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0 or self._ranges() == (*[(0, 0)] * 5, (1, 1))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        little = "little of the picture is left beyond 60"
        return (
            *angle_lints(self.op, self.degrees, most=180, why="a full turn is [-180, 180]"),
            *angle_lints(self.op, self.shear_x, most=60, why=little, field="shear_x"),
            *angle_lints(self.op, self.shear_y, most=60, why=little, field="shear_y"),
            *shift_lints("x", self.x),
            *shift_lints("y", self.y),
            *factor_lints(self.op, "factor", self.factor, 0.2, 5.0),
        )

    def num_draws(self) -> int:
        return 6

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        names = ("degrees", "x", "y", "shear_x", "shear_y", "factor")
        return {name: uniform(u[..., i], bounds) for i, (name, bounds) in enumerate(zip(names, self._ranges(), strict=True))}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        shear = drawn.pop("shear_x"), drawn.pop("shear_y")
        return affine(**drawn, shear=shear, height=height, width=width)
