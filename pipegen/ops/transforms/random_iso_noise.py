"""Add the noise of a camera's sensor to images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_magnitude, checked, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import RgbTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.hsv import ONE, TURN, channels, shifted
from pipegen.ops.lowering.noise import BITS, normal_numbers
from pipegen.ops.lowering.threefry import half_words, key_of
from pipegen.types import FeatureType

_STD_BITS = 8
_HUE_BITS = 12
"""Angles are kept in 1/4096 of what hue is counted in."""


class RandomIsoNoise(RgbTransform):
    """Adds the noise of a sensor at a high ISO: each pixel gets brighter or darker by a normal number, and its hue turns by another.

    Both standard deviations are drawn uniformly for each image. Red, green and blue of a pixel get the same, so grays stay gray
    and colours sparkle. (Albumentations' `ISONoise` adds Poisson numbers to the lightness of HLS, which make images brighter.) Noise is a
    function of the image's draws and of the place alone: twice 16 random bits (Threefry-2x32) for each pixel.
    """

    op = "random_iso_noise"
    examples = (
        Example("random_iso_noise: {std: 20, hue_degrees: 15}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_iso_noise: {std: [5, 10], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    std: Annotated[Magnitude, checked(check_magnitude, 0, 255)]
    """The standard deviation of the brightness, in levels of 255: 20 means from 0 to 20, a pair is the range."""
    hue_degrees: Annotated[Magnitude, checked(check_magnitude, 0, 40)] = 0.0
    """The standard deviation of the angle by which hues turn, in degrees, at most 40: 15 means from 0 to 15, a pair is the range."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = symmetric_range(self.std)[1]
        if not 0 < largest <= 0.5:
            return super().lints(x)
        help_ = write(f"std: {largest * 255:.3g}", "arguments", "`std` is in levels of 255; for a fraction of their range write {}")
        return (OpError("PG510", f"`{self.op}` with `std` {largest:g} hardly changes a byte", field="std", help=help_), *super().lints(x))

    def weight(self) -> float:
        return 2.5

    def num_draws(self) -> int:
        return 4

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: tf.abs(value) for name, value in super().drawn(u).items()}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        std = tf.cast(tf.round(drawn["std"] * float(1 << _STD_BITS)), tf.int32)
        angle = tf.cast(tf.round(drawn["hue_degrees"] * (ONE * (1 << _HUE_BITS) / 60.0 / (1 << BITS))), tf.int32)
        return key_of(u[:, 2:4]), std, angle

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return _draw, _turn

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        *colour, noise = given
        return tf.cast(tf.clip_by_value(channels(*colour) + noise[..., None], 0, 255), tf.uint8)


def _draw(images: tf.Tensor, key: tf.Tensor, std: tf.Tensor, angle: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Draws two times 16 random bits for each pixel of an image, uint16 `(n, 2 · pixels)`."""
    height, width, _ = sides(images)
    return half_words(key, 2 * height * width), std, angle


def _turn(images: tf.Tensor, places: tf.Tensor, std: tf.Tensor, angle: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Hue, saturation and value of each pixel, the hue turned; and what is added to its channels, int32 `(n, height, width)`."""
    height, width, _ = sides(images)
    numbers = tf.reshape(normal_numbers(places), [-1, height, width, 2])
    hue = rounded_shift(numbers[..., 0] * angle[:, None, None], _HUE_BITS)
    bright = rounded_shift(numbers[..., 1] * std[:, None, None], BITS + _STD_BITS)
    none = tf.zeros_like(bright)
    return *shifted(images, tf.math.floormod(hue, TURN), none, none), bright
