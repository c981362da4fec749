"""Blur images as a lens out of focus does."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.defocus import LARGEST, DefocusTransform


class DefocusBlur(DefocusTransform):
    """Replaces each pixel by the mean of a disc around it, as a lens out of focus does.

    A pixel at distance d counts by radius + 1/2 - d, at least 0 and at most 1; the image is reflected at its border (abc|cba).
    Bytes are weighted by integers of 14 bits, exactly the same everywhere.
    """

    op = "defocus_blur"
    examples = (
        Example("defocus_blur: {radius: 3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("defocus_blur: {radius: 1.5}", IMAGE_224.with_(dtype="float32"), "float32[224×224×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    radius: Annotated[float, Field(ge=0, le=LARGEST)]
    """The radius of the disc, in pixels, at most 10; 0 changes nothing."""

    def largest(self) -> float:
        return self.radius

    def idle(self) -> bool:
        return self.radius <= 0.5

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return self.discs(tf.fill(tf.shape(u)[:1], tf.constant(self.radius, tf.float64)))
