"""Slant images."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import SLANT, STEEP, Magnitude, symmetric_range
from pipegen.ops.families.uniform import DeterministicGeometric, UniformGeometric
from pipegen.ops.lowering.affine import slanted
from pipegen.ops.lowering.linear import radians, zeros_for
from pipegen.ops.traits import same_type


class Shear(DeterministicGeometric):
    """Slants every image about its centre by one angle; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` slants along x first, then along y.
    """

    op = "shear"
    examples = same_type("shear: {degrees: 10}", "shear: {degrees: -5, axis: y, fill: wrap}")

    degrees: Annotated[float, Field(ge=-89, le=89), STEEP]
    """The angle in degrees; it stays below 90."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, by the same angle."""

    def idle(self) -> bool:
        return self.degrees == 0

    def reach(self) -> Reach:
        return Reach.of_slant(*[(self.degrees, self.degrees)] * (2 if self.axis == "both" else 1))

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        slope = tf.tan(radians(like + self.degrees))
        return slanted(slope if self.axis != "y" else 0.0, slope if self.axis != "x" else 0.0, like, height, width)


class RandomShear(UniformGeometric):
    """Slants an image about its centre by an angle drawn uniformly; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` draws two angles and slants along x first, then along y.
    """

    op = "random_shear"
    examples = same_type("random_shear: {degrees: 10}", "random_shear: {degrees: [0, 15], axis: both}")

    degrees: Annotated[Magnitude, SLANT, STEEP]
    """The angle in degrees: 10 means from -10 to 10, a pair is the range; it stays below 90."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, with an angle each."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Of `degrees`; along both axes of `degrees_x` and `degrees_y`."""
        return dict.fromkeys(("degrees_x", "degrees_y") if self.axis == "both" else ("degrees",), symmetric_range(self.degrees))

    def reach(self) -> Reach:
        return Reach.of_slant(*self.ranges().values())

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        slopes = [tf.tan(radians(degrees)) for degrees in self.drawn(u).values()]
        first, last = slopes[0], slopes[-1]
        return slanted(first if self.axis != "y" else 0.0, last if self.axis != "x" else 0.0, first, height, width)
