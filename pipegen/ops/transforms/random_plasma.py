"""Change brightness and contrast of images by random clouds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.checks import needs_one
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude, check_magnitude, checked
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.overlays import BITS, ONE, plasma
from pipegen.ops.lowering.threefry import key_of

_MIDDLE = 128


class RandomPlasma(ByteTransform):
    """Changes brightness and contrast by clouds, from one place to another: Albumentations' `PlasmaBrightnessContrast`.

    A cloud is smooth noise c of three sizes, from -1 to 1, the same for all channels. Each value becomes
    (x - 128) · (1 + contrast · c) + 128 + 255 · brightness · c, in whole numbers, clipped. Both amounts are drawn uniformly for each image.
    """

    op = "random_plasma"
    examples = (
        Example("random_plasma: {brightness: 0.3, contrast: 0.3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_plasma: {brightness: [0.1, 0.4], sigma: 20, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    brightness: Annotated[Magnitude, AROUND_ZERO, checked(check_magnitude, -1, 1)] = 0.0
    """How much is added where the cloud is 1, as a share of 255: 0.3 means from -0.3 to 0.3, a pair is the range."""
    contrast: Annotated[Magnitude, AROUND_ZERO, checked(check_magnitude, -1, 4)] = 0.0
    """How much the contrast grows where the cloud is 1: 0.3 means from -0.3 to 0.3, a pair is the range."""
    sigma: Annotated[float, Field(ge=4, le=100)] = 40.0
    """The width of the largest clouds, in pixels; the others are half and a quarter of it."""

    _given = needs_one("brightness", "contrast")

    def weight(self) -> float:
        return 2.3

    def num_draws(self) -> int:
        return 2 + super().num_draws()

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        amounts = self.drawn(u)
        return key_of(u[:, -2:]), *(tf.cast(tf.round(amounts[name] * float(ONE)), tf.int32) for name in ("brightness", "contrast"))

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._cloud,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        gain, offset = (part[..., None] for part in given)
        x = tf.cast(images, tf.int32) - _MIDDLE
        return tf.cast(tf.clip_by_value(_MIDDLE + rounded_shift(x * gain + offset, BITS), 0, 255), tf.uint8)

    def _cloud(self, images: tf.Tensor, key: tf.Tensor, brightness: tf.Tensor, contrast: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        cloud = plasma(key, height, width, self.sigma)
        gain = ONE + rounded_shift(cloud * contrast[:, None, None], BITS)
        return gain, rounded_shift(cloud * brightness[:, None, None], BITS) * 255
