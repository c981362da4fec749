"""Make images brighter or darker at random."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ONE, Magnitude, Odd, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.uniform import UniformColour
from pipegen.ops.lowering.colours import brightness


class RandomBrightness(UniformColour):
    """Multiplies every value by a factor drawn uniformly: y = factor · x.

    This is what Pillow's and torchvision's brightness do. (Keras' layer adds a value instead.) Transparency, the fourth of
    four channels, stays as it is.
    """

    op = "random_brightness"
    factors = frozenset({"factor"})
    examples = (
        Example("random_brightness: {factor: 0.2}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_brightness: {factor: [0.5, 1.0], probability: 0.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    factor: Annotated[Magnitude, AROUND_ONE, Odd(factor_lints, low=0.0, high=5.0)]
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""

    def takes(self, channels: int) -> bool:
        """Gray and RGB, and RGB with transparency, which stays as it is."""
        return channels in (1, 3, 4)

    def mixes_channels(self) -> bool:
        return False

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return brightness(self.drawn(u)["factor"], channels)
