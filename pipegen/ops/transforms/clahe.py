"""Equalise images tile by tile."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.adaptive import LARGEST, AdaptiveEqualizationTransform


class Clahe(AdaptiveEqualizationTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast: CLAHE (Zuiderveld 1994).

    It is OpenCV's `createCLAHE`, within one level: what a value has above `limit` times the mean count of its tile is spread
    over all values, and a pixel is read through the tables of the four tiles around it, blended. Floats from 0 to 255 are
    rounded first.
    """

    op = "clahe"
    examples = (
        Example("clahe: {limit: 2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("clahe: {limit: 4, tiles: [6, 10], channel: each}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    limit: Annotated[float, Field(ge=0, le=LARGEST)] = 2.0
    """How many times the mean count a value may have in a tile, at most 255: 1 changes little, 40 hardly limits; 0 does not at all."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.fill(tf.shape(u)[:1], tf.constant(self.limit, tf.float64)),)
