"""`rotation` and `random_rotation`."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import TURN, Degrees, Number
from pipegen.ops.lowering.linear import radians, turned
from pipegen.ops.step_bases import AmountTransform, FixedTransform, GeometricTransform, UniformTransform
from pipegen.ops.traits import same_type


class RotationTransform(AmountTransform, GeometricTransform):
    """A rotation about the centre."""

    def reach(self) -> Reach:
        return Reach()

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return turned(radians(self.amounts(u)["degrees"]), height, width)


class Rotation(FixedTransform, RotationTransform):
    """Turns every image about its centre by one angle.

    Positive angles turn the picture counter-clockwise as you see it. The canvas keeps its size; what turns in from
    outside is `fill`.
    """

    op = "rotation"
    examples = same_type("rotation: {degrees: 90}", "rotation: {degrees: -15, fill: {constant: 0}}")

    degrees: Annotated[Number, TURN]
    """The angle in degrees, counter-clockwise."""


class RandomRotation(UniformTransform, RotationTransform):
    """Turns an image about its centre by an angle drawn uniformly.

    Positive angles turn the picture counter-clockwise as you see it. The canvas keeps its size; what turns in from
    outside is `fill`.
    """

    op = "random_rotation"
    examples = same_type("random_rotation: {degrees: 20}", "random_rotation: {degrees: [0, 90], fill: {constant: 0}}")

    degrees: Degrees
    """The angle in degrees, counter-clockwise: 20 means from -20 to 20, a pair is the range."""
