"""Put one value in the place of some pixels of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_magnitude, checked
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.threefry import half_words, key_of


class RandomPixelDropout(ByteTransform):
    """Puts one value in the place of a share of the pixels, each by itself, as dead pixels of a sensor have it.

    Whether a pixel is among them is a function of the image's draws and of its place alone, of 16 random bits; with `per_channel` each
    channel of a pixel decides for itself.
    """

    op = "random_pixel_dropout"
    examples = (
        Example("random_pixel_dropout: {share: 0.05}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_pixel_dropout: {share: [0.1, 0.2], value: 128, per_channel: true, probability: 0.5}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
    )

    share: Annotated[Magnitude, checked(check_magnitude, 0, 1)]
    """The share of the pixels that change, from 0 to 1: 0.05 means from 0 to 0.05, a pair is the range."""
    value: Annotated[int, Field(ge=0, le=255)] = 0
    """What they become, from 0 to 255."""
    per_channel: bool = False
    """Whether the channels of a pixel are chosen apart."""

    def weight(self) -> float:
        return 1.0 if self.per_channel else 0.5

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"share": tf.abs(super().drawn(u)["share"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), tf.cast(tf.round(self.drawn(u)["share"] * 65536.0), tf.int32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._draw,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, limit = given
        height, width, channels = sides(images)
        found = tf.reshape(tf.cast(places, tf.int32), [-1, height, width, channels if self.per_channel else 1])
        return tf.where(found < limit[:, None, None, None], tf.constant(self.value, images.dtype), images)

    def _draw(self, images: tf.Tensor, key: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, channels = sides(images)
        return half_words(key, height * width * (channels if self.per_channel else 1)), limit
