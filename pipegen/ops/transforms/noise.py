"""Add noise to images."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Annotated, Literal

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ADDED_LEVELS, Magnitude, Probability, Span, amount_within, within
from pipegen.ops.families.neighbourhood import ByteTransform, NeighbourhoodTransform, RgbTransform
from pipegen.ops.lowering.colours import HSV_ONE, TURN, channels, shifted
from pipegen.ops.lowering.filters import Phase, rounded_shift, sides
from pipegen.ops.lowering.linear import working
from pipegen.ops.lowering.random import BITS, half_words, key_of, normal_numbers, quantiles
from pipegen.ops.step_bases import UnsignedTransform
from pipegen.ops.traits import IMAGE_224, UNIT_224, Example, same_type
from pipegen.types import FeatureType

_STD_BITS = 8  # standard deviations for bytes are kept in 1/256 of a level


class RandomGaussianNoise(UnsignedTransform, NeighbourhoodTransform):
    """Adds normal noise of mean 0, independent for each value, and clips to the range of the input.

    The standard deviation is drawn uniformly for each image. The noise of a value depends only on the image's draws and on its place: 16
    random bits (Threefry-2x32) choose one of the 65,536 quantiles of the normal distribution, from -4.33 to 4.33. Bytes are computed in
    whole numbers, with the same bits everywhere.
    """

    op = "random_gaussian_noise"
    cost = 1.2
    overshoots = True
    draws = 3
    examples = (
        Example("random_gaussian_noise: {std: 10}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_gaussian_noise: {std: [0.01, 0.05], probability: 0.5}", UNIT_224, "float32[224×224×3] in [0, 1]"),
    )

    std: Annotated[Magnitude, amount_within(0)]
    """The standard deviation, in the units of the incoming values: 10 means from 0 to 10, a pair is the range."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        largest = self.largest("std")
        if x.dtype == "uint8" and largest > 255:
            raise OpError("PG105", f"noise of `std` {largest:g} leaves nothing of values from 0 to 255", field="std")
        return y

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = self.largest("std")
        if x.dtype == "uint8" and 0 < largest <= 0.5:
            message = f"`{self.op}` with `std` {largest:g} hardly changes a byte"
            said = "`std` is in the units of the values; for a fraction of their range write {}"
            help_: str = write(f"std: {largest * 255:.3g}", "arguments", said)
        elif x.interval is not None and largest >= x.interval.width / 2:
            message = f"the `std` of `{self.op}` reaches {largest:g}, but the values are in {x.interval}"
            help_ = "`std` is in the units of the values"
        else:
            return ()
        return (OpError("PG510", message, field="std", help=help_),)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        std = self.drawn(u)["std"]
        # `infer` has checked the std for bytes. One above 255 is for floats, which do not read this number.
        whole = tf.cast(tf.round(tf.minimum(std, 255.0) * float(1 << _STD_BITS)), tf.int32)
        return key_of(u[:, 1:3]), whole, tf.cast(std * 2.0**-BITS, tf.float32)

    def phases(self) -> tuple[Phase, ...]:
        return _draw, _add


def _draw(images: tf.Tensor, key: tf.Tensor, *given: tf.Tensor, each: int | None = None) -> tuple[tf.Tensor, ...]:
    """Draws 16 random bits for each value of an image, or so many times for `each` pixel: uint16 `(n, values)`."""
    height, width, channels = sides(images)
    return half_words(key, height * width * (each or channels)), *given


