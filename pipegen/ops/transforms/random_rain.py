"""Let rain fall over images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import Whole, rounded_shift, sides
from pipegen.ops.lowering.overlays import BITS, over
from pipegen.ops.lowering.threefry import half_words, key_of

_COLOUR = (205, 210, 215)
_WORDS = 1 << 16


class RandomRain(ByteTransform):
    """Lets rain fall: slanted streaks one pixel wide, which get denser from their top to their bottom.

    Columns of pixels, slanted by an angle drawn uniformly for each image, are divided into stretches of twice the length of a
    streak; each stretch has a streak with a probability of `density`, drawn uniformly for each image. Whether it has one is a function of
    the image's draws and of its place alone, of 16 random bits (Threefry-2x32). (Albumentations' `RandomRain` draws lines anywhere, and
    blurs and darkens the image, which other steps do as well.)
    """

    op = "random_rain"
    examples = (
        Example("random_rain", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_rain: {density: [0.1, 0.2], length: 30, probability: 0.2}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
    )

    density: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.05, 0.2)
    """The range of the probability that a stretch of a column has a streak."""
    length: Annotated[int, Field(ge=2, le=200)] = 16
    """The height of a streak, in pixels."""
    slant_degrees: Annotated[Span, checked(check_pair), checked(check_range, -60, 60)] = (-10.0, 10.0)
    """The range of the angle from the vertical, in degrees, from -60 to 60; above 0 rain falls to the right."""
    opacity: Annotated[float, Field(ge=0, le=1)] = 0.6
    """The share of its own colour that a streak has at its bottom, from 0 to 1."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.density)[1] == 0 or self.opacity == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"density": span_range(self.density), "slant_degrees": span_range(self.slant_degrees)}

    def weight(self) -> float:
        return 1.0

    def num_draws(self) -> int:
        return 4

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the key, the probability, and how far each row is slanted to the right, in pixels."""
        density, degrees = self.drawn(u).values()
        slope = tf.tan(degrees * (math.pi / 180.0))[:, None]
        moved = tf.cast(tf.round(slope * tf.range(tf.cast(height, tf.float64), dtype=tf.float64)), tf.int32)
        return key_of(u[:, 2:4]), tf.cast(tf.round(density * float(_WORDS)), tf.int32), moved

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return self._streaks, self._shares

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(over(tf.cast(images, tf.int32), given[0], _COLOUR), tf.uint8)

    def _stretches(self, height: Whole) -> Whole:
        """Returns how many stretches a column has at most: one begins above the image."""
        return height // (2 * self.length) + 2

    def _streaks(self, images: tf.Tensor, key: tf.Tensor, density: tf.Tensor, moved: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns of each column how far above the image its first stretch begins, and of each stretch whether it has a streak."""
        height, width, _ = sides(images)
        words = tf.cast(half_words(key, width * (self._stretches(height) + 1)), tf.int32)
        return rounded_shift(words[:, :width] * (2 * self.length - 1), 16), tf.cast(words[:, width:] < density[:, None], tf.int32), moved

    def _shares(self, images: tf.Tensor, above: tf.Tensor, has: tf.Tensor, moved: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the share of the rain's colour at each pixel, int32 `(n, height, width)`."""
        height, width, _ = sides(images)
        column = tf.math.floormod(tf.range(width)[None, None, :] - moved[:, :, None], width)
        down = tf.range(height)[None, :, None] + _picked(above, column)
        stretch, place = down // (2 * self.length), tf.math.floormod(down, 2 * self.length)
        falls = _picked(has, column * self._stretches(height) + stretch)
        denser = tf.where(place < self.length, place + 1, 0) * (round(self.opacity * (1 << BITS)) // self.length)
        return (falls * denser,)


def _picked(values: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Values `(n, k)` of each example at places of any shape `(n, ...)`."""
    found = tf.gather(values, tf.reshape(places, [tf.shape(places)[0], -1]), batch_dims=1)
    return tf.reshape(found, tf.shape(places))
