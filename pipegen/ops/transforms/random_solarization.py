"""Invert the bright values of images, above a random threshold."""

from __future__ import annotations

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Range, check_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.lookup_tables import LookupTableTransform, threshold_lints
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.tables import solarized
from pipegen.types import FeatureType


class RandomSolarization(LookupTableTransform):
    """Inverts every value at or above a threshold drawn uniformly: x becomes 255 - x, as in Pillow."""

    op = "random_solarization"
    random = True
    examples = (
        Example("random_solarization: {threshold: [100, 255]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_solarization: {threshold: [128, 128], probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    threshold: Range
    """The range of the least value that is inverted: 0 inverts all, 256 inverts none."""

    @field_validator("threshold")
    @classmethod
    def _threshold(cls, value: tuple[float, float]) -> tuple[float, float]:
        check_range(value, "threshold", 0, 256)
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return (self.probability == 0 or self.threshold[0] > 255) and self.keeps_type(x)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return threshold_lints(self.op, self.threshold)

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"threshold": uniform(u[..., 0], self.threshold)}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return solarized(self.drawn(u)["threshold"])
