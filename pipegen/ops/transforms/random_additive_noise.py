"""Add noise of another distribution than the normal one to images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_magnitude, checked, delta_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.threefry import half_words, key_of
from pipegen.types import BYTE_RANGE, FeatureType

_BITS = 12
_PLACES = 1 << _BITS


class RandomAdditiveNoise(ByteTransform):
    """Adds noise of a uniform or a Laplace distribution, whose amount is drawn uniformly for each image.

    With `each: pixel_value`, each value of each pixel gets noise of its own; with `pixel` all channels of a pixel get the same, and with
    `channel` all pixels of a channel do. Noise is a function of the image's draws and of its place alone, one of 4,096 equally likely
    values; bytes are rounded half to even and clipped. `random_gaussian_noise` has the normal distribution.
    """

    op = "random_additive_noise"
    examples = (
        Example("random_additive_noise: {delta: 20}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_additive_noise: {delta: [5, 15], distribution: laplace, each: channel, probability: 0.5}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
    )

    delta: Annotated[Magnitude, checked(check_magnitude, 0, 255)]
    """The amount, in levels of 255: of uniform noise the most, either way; of Laplace noise its scale, the mean of its absolute value. 20
    means from 0 to 20, a pair is the range."""
    distribution: Literal["uniform", "laplace"] = "uniform"
    """The distribution of the noise."""
    each: Literal["pixel_value", "pixel", "channel"] = "pixel_value"
    """What gets noise of its own: each value of each `pixel_value`, each `pixel`, or each `channel` of an image."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return (*super().lints(x), *delta_lints(self.op, "delta", self.delta, x.with_(interval=BYTE_RANGE)))

    def weight(self) -> float:
        return {"pixel_value": 1.4, "pixel": 0.8, "channel": 0.3}[self.each]

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"delta": tf.abs(super().drawn(u)["delta"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        quantiles = tf.constant(_QUANTILES[self.distribution], tf.float64)
        return key_of(u[:, 1:3]), tf.cast(tf.round(self.drawn(u)["delta"][:, None] * quantiles * float(_PLACES)), tf.int32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._draw,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, amounts = given
        height, width, channels = sides(images)
        shape = {"pixel_value": [height, width, channels], "pixel": [height, width, 1], "channel": [1, 1, channels]}[self.each]
        noise = tf.reshape(tf.gather(amounts, tf.cast(places, tf.int32), batch_dims=1), [-1, *shape])
        return tf.cast(tf.clip_by_value(tf.cast(images, tf.int32) + rounded_shift(noise, _BITS), 0, 255), tf.uint8)

    def _draw(self, images: tf.Tensor, key: tf.Tensor, amounts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Draws which of the amounts each place gets, uint16 `(n, places)`."""
        height, width, channels = sides(images)
        count = {"pixel_value": height * width * channels, "pixel": height * width, "channel": channels}[self.each]
        return tf.bitwise.right_shift(half_words(key, count), tf.constant(16 - _BITS, tf.uint16)), amounts


def _laplace(p: float) -> float:
    return math.log(2 * p) if p < 0.5 else -math.log(2 * (1 - p))


_MIDDLES = [(i + 0.5) / _PLACES for i in range(_PLACES)]
_QUANTILES = {"uniform": [2 * p - 1 for p in _MIDDLES], "laplace": [_laplace(p) for p in _MIDDLES]}
