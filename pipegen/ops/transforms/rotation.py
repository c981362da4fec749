"""Rotate images by an angle."""

from __future__ import annotations

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, angle_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicGeometric
from pipegen.ops.lowering.affine import turned
from pipegen.ops.lowering.linear import radians
from pipegen.types import FeatureType


class Rotation(DeterministicGeometric):
    """Turns every image about its centre by one angle.

    Positive angles turn the picture counter-clockwise as you see it. The canvas keeps its size; what turns in from
    outside is `fill`.
    """

    op = "rotation"
    examples = (
        Example("rotation: {degrees: 90}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("rotation: {degrees: -15, fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    degrees: Number
    """The angle in degrees, counter-clockwise."""

    def is_identity(self, x: FeatureType) -> bool:
        return self.degrees == 0

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return angle_lints(self.op, self.degrees, most=360, why="a full turn is 360")

    def fixed(self, like: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return turned(radians(like + self.degrees), height, width)
