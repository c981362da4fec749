"""Put fog over images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.overlays import BITS, ONE, clouds, over, shares
from pipegen.ops.lowering.threefry import key_of

_WHITE = (255, 255, 255)


class RandomFog(ByteTransform):
    """Blends images with white: fog whose density is drawn uniformly for each image, and changes smoothly over it.

    Each pixel becomes x + share · (255 - x); the share is the density, times 1 plus `patchiness` times smooth noise of deviation 1,
    clipped to 0 and 1. The noise is a function of the image's draws and of its place alone, in whole numbers. (Albumentations' `RandomFog`
    paints discs, one over another.)
    """

    op = "random_fog"
    examples = (
        Example("random_fog", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_fog: {density: [0.6, 0.8], patchiness: 0.1, probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    density: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.2, 0.6)
    """The range of the share of white, from 0 to 1."""
    patchiness: Annotated[float, Field(ge=0, le=1)] = 0.3
    """The deviation of the density over an image, as a share of it, from 0 to 1: 0 is an even haze."""
    sigma: Annotated[float, Field(ge=1, le=100)] = 30.0
    """The width of a patch, in pixels: the standard deviation of the Gaussian that smooths the noise."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.density)[1] == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"density": span_range(self.density)}

    def weight(self) -> float:
        return 1.5

    def num_draws(self) -> int:
        return 3

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), shares(self.drawn(u)["density"])

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._shares,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(over(tf.cast(images, tf.int32), given[0], _WHITE), tf.uint8)

    def _shares(self, images: tf.Tensor, key: tf.Tensor, density: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the share of white at each pixel."""
        height, width, _ = sides(images)
        noise = tf.clip_by_value(clouds(key, height, width, self.sigma), -8 * ONE, 8 * ONE)
        uneven = ONE + rounded_shift(noise * round(self.patchiness * ONE), BITS)
        return (tf.clip_by_value(rounded_shift(density[:, None, None] * uneven, BITS), 0, ONE),)
