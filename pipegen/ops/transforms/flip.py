"""Mirror images."""

from __future__ import annotations

from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.arguments.reach import Reach
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, Example, Family, Traits
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import mirrored
from pipegen.ops.lowering.linear import zeros_for
from pipegen.types import FeatureType


class Flip(DeterministicGeometric):
    """Mirrors every image left to right, upside down, or both, which is half a turn.

    Every output pixel is an input pixel, unchanged, so a flip costs nothing in a run of geometric steps, and `fill`
    and `interpolation` are without effect on a flip that stands alone.
    """

    op = "flip"
    keeps_axes = True
    examples = (
        Example("flip", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("flip: {axis: vertical}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    axis: Literal["horizontal", "vertical", "both"] = "horizontal"
    """Which way: `horizontal` swaps left and right, `vertical` swaps top and bottom, `both` does one and the other."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, moves_pixels_only=True, mirrors=True)

    def reach(self) -> Reach:
        return Reach()

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        return mirrored(float(self.axis != "vertical"), float(self.axis != "horizontal"), like, height, width)
