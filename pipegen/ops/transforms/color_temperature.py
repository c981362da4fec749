"""`random_color_temperature` and `random_pca_lighting`: the colour of the light on images."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, Span, bounded, level_range, span_range, within
from pipegen.ops.lowering.colours import gains, shift
from pipegen.ops.lowering.linear import normal
from pipegen.ops.step_bases import ColourTransform, UniformTransform
from pipegen.ops.traits import to_float32
from pipegen.types import FeatureType

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


class RandomColorTemperature(UniformTransform, ColourTransform):
    """Multiplies red and blue as if a white scene were lit by light of another temperature, drawn uniformly: Planckian jitter.

    Light of a black body, or daylight, has a colour for each temperature; red and blue are multiplied by its red and blue over its green,
    and green stays. Low temperatures are warm and reddish, high ones cold and bluish; images change least near 6500 K. Colours are
    interpolated linearly between multiples of 500 K.

    Source: Zini, Gomez-Villa, Buzzelli, Twardowski, Bagdanov, van de Weijer, "Planckian Jitter: countering the color-crippling
    effects of color jitter on self-supervised training" (2023), whose colours these are; Albumentations' `PlanckianJitter`.
    """

    op = "random_color_temperature"
    min_channels = 3
    separate = True
    examples = to_float32("random_color_temperature", "random_color_temperature: {kelvins: [5000, 8000], light: daylight}")

    kelvins: Annotated[Span, within(3_000, 15_000)] = (4_000.0, 12_000.0)
    """The range of the temperature, in kelvins: from 3000 to 15000, of daylight from 4000."""
    light: Literal["blackbody", "daylight"] = "blackbody"
    """The source of light: a `blackbody`, such as the filament of a lamp, or `daylight`."""

    @model_validator(mode="after")
    def _known(self) -> RandomColorTemperature:
        coldest, least = _LIGHTS[self.light][0], span_range(self.kelvins)[0]
        if least < coldest:
            raise ValueError(f"`kelvins` of `light: {self.light}` must be at least {coldest}, got {least:g}")
        return self

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        coldest, colours = _LIGHTS[self.light]
        place = (self.drawn(u)["kelvins"] - float(coldest)) / 500.0
        left = tf.cast(tf.clip_by_value(tf.floor(place), 0.0, float(len(colours) - 2)), tf.int32)
        share = (place - tf.cast(left, tf.float64))[..., None]
        known = tf.constant(colours, tf.float64)
        red, green, blue = tf.unstack((1.0 - share) * tf.gather(known, left) + share * tf.gather(known, left + 1), num=3, axis=-1)
        return gains([red / green, tf.ones_like(green), blue / green][:channels])


_VALUES = (0.2175, 0.0188, 0.0045)
_VECTORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
"""The eigenvalues and, a row for each channel, eigenvectors of the colours of ImageNet's pixels, with values from 0 to 1."""


class RandomPcaLighting(ColourTransform):
    """Adds one colour to every pixel, drawn along the principal components of the colours of photographs (AlexNet).

    For each of the three components a normal number of mean 0 and standard deviation `std` is drawn; the sum of the components, each times
    its number and its eigenvalue, is added to (R, G, B). Most of it is brightness, some of it warmer or colder light. The components are
    those of ImageNet, as published with most implementations.

    Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural networks" (2012), whose 0.1 is
    for values from 0 to 1: on bytes it is 25.5. (Albumentations' `FancyPCA` finds the components of each image.)
    """

    op = "random_pca_lighting"
    random = True
    min_channels = 3
    draws = 3
    separate = True
    examples = to_float32("random_pca_lighting: {std: 25.5}", "random_pca_lighting: {std: 60, probability: 0.5}")

    std: Annotated[Level, bounded(0)]
    """The standard deviation of the numbers that are drawn, in the units of the incoming values; light changes by a fifth of it."""

    def idle(self) -> bool:
        return super().idle() or level_range(self.std) == (0, 0)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = level_range(self.std)[1]
        if x.interval is None or not 0 < largest * _VALUES[0] < x.interval.width / 1000:
            return ()
        message = f"`{self.op}` with `std` {largest:g} hardly changes values in {x.interval}"
        help_ = write(f"std: {largest * x.interval.width:.3g}", "arguments", "for a fraction of the range write {}")
        return (OpError("PG510", message, field="std", help=help_),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The amount that is added to each channel: `red`, `green` and `blue`."""
        along = normal(u) * tf.convert_to_tensor(self.std, tf.float64) * tf.constant(_VALUES, tf.float64)
        added = [along[..., 0] * a + along[..., 1] * b + along[..., 2] * c for a, b, c in _VECTORS]
        return dict(zip(("red", "green", "blue"), added, strict=True))

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return shift(list(self.drawn(u).values())[:channels])
