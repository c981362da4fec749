"""Add the noise of counted light to images."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.noise import BITS, normal_numbers, quantiles
from pipegen.ops.lowering.threefry import half_words, key_of

_COUNT_BITS = 20
"""Expected counts are kept in 1/2^20: a thousand photons fit 32 bits."""
_ROOT_BITS = _COUNT_BITS - BITS
_GAIN_BITS = 16
_PLACE_BITS = 16


class RandomShotNoise(ByteTransform):
    """Counts light: each value becomes a Poisson number of mean value / 255 · photons, brought back to values.

    How many photons make white is drawn uniformly for each image; few are a dark night, and bright values have more noise than dark
    ones. It is the shot noise of ImageNet-C. (Albumentations' `ShotNoise` counts in linear light.) A count is a function of the image's
    draws and of its place alone: 16 random bits (Threefry-2x32) choose a quantile of the normal distribution, which a
    Cornish-Fisher expansion of second order turns into one of Poisson's; counts of 0 and 1 have their exact shares. All of it is whole
    numbers.

    Source: Hendrycks and Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations" (2019).
    """

    op = "random_shot_noise"
    examples = (
        Example("random_shot_noise", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_shot_noise: {photons: [5, 12], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    photons: Annotated[Span, checked(check_pair), checked(check_range, 1, 1000)] = (12.0, 60.0)
    """The range of the number of photons that make white, from 1 to 1000: the fewer, the more noise."""

    def idle(self) -> bool:
        return most(self.probability) == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"photons": span_range(self.photons)}

    def weight(self) -> float:
        return 1.5

    def num_draws(self) -> int:
        return 3

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the key; for each of the 256 values the expected count, its root, and the shares of counts of 0 and of at most 1;
        and what a count is worth."""
        photons = self.drawn(u)["photons"][:, None]
        expected = tf.range(256, dtype=tf.float64) * (1.0 / 255.0) * photons
        none = tf.exp(-expected)
        parts = (
            *((expected, _COUNT_BITS), (tf.sqrt(expected), _ROOT_BITS), (none, _PLACE_BITS)),
            *((none * (1.0 + expected), _PLACE_BITS), (255.0 / photons, _GAIN_BITS)),
        )
        return key_of(u[:, 1:3]), *(tf.cast(tf.round(part * float(1 << bits)), tf.int32) for part, bits in parts)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return _draw, _count


def _draw(images: tf.Tensor, key: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Draws 16 random bits for each value of an image, uint16 `(n, values)`."""
    height, width, channels = sides(images)
    return half_words(key, height * width * channels), *given


def _count(images: tf.Tensor, places: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The values `(n, values)` that are counted: the mean, plus z roots of it, plus (z² - 1) / 6, for normal numbers z."""
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
    """Lists (z² - 1) / 6 for each quantile z, in 1/4096."""
    one = 1 << BITS
    return tuple(round((z * z / one - one) / 6) for z in quantiles())
