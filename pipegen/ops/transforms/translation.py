"""Move images."""

from __future__ import annotations

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, shift_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import moved
from pipegen.types import FeatureType


class Translation(DeterministicGeometric):
    """Moves every picture by fractions of its sides.

    Positive `x` moves the picture to the right and positive `y` moves it down: with `x: 0.1` an image 200 pixels wide
    shows its first column at column 20.
    """

    op = "translation"
    examples = (
        Example("translation: {x: 0.1, y: -0.05}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("translation: {y: 0.25, fill: nearest}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    x: Number = 0.0
    """The distance to the right, as a fraction of the width."""
    y: Number = 0.0
    """The distance down, as a fraction of the height."""

    @model_validator(mode="after")
    def _given(self) -> Translation:
        if not self.model_fields_set & {"x", "y"}:
            raise ValueError("give `x` (a fraction of the width), `y` (a fraction of the height), or both")
        return self

    def is_identity(self, x: FeatureType) -> bool:
        return (self.x, self.y) == (0, 0)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return (*shift_lints("x", self.x), *shift_lints("y", self.y))

    def fixed(self, like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return moved((like + self.x) * width, (like + self.y) * height)
