"""Slant images."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import STEEP
from pipegen.ops.arguments.reach import Reach
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import slanted
from pipegen.ops.lowering.linear import radians, zeros_for


class Shear(DeterministicGeometric):
    """Slants every image about its centre by one angle; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` slants along x first, then along y.
    """

    op = "shear"
    examples = (
        Example("shear: {degrees: 10}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("shear: {degrees: -5, axis: y, fill: wrap}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

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
