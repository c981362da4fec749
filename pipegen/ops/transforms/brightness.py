"""Make images brighter or darker by a factor."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, Odd, check_range, checked, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicColour
from pipegen.ops.lowering.colours import brightness
from pipegen.ops.lowering.linear import zeros_for


class Brightness(DeterministicColour):
    """Multiplies every value by one factor: y = factor · x.

    This is what Pillow's and torchvision's brightness do. Transparency, the fourth of
    four channels, stays as it is.
    """

    op = "brightness"
    examples = (Example("brightness: {factor: 1.2}", IMAGE_224, "float32[224×224×3] in [0, 255]"),)

    factor: Annotated[Number, checked(check_range, 0), Odd(factor_lints, low=0.0, high=5.0, drawn=False)]
    """What values are multiplied by, at least 0; 1 changes nothing."""

    def idle(self) -> bool:
        return self.factor == 1

    def takes(self, channels: int) -> bool:
        """Gray and RGB, and RGB with transparency, which stays as it is."""
        return channels in (1, 3, 4)

    def mixes_channels(self) -> bool:
        return False

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return brightness(zeros_for(u) + self.factor, channels)
