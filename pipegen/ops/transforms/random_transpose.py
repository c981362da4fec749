"""Transposed images at random."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.turns import TurnTransform
from pipegen.ops.lowering.affine import quarter_turned


class RandomTranspose(TurnTransform):
    """Swaps rows and columns of some images, which mirrors them about the diagonal from their top left corner.

    Every output pixel is an input pixel, unchanged, so that it costs nothing in a run of geometric steps. Images have to be squares of a
    known size, since a batch has one shape.
    """

    op = "random_transpose"
    random = True
    handles_probability = True
    examples = (
        Example("random_transpose", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_transpose: {probability: 0.25}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    probability: Probability = 0.5
    """The share of examples that is transposed."""

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns whether it is transposed."""
        return {"transposed": u[..., 0] < self.probability}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        transposed = tf.cast(self.drawn(u)["transposed"], tf.float64)
        return quarter_turned(transposed, transposed, height, width)
