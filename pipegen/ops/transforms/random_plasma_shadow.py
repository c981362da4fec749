"""Let the shadows of clouds fall on images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.overlays import BITS, ONE, over, plasma, shares
from pipegen.ops.lowering.threefry import key_of

_BLACK = (0, 0, 0)


class RandomPlasmaShadow(ByteTransform):
    """Darkens images by clouds: Albumentations' `PlasmaShadow`.

    A cloud is smooth noise of three sizes, from 0 to 1, the same for all channels. Each value becomes x · (1 - darkness · cloud), in
    whole numbers; the darkness is drawn uniformly for each image.
    """

    op = "random_plasma_shadow"
    examples = (
        Example("random_plasma_shadow", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_plasma_shadow: {darkness: [0.5, 0.9], sigma: 20, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    darkness: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.3, 0.7)
    """The range of the share of light that the middle of a cloud takes, from 0 to 1."""
    sigma: Annotated[float, Field(ge=4, le=100)] = 40.0
    """The width of the largest clouds, in pixels; the others are half and a quarter of it."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.darkness)[1] == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"darkness": span_range(self.darkness)}

    def weight(self) -> float:
        return 1.7

    def num_draws(self) -> int:
        return 3

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), shares(self.drawn(u)["darkness"])

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._shares,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(over(tf.cast(images, tf.int32), given[0], _BLACK), tf.uint8)

    def _shares(self, images: tf.Tensor, key: tf.Tensor, darkness: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        cloud = (ONE + plasma(key, height, width, self.sigma)) // 2
        return (rounded_shift(darkness[:, None, None] * cloud, BITS),)
