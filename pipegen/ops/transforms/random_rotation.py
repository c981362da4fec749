"""Rotate images by a random angle."""

from __future__ import annotations

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, angle_lints, check_magnitude, symmetric_range
from pipegen.ops.base import IMAGE_224, Example, GeometricTransform
from pipegen.ops.lowering.affine import turned
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.types import FeatureType


class RandomRotation(GeometricTransform):
    """Turns an image about its centre by an angle drawn uniformly.

    Positive angles turn the picture counter-clockwise as you see it. The canvas keeps its size; what turns in from
    outside is `fill`.
    """

    op = "random_rotation"
    random = True
    examples = (
        Example("random_rotation: {degrees: 20}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_rotation: {degrees: [0, 90], fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    degrees: Magnitude
    """The angle in degrees, counter-clockwise: 20 means from -20 to 20, a pair is the range."""

    @field_validator("degrees")
    @classmethod
    def _degrees(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_magnitude(value, "degrees")
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0 or symmetric_range(self.degrees) == (0, 0)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return angle_lints(self.op, self.degrees, most=180, why="a full turn is [-180, 180]")

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"degrees": uniform(u[..., 0], symmetric_range(self.degrees))}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return turned(radians(self.drawn(u)["degrees"]), height, width)
