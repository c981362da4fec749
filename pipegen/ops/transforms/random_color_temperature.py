"""Change the colour temperature of the light at random."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.uniform import UniformColour
from pipegen.ops.lowering.colours import gains

_STEP = 500
_HOTTEST = 15_000
_LIGHTS: dict[str, tuple[int, tuple[tuple[int, int, int], ...]]] = {
    "blackbody": (3_000, (
        (6743, 4029, 13), (6281, 4241, 1665), (5919, 4372, 2513), (5623, 4457, 3154), (5376, 4515, 3672), (5163, 4555, 4103),
        (4979, 4584, 4468), (4816, 4604, 4782), (4672, 4619, 5053), (4542, 4630, 5289), (4426, 4638, 5497), (4320, 4644, 5681),
        (4223, 4648, 5844), (4135, 4651, 5990), (4054, 4653, 6121), (3980, 4654, 6239), (3911, 4655, 6346), (3847, 4656, 6444),
        (3787, 4656, 6532), (3732, 4656, 6613), (3680, 4655, 6688), (3632, 4655, 6756), (3586, 4655, 6820), (3544, 4654, 6878),
        (3503, 4653, 6933),
    )),
    "daylight": (4_000, (
        (5829, 4421, 2288), (5510, 4514, 2948), (5246, 4576, 3488), (5021, 4618, 3941), (4826, 4646, 4325), (4654, 4667, 4654),
        (4502, 4681, 4938), (4364, 4692, 5186), (4240, 4700, 5403), (4127, 4705, 5594), (4023, 4709, 5763), (3928, 4713, 5914),
        (3839, 4715, 6049), (3757, 4716, 6171), (3681, 4717, 6281), (3609, 4718, 6380), (3543, 4719, 6472), (3480, 4719, 6555),
        (3421, 4719, 6631), (3365, 4719, 6702), (3313, 4719, 6766), (3263, 4719, 6826), (3217, 4719, 6882),
    )),
}  # fmt: skip
"""For each kind of light, the least temperature in kelvins, and red, green and blue of the light there and every 500 kelvins on."""


class RandomColorTemperature(UniformColour):
    """Multiplies red and blue as if a white scene stood in light of another temperature, drawn uniformly: Planckian jitter.

    Light of a black body, or daylight, has a colour for each temperature; red and blue are multiplied by its red and
    blue over its green, which stays. Low temperatures are warm and reddish, high ones cold and bluish; images change least near
    6500 K. Between temperatures that are multiples of 500 K, colours are read off straight lines.

    Source: Zini, Gomez-Villa, Buzzelli, Twardowski, Bagdanov, van de Weijer, "Planckian Jitter: countering the color-crippling
    effects of color jitter on self-supervised training" (2023), whose colours these are; Albumentations' `PlanckianJitter`.
    """

    op = "random_color_temperature"
    min_channels = 3
    examples = (
        Example("random_color_temperature", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_color_temperature: {kelvins: [5000, 8000], light: daylight}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    kelvins: Annotated[Span, checked(check_pair), checked(check_range, 3_000, _HOTTEST)] = (4_000.0, 12_000.0)
    """The range of the temperature, in kelvins: from 3000 to 15000, of daylight from 4000."""
    light: Literal["blackbody", "daylight"] = "blackbody"
    """What shines: a `blackbody` such as a lamp's wire, or `daylight`."""

    @model_validator(mode="after")
    def _known(self) -> RandomColorTemperature:
        coldest, least = _LIGHTS[self.light][0], span_range(self.kelvins)[0]
        if least < coldest:
            raise ValueError(f"`kelvins` of `light: {self.light}` must be at least {coldest}, got {least:g}")
        return self

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"kelvins": span_range(self.kelvins)}

    def mixes_channels(self) -> bool:
        return False

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        coldest, colours = _LIGHTS[self.light]
        place = (self.drawn(u)["kelvins"] - float(coldest)) / float(_STEP)
        left = tf.cast(tf.clip_by_value(tf.floor(place), 0.0, float(len(colours) - 2)), tf.int32)
        share = (place - tf.cast(left, tf.float64))[..., None]
        known = tf.constant(colours, tf.float64)
        red, green, blue = tf.unstack((1.0 - share) * tf.gather(known, left) + share * tf.gather(known, left + 1), num=3, axis=-1)
        return gains([red / green, tf.ones_like(green), blue / green][:channels])