def _add(images: tf.Tensor, places: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The values `(n, values)` with noise, from their places among the quantiles."""
    values = tf.reshape(images, tf.shape(places))
    noise = normal_numbers(places)
    if images.dtype.is_integer:
        bits = BITS + _STD_BITS
        total = tf.bitwise.left_shift(tf.cast(values, tf.int32), bits) + noise * whole[:, None]
        return (tf.cast(tf.clip_by_value(rounded_shift(total, bits), 0, 255), images.dtype),)
    dtype = working(images)
    return (tf.cast(tf.cast(values, dtype) + tf.cast(noise, dtype) * tf.cast(real, dtype)[:, None], images.dtype),)


_BITS = 12
_PLACES = 1 << _BITS


class RandomAdditiveNoise(UnsignedTransform, ByteTransform):
    """Adds noise of a uniform or a Laplace distribution, whose amount is drawn uniformly for each image.

    With `each: pixel_value`, each value of each pixel gets noise of its own; with `pixel` all channels of a pixel get the same noise, with
    `channel` all pixels of a channel. The noise depends only on the image's draws and on its place, and is one of 4,096 equally likely
    values; bytes are rounded half to even and clipped. `random_gaussian_noise` has the normal distribution.
    """

    op = "random_additive_noise"
    draws = 3
    examples = same_type(
        "random_additive_noise: {delta: 20}",
        "random_additive_noise: {delta: [5, 15], distribution: laplace, each: channel, probability: 0.5}",
    )

    delta: Annotated[Magnitude, amount_within(0, 255), ADDED_LEVELS]
    """The amount, in levels of 255: for uniform noise its greatest absolute value, for Laplace noise its scale, which is the mean of its
    absolute value. 20 means from 0 to 20, a pair is the range."""
    distribution: Literal["uniform", "laplace"] = "uniform"
    """The distribution of the noise."""
    each: Literal["pixel_value", "pixel", "channel"] = "pixel_value"
    """What gets noise of its own: each value of each `pixel_value`, each `pixel`, or each `channel` of an image."""

    def weight(self) -> float:
        return {"pixel_value": 1.4, "pixel": 0.8, "channel": 0.3}[self.each]

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        quantiles = tf.constant(_QUANTILES[self.distribution], tf.float64)
        return key_of(u[:, 1:3]), tf.cast(tf.round(self.drawn(u)["delta"][:, None] * quantiles * float(_PLACES)), tf.int32)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, amounts = given
        height, width, channels = sides(images)
        shape = {"pixel_value": [height, width, channels], "pixel": [height, width, 1], "channel": [1, 1, channels]}[self.each]
        noise = tf.reshape(tf.gather(amounts, tf.cast(places, tf.int32), batch_dims=1), [-1, *shape])
        return tf.cast(tf.clip_by_value(tf.cast(images, tf.int32) + rounded_shift(noise, _BITS), 0, 255), tf.uint8)

    def phase(self, images: tf.Tensor, key: tf.Tensor, amounts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Draws the number of the amount of each place, uint16 `(n, places)`."""
        height, width, channels = sides(images)
        count = {"pixel_value": height * width * channels, "pixel": height * width, "channel": channels}[self.each]
        return tf.bitwise.right_shift(half_words(key, count), tf.constant(16 - _BITS, tf.uint16)), amounts


_MIDDLES = [(i + 0.5) / _PLACES for i in range(_PLACES)]
_QUANTILES = {
    "uniform": [2 * p - 1 for p in _MIDDLES],
    "laplace": [math.log(2 * p) if p < 0.5 else -math.log(2 * (1 - p)) for p in _MIDDLES],
}
_HUE_BITS = 12  # angles are kept in 1/4096 of the unit of hues


class RandomIsoNoise(UnsignedTransform, RgbTransform):
    """Adds the noise of a sensor at a high ISO: each pixel gets brighter or darker by a normal number, and its hue turns by another.

    Both standard deviations are drawn uniformly for each image. Red, green and blue of a pixel change alike, so grays stay gray and colours
    sparkle. (Albumentations' `ISONoise` adds Poisson numbers to the lightness of HLS, which makes images brighter.) The noise depends only
    on the image's draws and on its place: twice 16 random bits (Threefry-2x32) for each pixel.
    """

    op = "random_iso_noise"
    cost = 2.5
    draws = 4
    examples = same_type("random_iso_noise: {std: 20, hue_degrees: 15}", "random_iso_noise: {std: [5, 10], probability: 0.5}")

    std: Annotated[Magnitude, amount_within(0, 255)]
    """The standard deviation of the brightness, in levels of 255: 20 means from 0 to 20, a pair is the range."""
    hue_degrees: Annotated[Magnitude, amount_within(0, 40)] = 0.0
    """The standard deviation of the angle by which hues turn, in degrees, at most 40: 15 means from 0 to 15, a pair is the range."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = self.largest("std")
        if not 0 < largest <= 0.5:
            return super().lints(x)
        help_ = write(f"std: {largest * 255:.3g}", "arguments", "`std` is in levels of 255; for a fraction of their range write {}")
        return (OpError("PG510", f"`{self.op}` with `std` {largest:g} hardly changes a byte", field="std", help=help_), *super().lints(x))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        std = tf.cast(tf.round(drawn["std"] * float(1 << _STD_BITS)), tf.int32)
        angle = tf.cast(tf.round(drawn["hue_degrees"] * (HSV_ONE * (1 << _HUE_BITS) / 60.0 / (1 << BITS))), tf.int32)
        return key_of(u[:, 2:4]), std, angle

    def phases(self) -> tuple[Phase, ...]:
        return partial(_draw, each=2), _turn

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        *colour, noise = given
        return tf.cast(tf.clip_by_value(channels(*colour) + noise[..., None], 0, 255), tf.uint8)


def _turn(images: tf.Tensor, places: tf.Tensor, std: tf.Tensor, angle: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Hue (turned), saturation and value of each pixel, and the amount to add to its channels, int32 `(n, height, width)` each."""
    height, width, _ = sides(images)
    numbers = tf.reshape(normal_numbers(places), [-1, height, width, 2])
    hue = rounded_shift(numbers[..., 0] * angle[:, None, None], _HUE_BITS)
    bright = rounded_shift(numbers[..., 1] * std[:, None, None], BITS + _STD_BITS)
    none = tf.zeros_like(bright)
    return *shifted(images, tf.math.floormod(hue, TURN), none, none), bright


_COUNT_BITS = 20  # expected counts are kept in 1/2^20, so that a thousand photons fit 32 bits
_ROOT_BITS = _COUNT_BITS - BITS
_GAIN_BITS = 16
_PLACE_BITS = 16


class RandomShotNoise(ByteTransform):
    """Counts photons: each value becomes a Poisson number of mean value / 255 · photons, scaled back to values.

    The number of photons that make white is drawn uniformly for each image. Few photons mean a dark night; bright values have more noise
    than dark ones. It is the shot noise of ImageNet-C. (Albumentations' `ShotNoise` counts in linear light.) A count depends only on the
    image's draws and on its place: 16 random bits (Threefry-2x32) choose a quantile of the normal distribution, and a Cornish-Fisher
    expansion of second order turns it into a Poisson quantile; counts of 0 and 1 have their exact probabilities. Arithmetic is in whole
    numbers.

    Source: Hendrycks and Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations" (2019).
    """

    op = "random_shot_noise"
    cost = 1.5
    draws = 3
    examples = same_type("random_shot_noise", "random_shot_noise: {photons: [5, 12], probability: 0.5}")

    photons: Annotated[Span, within(1, 1000)] = (12.0, 60.0)
    """The range of the number of photons that make white, from 1 to 1000: the fewer, the more noise."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The key; for each of the 256 values the expected count, its root, and the probabilities of a count of 0 and of at most 1; and
        the value of one count."""
        photons = self.drawn(u)["photons"][:, None]
        expected = tf.range(256, dtype=tf.float64) * (1.0 / 255.0) * photons
        none = tf.exp(-expected)
        parts = (
            *((expected, _COUNT_BITS), (tf.sqrt(expected), _ROOT_BITS), (none, _PLACE_BITS)),
            *((none * (1.0 + expected), _PLACE_BITS), (255.0 / photons, _GAIN_BITS)),
        )
        return key_of(u[:, 1:3]), *(tf.cast(tf.round(part * float(1 << bits)), tf.int32) for part, bits in parts)

    def phases(self) -> tuple[Phase, ...]:
        return _draw, _count


def _count(images: tf.Tensor, places: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The counts as values `(n, values)`: the mean, plus z times its root, plus (z² - 1) / 6, for normal numbers z."""
    *tables, gain = given
    values, place = tf.cast(tf.reshape(images, tf.shape(places)), tf.int32), tf.cast(places, tf.int32)
    mean, deviation, none, few = (tf.gather(table, values, batch_dims=1) for table in tables)
    skew = tf.cast(tf.gather(tf.constant(_skews(), tf.int16), place), tf.int32)
    total = mean + normal_numbers(places) * deviation + tf.bitwise.left_shift(skew, _COUNT_BITS - BITS)
    many = tf.maximum(rounded_shift(total, _COUNT_BITS), 2)
    count = tf.where(place < none, 0, tf.where(place < few, 1, many))
    return (tf.cast(tf.minimum(rounded_shift(count * gain, _GAIN_BITS), 255), images.dtype),)


@cache
def _skews() -> tuple[int, ...]:
    """(z² - 1) / 6 for each quantile z, in 1/4096."""
    one = 1 << BITS
    return tuple(round((z * z / one - one) / 6) for z in quantiles())


class RandomSaltAndPepper(UnsignedTransform, ByteTransform):
    """Makes a share of the pixels white or black, independently: impulse noise. The share is drawn uniformly for each image.

    Whether a pixel changes depends only on the image's draws and on its place, by 16 random bits (Threefry-2x32). All of its channels
    change alike.
    """

    op = "random_salt_and_pepper"
    phase = staticmethod(partial(_draw, each=1))
    cost = 0.5
    draws = 3
    examples = same_type(
        "random_salt_and_pepper: {share: 0.05}", "random_salt_and_pepper: {share: [0.1, 0.2], salt: 0.2, probability: 0.5}"
    )

    share: Annotated[Magnitude, amount_within(0, 1)]
    """The share of the pixels that change, from 0 to 1: 0.05 means from 0 to 0.05, a pair is the range."""
    salt: Probability = 0.5
    """The share of these pixels that become white; the others become black."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        share = self.drawn(u)["share"] * 65536.0
        salt = tf.cast(self.salt, tf.float64)
        white = tf.cast(tf.round(share * salt), tf.int32)
        return key_of(u[:, 1:3]), white, 65536 - tf.cast(tf.round(share * (1.0 - salt)), tf.int32)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, white, black = given
        height, width, _ = sides(images)
        found = tf.reshape(tf.cast(places, tf.int32), [-1, height, width, 1])
        light, dark = (tf.cast(level, images.dtype) for level in (255, 0))
        first, last = (limit[:, None, None, None] for limit in (white, black))
        return tf.where(found < first, light, tf.where(found >= last, dark, images))
