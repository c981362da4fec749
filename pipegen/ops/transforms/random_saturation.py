"""Make colours stronger or paler at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import field_validator

from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.magnitudes import Magnitude, check_factor, factor_lints, factor_range

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.errors import OpError
    from pipegen.types import FeatureType


class RandomSaturation(ColourTransform):
    """Moves every pixel away from its own gray, or towards it: y = factor · x + (1 - factor) · luma(x).

    The luma of a pixel is 0.299 R + 0.587 G + 0.114 B, as in Pillow and torchvision. (`tf.image` scales the S of HSV
    instead.)
    """

    op = "random_saturation"
    random = True
    min_channels = 3
    examples = (
        Example("random_saturation: {factor: 0.3}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_saturation: {factor: [0.0, 1.0]}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    factor: Magnitude
    """The saturation, at least 0; 0 is gray: 0.3 means from 0.7 to 1.3, a pair is the range."""

    @field_validator("factor")
    @classmethod
    def _factor(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_factor(value, "factor")
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and (self.probability == 0 or factor_range(self.factor) == (1, 1))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return factor_lints(self.op, "factor", self.factor, None, 5.0)

    def num_draws(self) -> int:
        return 1

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        from pipegen.ops.linear import LUMA, stack, uniform, zeros

        factor = uniform(u[..., 0], factor_range(self.factor))
        rows = [[(1.0 - factor) * weight + (factor if i == j else 0.0) for j, weight in enumerate(LUMA)] for i in range(3)]
        return stack(rows, factor), zeros(channels, factor), zeros(channels, factor)
