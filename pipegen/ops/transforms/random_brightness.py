"""Make images brighter or darker at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import field_validator

from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.magnitudes import Magnitude, check_factor, factor_lints, factor_range

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.errors import OpError
    from pipegen.types import FeatureType


class RandomBrightness(ColourTransform):
    """Multiplies every value by a factor drawn uniformly: y = factor · x.

    This is what Pillow's and torchvision's brightness do. (Keras' layer adds a value instead.)
    """

    op = "random_brightness"
    random = True
    examples = (
        Example("random_brightness: {factor: 0.2}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_brightness: {factor: [0.5, 1.0], probability: 0.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    factor: Magnitude
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""

    @field_validator("factor")
    @classmethod
    def _factor(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_factor(value, "factor")
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and (self.probability == 0 or factor_range(self.factor) == (1, 1))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return factor_lints(self.op, "factor", self.factor, 0.0, 5.0)

    def num_draws(self) -> int:
        return 1

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        from pipegen.ops.linear import scaled_identity, uniform, zeros

        factor = uniform(u[..., 0], factor_range(self.factor))
        return scaled_identity(factor, channels), zeros(channels, factor), zeros(channels, factor)
