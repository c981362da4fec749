"""Slant images by a random angle."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, angle_lints, check_magnitude, symmetric_range
from pipegen.ops.base import IMAGE_224, Example, GeometricTransform
from pipegen.ops.lowering.affine import slanted
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.types import FeatureType


class RandomShear(GeometricTransform):
    """Slants an image about its centre by an angle drawn uniformly; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` draws two angles and slants along x first, then along y.
    """

    op = "random_shear"
    random = True
    examples = (
        Example("random_shear: {degrees: 10}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_shear: {degrees: [0, 15], axis: both}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    degrees: Magnitude
    """The angle in degrees: 10 means from -10 to 10, a pair is the range; it stays below 90."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, with an angle each."""

    @field_validator("degrees")
    @classmethod
    def _degrees(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_magnitude(value, "degrees", -89, 89)
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0 or symmetric_range(self.degrees) == (0, 0)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return angle_lints(self.op, self.degrees, most=60, why="little of the picture is left beyond 60")

    def num_draws(self) -> int:
        return 2 if self.axis == "both" else 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`degrees`; along both axes `degrees_x` and `degrees_y`."""
        names = ("degrees_x", "degrees_y") if self.axis == "both" else ("degrees",)
        return {name: uniform(u[..., i], symmetric_range(self.degrees)) for i, name in enumerate(names)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        slopes = [tf.tan(radians(degrees)) for degrees in self.drawn(u).values()]
        first, last = slopes[0], slopes[-1]
        return slanted(first if self.axis != "y" else 0.0, last if self.axis != "x" else 0.0, first, height, width)
