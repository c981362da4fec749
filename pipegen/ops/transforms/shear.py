"""`shear` and `random_shear`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import SLANT, STEEP, Magnitude
from pipegen.ops.lowering.linear import radians, slanted
from pipegen.ops.step_bases import AmountTransform, FixedTransform, GeometricTransform, UniformTransform
from pipegen.ops.traits import same_type


class ShearTransform(AmountTransform, GeometricTransform):
    """A shear about the centre, along one axis or both."""

    if TYPE_CHECKING:  # an argument of each form, documented there
        axis: Literal["x", "y", "both"]

    def reach(self) -> Reach:
        bounds = next(iter(self.ranges().values()))
        return Reach.of_slant(*[bounds] * (2 if self.axis == "both" else 1))

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        slopes = [tf.tan(radians(degrees)) for degrees in self.amounts(u).values()]
        first, last = slopes[0], slopes[-1]
        return slanted(first if self.axis != "y" else 0.0, last if self.axis != "x" else 0.0, first, height, width)


class Shear(FixedTransform, ShearTransform):
    """Slants every image about its centre by one angle; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` slants along x first, then along y.
    """

    op = "shear"
    examples = same_type("shear: {degrees: 10}", "shear: {degrees: -5, axis: y, fill: wrap}")

    degrees: Annotated[float, Field(ge=-89, le=89), STEEP]
    """The angle in degrees, below 90."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, by the same angle."""


class RandomShear(UniformTransform, ShearTransform):
    """Slants an image about its centre by an angle drawn uniformly; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` draws two angles and slants along x first, then along y.
    """

    op = "random_shear"
    examples = same_type("random_shear: {degrees: 10}", "random_shear: {degrees: [0, 15], axis: both}")

    degrees: Annotated[Magnitude, SLANT, STEEP]
    """The angle in degrees, below 90: 10 means from -10 to 10, a pair is the range."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, by an angle each."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        return dict.fromkeys(("degrees_x", "degrees_y") if self.axis == "both" else ("degrees",), super().ranges()["degrees"])
