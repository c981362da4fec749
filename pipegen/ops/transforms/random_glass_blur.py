"""Show images through frosted glass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import beside, filter_columns, filter_rows, gaussian_radius, gaussian_weights, sides, widen
from pipegen.ops.lowering.threefry import half_words, key_of


class RandomGlassBlur(NeighbourhoodTransform):
    """Shows an image through frosted glass: blurred, each pixel taken from a random place near by, and blurred again (the
    corruption `glass_blur` of Hendrycks and Dietterich 2019, in which pixels change places).

    The place is drawn for each pixel by itself, by 8 random bits across and 8 down (Threefry-2x32), and lies inside the image.
    The blur is that of `gaussian_blur`. Masks stay as they are.
    """

    op = "random_glass_blur"
    random = True
    examples = (
        Example("random_glass_blur: {distance: 3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_glass_blur: {distance: 2, sigma: 0.5, probability: 0.3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    distance: Annotated[int, Field(ge=1, le=16)]
    """How far from itself a pixel is taken at most, across and down, in pixels."""
    sigma: Annotated[float, Field(gt=0, le=5)] = 0.7
    """The standard deviation of the Gaussian, in pixels, at most 5."""

    def weight(self) -> float:
        return 2.4 + 0.2 * gaussian_radius(self.sigma)

    def num_draws(self) -> int:
        return 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The `key` that every pixel's place follows from, uint32 `(n, 2)`."""
        return {"key": key_of(u)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        sigma = tf.fill(tf.shape(u)[:1], tf.constant(self.sigma, tf.float64))
        return key_of(u), *gaussian_weights(sigma, gaussian_radius(self.sigma))

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return beside(widen), beside(filter_rows), self._filter_and_take, _widen_again, filter_rows, filter_columns

    def _filter_and_take(self, images: tf.Tensor, key: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The blurred images `(n, height · width, channels)`, each pixel taken from its place."""
        height, width, channels = sides(images)
        (lines,) = filter_columns(images, *given)
        down, right = (tf.reshape(moved, [-1, height, width]) for moved in self._moved(key, height * width))
        row = tf.clip_by_value(tf.range(height)[:, None] + down, 0, height - 1)
        column = tf.clip_by_value(tf.range(width)[None, :] + right, 0, width - 1)
        pixels = tf.reshape(lines, [-1, height * width, channels])
        return tf.gather(pixels, tf.reshape(row * width + column, [-1, height * width]), batch_dims=1), *given[1:]

    def _moved(self, key: tf.Tensor, pixels: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        words = tf.cast(half_words(key, pixels), tf.int32)
        places = 2 * self.distance + 1
        down, right = (
            tf.bitwise.right_shift(byte * places, 8) - self.distance
            for byte in (tf.bitwise.right_shift(words, 8), tf.bitwise.bitwise_and(words, 255))
        )
        return down, right


def _widen_again(images: tf.Tensor, taken: tf.Tensor, *weights: tf.Tensor) -> tuple[tf.Tensor, ...]:
    return widen(tf.reshape(taken, [-1, *sides(images)]), *weights)
