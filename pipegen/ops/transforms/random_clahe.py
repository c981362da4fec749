"""Equalise images tile by tile, by a random amount."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.adaptive import LARGEST, AdaptiveEqualizationTransform
from pipegen.ops.lowering.linear import uniform


class RandomClahe(AdaptiveEqualizationTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast that is drawn uniformly: CLAHE (Zuiderveld 1994).

    It is OpenCV's `createCLAHE`, within one level: what a value has above the limit is spread over all values, and a pixel is
    read through the tables of the four tiles around it, blended. Floats from 0 to 255 are rounded first.
    """

    op = "random_clahe"
    random = True
    examples = (
        Example("random_clahe: {limit: [1, 4]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_clahe: {limit: [2, 2], tiles: 4, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    limit: Annotated[Span, checked(check_pair), checked(check_range, 0, LARGEST)] = (1.0, 4.0)
    """The range of how many times the mean count a value may have in a tile, at most 255: 1 changes little; 0 is no limit."""

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"limit": uniform(u[..., 0], span_range(self.limit))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.drawn(u)["limit"],)
