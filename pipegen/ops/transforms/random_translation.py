"""Move images by a random distance."""

from __future__ import annotations

from pydantic import field_validator, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_magnitude, shift_lints, symmetric_range
from pipegen.ops.base import IMAGE_224, Example, GeometricTransform
from pipegen.ops.lowering.affine import moved
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType


class RandomTranslation(GeometricTransform):
    """Moves the picture by fractions of its sides, drawn uniformly and independently.

    Positive `x` moves the picture to the right and positive `y` moves it down: with `x: [0.1, 0.1]` an image 200
    pixels wide shows its first column at column 20.
    """

    op = "random_translation"
    random = True
    examples = (
        Example("random_translation: {x: 0.1, y: 0.1}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_translation: {x: [0, 0.25], fill: nearest}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    x: Magnitude = 0.0
    """The distance to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Magnitude = 0.0
    """The distance down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""

    @field_validator("x")
    @classmethod
    def _x(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_magnitude(value, "x")
        return value

    @field_validator("y")
    @classmethod
    def _y(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_magnitude(value, "y")
        return value

    @model_validator(mode="after")
    def _given(self) -> RandomTranslation:
        if not self.model_fields_set & {"x", "y"}:
            raise ValueError("give `x` (a fraction of the width), `y` (a fraction of the height), or both")
        return self

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0 or (symmetric_range(self.x), symmetric_range(self.y)) == ((0, 0), (0, 0))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return (*shift_lints("x", self.x), *shift_lints("y", self.y))

    def num_draws(self) -> int:
        return 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"x": uniform(u[..., 0], symmetric_range(self.x)), "y": uniform(u[..., 1], symmetric_range(self.y))}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        return moved(drawn["x"] * width, drawn["y"] * height)
