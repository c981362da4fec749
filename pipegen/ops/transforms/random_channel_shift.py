"""Add a random amount to the channels of images."""

from __future__ import annotations

from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude, delta_lints, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.uniform import UniformColour
from pipegen.ops.lowering.colours import shift
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType


class RandomChannelShift(UniformColour):
    """Adds an amount drawn uniformly to every value of an image: y = x + delta, the same for all channels or one for each.

    By default it is the `channel_shift_range` of Keras' `ImageDataGenerator`: one amount for the whole image. That one
    clips to the least and the greatest value that the image at hand has; here the run of colour steps is clipped to the
    values that any image can have, so that bright images get brighter too. With `per_channel: true` each channel gets
    an amount of its own, which tints the image.
    """

    op = "random_channel_shift"
    examples = (
        Example("random_channel_shift: {delta: 30}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_channel_shift: {delta: [0, 20], per_channel: true}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    delta: Annotated[Magnitude, AROUND_ZERO]
    """What is added, in the units of the incoming values: 30 means from -30 to 30, a pair is the range."""
    per_channel: bool = False
    """Draw an amount for each channel, instead of one for all."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return delta_lints(self.op, "delta", self.delta, x)

    def num_draws(self) -> int:
        return 3 if self.per_channel else 1

    def takes(self, channels: int) -> bool:
        """Any number of channels that get one amount; gray and RGB where each gets its own."""
        return not self.per_channel or super().takes(channels)

    def mixes_channels(self) -> bool:
        return False

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        amounts = uniform(u, symmetric_range(self.delta))
        return {"delta": amounts if self.per_channel else amounts[..., 0]}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        delta = self.drawn(u)["delta"]
        return {"delta": delta[..., : shape[2]] if self.per_channel else delta}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        delta = self.drawn(u)["delta"]
        return shift([delta[..., c] if self.per_channel else delta for c in range(channels)])
