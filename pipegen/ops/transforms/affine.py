"""`affine` and `random_affine`: zoom, slant, turn and move images in one step."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, FAR, SLANT, STEEP, TURN, Amount, Degrees, Magnitude, Number, needs_one, odd_factor
from pipegen.ops.lowering.linear import affine
from pipegen.ops.step_bases import AmountTransform, FixedTransform, GeometricTransform, UniformTransform
from pipegen.ops.traits import same_type

Angle = Annotated[float, Field(ge=-89, le=89), STEEP]


class AffineTransform(AmountTransform, GeometricTransform):
    """A zoom, a shear, a rotation and a translation, as one matrix."""

    factors = frozenset({"factor"})

    _given = needs_one("degrees", "x", "y", "shear_x", "shear_y", "factor")

    def reach(self) -> Reach:
        r = self.ranges()
        return Reach.of_zoom(r["factor"]).then(Reach.of_slant(r["shear_x"], r["shear_y"])).then(Reach.of_move(r["x"], r["y"]))

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        amounts = self.amounts(u)
        shear = amounts.pop("shear_x"), amounts.pop("shear_y")
        return affine(**amounts, shear=shear, height=height, width=width)


class Affine(FixedTransform, AffineTransform):
    """Magnifies, slants and turns every image about its centre, in this order, and then moves it.

    It is the run of `zoom`, `shear`, `rotation` and `translation`, written as one step, with their directions.
    """

    op = "affine"
    examples = same_type("affine: {degrees: 15, x: 0.1, factor: 1.2}", "affine: {shear_x: 10, shear_y: -5, fill: {constant: 0}}")

    degrees: Annotated[Number, TURN] = 0.0
    """The angle in degrees, counter-clockwise."""
    x: Annotated[Number, FAR] = 0.0
    """The distance to the right, as a fraction of the width."""
    y: Annotated[Number, FAR] = 0.0
    """The distance down, as a fraction of the height."""
    shear_x: Angle = 0.0
    """The angle in degrees by which rows slide; a positive one moves the lower half to the right."""
    shear_y: Angle = 0.0
    """The angle in degrees by which columns slide, after the rows; a positive one moves the right half down."""
    factor: Annotated[Number, Field(gt=0), odd_factor(low=0.2, high=5.0, drawn=False)] = 1.0
    """The factor for both sides; above 1 magnifies."""


class RandomAffine(UniformTransform, AffineTransform):
    """Magnifies, slants and turns an image about its centre, in this order, and then moves it; each amount is drawn uniformly.

    It is the run of `random_zoom`, `random_shear`, `random_rotation` and `random_translation`, written as one step, with their
    directions. An argument without a value changes nothing.
    """

    op = "random_affine"
    examples = same_type(
        "random_affine: {degrees: 20, x: 0.1, y: 0.1, factor: 0.2}",
        "random_affine: {degrees: 10, shear_x: 10, shear_y: 5, interpolation: bicubic}",
        "random_affine: {x: [0, 0.1], factor: [0.5, 1], fill: {constant: 0}}",
    )

    degrees: Degrees = 0.0
    """The angle in degrees, counter-clockwise: 20 means from -20 to 20, a pair is the range."""
    x: Annotated[Amount, FAR] = 0.0
    """The distance to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Annotated[Amount, FAR] = 0.0
    """The distance down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""
    shear_x: Annotated[Magnitude, SLANT, STEEP] = 0.0
    """The angle in degrees, below 90, by which rows slide; a positive one moves the lower half to the right. 10 means from -10 to 10, a
    pair is the range."""
    shear_y: Annotated[Magnitude, SLANT, STEEP] = 0.0
    """The angle in degrees, below 90, by which columns slide, after the rows; a positive one moves the right half down. 10 means from
    -10 to 10, a pair is the range."""
    factor: Annotated[Magnitude, ABOVE_ZERO, odd_factor(low=0.2, high=5.0)] = 0.0
    """The factor for both sides; above 1 magnifies: 0.2 means from 0.8 to 1.2, a pair is the range."""
