"""Make some pixels of images white and some black."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, Probability, check_magnitude, checked
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.threefry import half_words, key_of

_WORDS = 1 << 16


class RandomSaltAndPepper(ByteTransform):
    """Makes a share of the pixels white or black, each by itself: impulse noise. The share is drawn uniformly for each image.

    Whether a pixel is among them is a function of the image's draws and of its place alone, of 16 random bits
    (Threefry-2x32); all of its channels get the same.
    """

    op = "random_salt_and_pepper"
    examples = (
        Example("random_salt_and_pepper: {share: 0.05}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_salt_and_pepper: {share: [0.1, 0.2], salt: 0.2, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    share: Annotated[Magnitude, checked(check_magnitude, 0, 1)]
    """The share of the pixels that change, from 0 to 1: 0.05 means from 0 to 0.05, a pair is the range."""
    salt: Probability = 0.5
    """The share of them that becomes white; the others become black."""

    def weight(self) -> float:
        return 0.5

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"share": tf.abs(super().drawn(u)["share"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        share = self.drawn(u)["share"] * float(_WORDS)
        salt = tf.cast(self.salt, tf.float64)
        white = tf.cast(tf.round(share * salt), tf.int32)
        return key_of(u[:, 1:3]), white, _WORDS - tf.cast(tf.round(share * (1.0 - salt)), tf.int32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (_draw,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, white, black = given
        height, width, _ = sides(images)
        found = tf.reshape(tf.cast(places, tf.int32), [-1, height, width, 1])
        light, dark = (tf.cast(level, images.dtype) for level in (255, 0))
        first, last = (limit[:, None, None, None] for limit in (white, black))
        return tf.where(found < first, light, tf.where(found >= last, dark, images))


def _draw(images: tf.Tensor, key: tf.Tensor, white: tf.Tensor, black: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Draws 16 random bits for each pixel of an image, uint16 `(n, pixels)`."""
    height, width, _ = sides(images)
    return half_words(key, height * width), white, black
