"""Transposed images."""

from __future__ import annotations

from typing import ClassVar

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.turns import TurnTransform
from pipegen.ops.lowering.affine import quarter_turned
from pipegen.ops.lowering.linear import zeros_for
from pipegen.types import BYTE_RANGE, FeatureType


class Transpose(TurnTransform):
    """Swaps rows and columns of every image, which mirrors it about the diagonal from its top left corner.

    Every output pixel is an input pixel, unchanged. Height and width swap, and have to be known; where they differ, the step ends its
    run of geometric steps. `fill` and `interpolation` are without effect on a transposition that stands alone.
    """

    op = "transpose"
    examples = (
        Example("transpose", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("transpose", FeatureType("image", "uint8", (40, 56, 3), BYTE_RANGE), "uint8[56×40×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return quarter_turned(zeros_for(u) + 1.0, 1.0, height, width)
