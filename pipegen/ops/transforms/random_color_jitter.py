"""Change brightness, contrast, saturation and hue at random, in one step."""

from __future__ import annotations

from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.checks import needs_one
from pipegen.ops.arguments.magnitudes import AROUND_ONE, AROUND_ZERO, TURNS, Magnitude, Odd, factor_lints, factor_range, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.uniform import UniformColour
from pipegen.ops.lowering.colours import brightness, compose, contrast, hue, saturation
from pipegen.ops.lowering.linear import radians
from pipegen.types import FeatureType

_FACTORS = ("brightness_factor", "contrast_factor", "saturation_factor")


class RandomColorJitter(UniformColour):
    """Changes brightness, contrast, saturation and hue, in this order; each amount is drawn uniformly.

    It is the run of `random_brightness`, `random_contrast`, `random_saturation` and `random_hue`, written as one step:
    four matrices multiplied into one and clipped once at the end. So contrast pivots on the mean luma of the image that
    enters the run of colour steps, before its brightness is changed. An argument without a value changes nothing. (torchvision
    draws the order too, and clips after each of the four.)
    """

    op = "random_color_jitter"
    factors = frozenset(_FACTORS)
    examples = (
        Example(
            "random_color_jitter: {brightness_factor: 0.4, contrast_factor: 0.4, saturation_factor: 0.4, hue_degrees: 20}",
            IMAGE_224,
            "float32[224×224×3] in [0, 255]",
        ),
        Example("random_color_jitter: {brightness_factor: [0.8, 1.5], probability: 0.8}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    brightness_factor: Annotated[Magnitude, AROUND_ONE, Odd(factor_lints, low=0.0, high=5.0)] = 0.0
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""
    contrast_factor: Annotated[Magnitude, AROUND_ONE, Odd(factor_lints, low=0.0, high=5.0)] = 0.0
    """The contrast, at least 0; 0 is a plain gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    saturation_factor: Annotated[Magnitude, AROUND_ONE, Odd(factor_lints, low=None, high=5.0)] = 0.0
    """The saturation, at least 0; 0 is gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    hue_degrees: Annotated[Magnitude, AROUND_ZERO, TURNS] = 0.0
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""

    _given = needs_one(*_FACTORS, "hue_degrees")

    def _needs_colour(self) -> bool:
        return (factor_range(self.saturation_factor), symmetric_range(self.hue_degrees)) != ((1, 1), (0, 0))

    def infer(self, x: FeatureType) -> FeatureType:
        """float32; saturation and hue need three channels."""
        y = super().infer(x)
        if self._needs_colour() and x.channels != 3:
            field = "hue_degrees" if symmetric_range(self.hue_degrees) != (0, 0) else "saturation_factor"
            raise OpError("PG205", f"`{field}` of `{self.op}` needs 3 channels, and gets {x.channels}", field=field)
        return y

    def uses_mean(self) -> bool:
        return factor_range(self.contrast_factor) != (1, 1)

    def mixes_channels(self) -> bool:
        return self._needs_colour()

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        bright, contrasting, saturated, angle = self.drawn(u).values()
        matrix = compose(brightness(bright, channels), contrast(contrasting, channels))
        if channels == 3:
            matrix = compose(compose(matrix, saturation(saturated)), hue(radians(angle)))
        return matrix
