"""Throw drops of water or mud at the lens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.overlays import BITS, ONE, clouds, over
from pipegen.ops.lowering.threefry import key_of

_COLOURS = {"water": (175, 238, 238), "mud": (63, 42, 20)}
_EDGE = 2
"""How much faster than the noise the share of a drop grows from its edge on."""


class RandomSpatter(ByteTransform):
    """Puts drops of water or mud over a share of the image, drawn uniformly: patches where smooth noise is highest.

    A drop is as dense as the noise is above the threshold of its edge, up to `opacity`. The noise is a function of the image's draws and of
    its place alone, in whole numbers. It follows the spatter of ImageNet-C, and Albumentations' `Spatter`, without their edges of
    reflected light.

    Source: Hendrycks and Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations" (2019).
    """

    op = "random_spatter"
    examples = (
        Example("random_spatter", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_spatter: {of: mud, share: [0.1, 0.3], probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    of: Literal["water", "mud"] = "water"
    """The kind of drops: `water`, which is pale, or `mud`, which is dark."""
    share: Annotated[Span, checked(check_pair), checked(check_range, 0, 0.9)] = (0.02, 0.15)
    """The range of the share of the image that drops cover, from 0 to 0.9."""
    opacity: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The greatest share of its own colour that a drop has, from 0 to 1."""
    sigma: Annotated[float, Field(ge=1, le=100)] = 4.0
    """The width of a drop, in pixels: the standard deviation of the Gaussian that smooths the noise."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or self.opacity == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"share": span_range(self.share)}

    def weight(self) -> float:
        return 2.0

    def num_draws(self) -> int:
        return 3

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        free = tf.clip_by_value(1.0 - self.drawn(u)["share"], 0.0, 1.0 - 2.0**-20)
        return key_of(u[:, 1:3]), tf.cast(tf.round(tf.math.ndtri(free) * float(ONE)), tf.int32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._shares,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(over(tf.cast(images, tf.int32), given[0], _COLOURS[self.of]), tf.uint8)

    def _shares(self, images: tf.Tensor, key: tf.Tensor, edge: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the share of the drops' colour at each pixel."""
        height, width, _ = sides(images)
        above = tf.clip_by_value(_EDGE * (clouds(key, height, width, self.sigma) - edge[:, None, None]), 0, ONE)
        return (rounded_shift(above * round(self.opacity * ONE), BITS),)
