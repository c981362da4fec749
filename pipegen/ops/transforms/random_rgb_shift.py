"""Add a random amount to red, green and blue, each in a range of its own."""

from __future__ import annotations

from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.checks import needs_one
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude, delta_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.uniform import UniformColour
from pipegen.ops.lowering.colours import shift
from pipegen.types import FeatureType


class RandomRgbShift(UniformColour):
    """Adds an amount drawn uniformly to each of red, green and blue, from a range for each: y = x + amount.

    It is Albumentations' `RGBShift`. A channel without a range stays as it is. (`random_channel_shift` draws for every channel from
    one range.)
    """

    op = "random_rgb_shift"
    min_channels = 3
    examples = (
        Example("random_rgb_shift: {red: 20, green: 10, blue: 20}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_rgb_shift: {blue: [-40, 0], probability: 0.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    red: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """What is added to red, in the units of the incoming values: 20 means from -20 to 20, a pair is the range."""
    green: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """What is added to green, likewise."""
    blue: Annotated[Magnitude, AROUND_ZERO] = 0.0
    """What is added to blue, likewise."""

    _given = needs_one("red", "green", "blue")

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return tuple(lint for name in ("red", "green", "blue") for lint in delta_lints(self.op, name, getattr(self, name), x))

    def mixes_channels(self) -> bool:
        return False

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        # `takes` lets gray images in as far as `min_channels`, where nobody asks what three amounts do to one channel.
        return shift(list(self.drawn(u).values())[:channels])
