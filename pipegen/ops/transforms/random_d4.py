"""The symmetries of a square at random."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.turns import TurnTransform
from pipegen.ops.lowering.affine import quarter_turned


class RandomD4(TurnTransform):
    """Turns each image by quarters and mirrors it or not: the eight ways in which a square lies on itself, all as likely.

    It suits pictures without an upright, such as those from above or from a microscope. Every output pixel is an input pixel, unchanged,
    so that it costs nothing in a run of geometric steps. Images have to be squares of a known size, since a batch has one shape.
    """

    op = "random_d4"
    random = True
    examples = (
        Example("random_d4", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_d4: {probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns whether left and right are swapped, and by how many quarters it is turned counter-clockwise after that: 0 to 3."""
        which = tf.floor(u[..., 0] * 8.0)
        return {"mirrored": which >= 4.0, "turns": tf.math.floormod(which, 4.0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        return quarter_turned(drawn["turns"], tf.cast(drawn["mirrored"], tf.float64), height, width)
