"""Quarter turns."""

from __future__ import annotations

from typing import ClassVar, Literal

from pipegen.lazy import tf
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, Example
from pipegen.ops.families.turns import TurnTransform
from pipegen.ops.lowering.affine import quarter_turned
from pipegen.ops.lowering.linear import zeros_for
from pipegen.types import BYTE_RANGE, FeatureType


class Rotate90(TurnTransform):
    """Turns every image counter-clockwise by quarters of a full turn, as `numpy.rot90` does.

    Every output pixel is an input pixel, unchanged. One and three quarters swap height and width, which have to be known; where they
    differ, the step ends its run of geometric steps. `fill` and `interpolation` are without effect on a turn that stands alone.
    """

    op = "rotate_90"
    examples = (
        Example("rotate_90", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("rotate_90: {turns: 3}", FeatureType("image", "uint8", (40, 56, 3), BYTE_RANGE), "uint8[56×40×3] in [0, 255]"),
        Example("rotate_90: {turns: 2}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example
    turns: Literal[1, 2, 3] = 1
    """How many quarters: 3 is a quarter clockwise."""

    def swaps(self) -> bool:
        return self.turns != 2

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return quarter_turned(zeros_for(u) + float(self.turns), 0.0, height, width)
