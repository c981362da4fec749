"""Quarter turns at random."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.turns import TurnTransform
from pipegen.ops.lowering.affine import quarter_turned


class RandomRotate90(TurnTransform):
    """Turns each image by none to three quarters of a full turn, all four as likely.

    Every output pixel is an input pixel, unchanged, so that it costs nothing in a run of geometric steps. Images have to be squares of a
    known size, since a batch has one shape. `probability` is the share of examples that draw a turn, which can be none.
    """

    op = "random_rotate_90"
    random = True
    examples = (
        Example("random_rotate_90", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_rotate_90: {probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the quarters, counter-clockwise: 0 to 3."""
        return {"turns": tf.floor(u[..., 0] * 4.0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return quarter_turned(self.drawn(u)["turns"], 0.0, height, width)
