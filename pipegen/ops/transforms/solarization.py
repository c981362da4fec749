"""Invert the bright values of images."""

from __future__ import annotations

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, check_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.families.lookup_tables import threshold_lints
from pipegen.ops.lowering.tables import repeated
from pipegen.types import FeatureType


class Solarization(DeterministicLookupTable):
    """Inverts every value at or above a threshold: x becomes 255 - x, as in Pillow."""

    op = "solarization"
    examples = (
        Example("solarization", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("solarization: {threshold: 200}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    threshold: Number = 128.0
    """The least value that is inverted, from 0, which inverts all, to 256, which inverts none."""

    @field_validator("threshold")
    @classmethod
    def _threshold(cls, value: float) -> float:
        check_range(value, "threshold", 0, 256)
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return self.threshold > 255 and self.keeps_type(x)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return threshold_lints(self.op, self.threshold)

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x if x >= self.threshold else x for x in range(256)], u)
