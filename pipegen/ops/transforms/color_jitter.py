"""`random_color_jitter` and `random_photometric_distort`: several properties of colours in one step."""

from __future__ import annotations

from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Degrees, Factor, Probability, most, needs_one, odd_factor
from pipegen.ops.lowering.colours import ORDERS, blend, brightness, compose, contrast, hue, reorder, saturation
from pipegen.ops.lowering.linear import radians
from pipegen.ops.lowering.windows import pick
from pipegen.ops.step_bases import ColourTransform, UniformTransform
from pipegen.ops.traits import to_float32
from pipegen.types import FeatureType

_FACTORS = ("brightness_factor", "contrast_factor", "saturation_factor")


class RandomColorJitter(UniformTransform, ColourTransform):
    """Changes brightness, contrast, saturation and hue, in this order; each amount is drawn uniformly.

    It is the run of `random_brightness`, `random_contrast`, `random_saturation` and `random_hue`, written as one step: four matrices
    multiplied into one and clipped once at the end. So contrast pivots on the mean luma of the image that enters the run of colour steps,
    before its brightness changes. An argument without a value changes nothing. (torchvision draws the order, too, and clips after each of
    the four.)
    """

    op = "random_color_jitter"
    factors = frozenset(_FACTORS)
    examples = to_float32(
        "random_color_jitter: {brightness_factor: 0.4, contrast_factor: 0.4, saturation_factor: 0.4, hue_degrees: 20}",
        "random_color_jitter: {brightness_factor: [0.8, 1.5], probability: 0.8}",
    )

    brightness_factor: Annotated[Factor, odd_factor(low=0.0, high=5.0)] = 0.0
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""
    contrast_factor: Annotated[Factor, odd_factor(low=0.0, high=5.0)] = 0.0
    """The contrast, at least 0; 0 is a plain gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    saturation_factor: Annotated[Factor, odd_factor(low=None, high=5.0)] = 0.0
    """The saturation, at least 0; 0 is gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    hue_degrees: Degrees = 0.0
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""

    _given = needs_one(*_FACTORS, "hue_degrees")

    def _needs_colour(self) -> bool:
        ranges = self.ranges()
        return (ranges["saturation_factor"], ranges["hue_degrees"]) != ((1, 1), (0, 0))

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if self._needs_colour() and x.channels != 3:
            field = "hue_degrees" if self.ranges()["hue_degrees"] != (0, 0) else "saturation_factor"
            raise OpError("PG205", f"`{field}` of `{self.op}` needs 3 channels, and gets {x.channels}", field=field)
        return y

    def uses_mean(self) -> bool:
        return self.ranges()["contrast_factor"] != (1, 1)

    def mixes_channels(self) -> bool:
        return self._needs_colour()

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        bright, contrasting, saturated, angle = self.drawn(u).values()
        matrix = compose(brightness(bright, channels), contrast(contrasting, channels))
        if channels == 3:
            matrix = compose(compose(matrix, saturation(saturated)), hue(radians(angle)))
        return matrix


_AMOUNTS = 4


class RandomPhotometricDistort(UniformTransform, ColourTransform):
    """Changes brightness, contrast, saturation, hue and the order of the channels, each of the five with its own probability.

    Contrast comes after brightness or after hue, each as likely; the order of channels comes last. It is the photometric distortion of SSD,
    with torchvision's ranges. All of it is one matrix with one clip at the end, and contrast pivots on the mean luma of the image that
    enters the run of colour steps. (torchvision clips after each part, and its hue is that of HSV.)

    Source: Liu, Anguelov, Erhan, Szegedy, Reed, Fu, Berg, "SSD: Single Shot MultiBox Detector" (2016).
    """

    op = "random_photometric_distort"
    min_channels = 3
    factors = frozenset(_FACTORS)
    draws = 2 * _AMOUNTS + 3
    examples = to_float32("random_photometric_distort", "random_photometric_distort: {hue_degrees: 5, each: 0.8, probability: 0.5}")

    brightness_factor: Annotated[Factor, odd_factor(low=0.0, high=5.0)] = (0.875, 1.125)
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""
    contrast_factor: Annotated[Factor, odd_factor(low=0.0, high=5.0)] = (0.5, 1.5)
    """The contrast, at least 0; 0 is a plain gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    saturation_factor: Annotated[Factor, odd_factor(low=None, high=5.0)] = (0.5, 1.5)
    """The saturation, at least 0; 0 is gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    hue_degrees: Degrees = (-18.0, 18.0)
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""
    each: Probability = 0.5
    """The probability of each of the five parts, among the examples that the step changes."""

    shuffle: bool = True
    """Put the channels into another order, too; `false` leaves the other four parts."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or most(self.each) == 0 or (not self.shuffle and super().idle())

    def uses_mean(self) -> bool:
        return True

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The four amounts, which are 1, or 0 degrees, for parts that do not act; whether contrast comes first (`contrast_first`); and the
        number of the channel that each comes from (`order`)."""
        found = {}
        for i, (name, amount) in enumerate(super().drawn(u).items()):
            idle = tf.fill(tf.shape(amount), tf.constant(1.0 if name in self.factors else 0.0, tf.float64))
            found[name] = tf.where(u[..., _AMOUNTS + i] < self.each, amount, idle)
        return {**found, "contrast_first": u[..., 2 * _AMOUNTS] < 0.5, "order": tf.gather(tf.constant(ORDERS), self._order(u))}

    def _order(self, u: tf.Tensor) -> tf.Tensor:
        """Draws one of `ORDERS`, of which the first changes nothing: int32 `(...)`."""
        acts = u[..., 2 * _AMOUNTS + 1] < (self.each if self.shuffle else 0.0)
        return tf.where(acts, pick(u[..., 2 * _AMOUNTS + 2], len(ORDERS) - 1), 0)

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        bright, contrasting, saturated, angle, first, _ = self.drawn(u).values()
        sharper = contrast(contrasting, 3)
        colours = compose(saturation(saturated), hue(radians(angle)))
        rest = blend(first, compose(sharper, colours), compose(colours, sharper))
        return compose(compose(brightness(bright, 3), rest), reorder(self._order(u)))
