"""Make images brighter or darker by a factor."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicFactor
from pipegen.ops.lowering.colours import brightness


class Brightness(DeterministicFactor):
    """Multiplies every value by one factor: y = factor · x.

    This is what Pillow's and torchvision's brightness do. Transparency, the fourth of
    four channels, stays as it is.
    """

    op = "brightness"
    examples = (Example("brightness: {factor: 1.2}", IMAGE_224, "float32[224×224×3] in [0, 255]"),)

    factor: Number
    """What values are multiplied by, at least 0; 1 changes nothing."""

    def takes(self, channels: int) -> bool:
        """Gray and RGB, and RGB with transparency, which stays as it is."""
        return channels in (1, 3, 4)

    def mixes_channels(self) -> bool:
        return False

    def fixed(self, like: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return brightness(like + self.factor, channels)
