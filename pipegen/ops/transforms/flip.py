"""`flip` and `random_flip`."""

from __future__ import annotations

from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.lowering.linear import mirrored, zeros_for
from pipegen.ops.step_bases import GeometricTransform, UnconditionalTransform
from pipegen.ops.traits import ANY_IMAGE, Family, Traits, same_type
from pipegen.types import FeatureType


class FlipTransform(GeometricTransform):
    """A mirror of one axis or of both."""

    keeps_axes = True

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, moves_pixels_only=True, mirrors=True)

    def reach(self) -> Reach:
        return Reach()


class Flip(UnconditionalTransform, FlipTransform):
    """Mirrors every image left to right, upside down, or both, which is half a turn.

    Every output pixel is an input pixel, unchanged, so a flip costs nothing in a run of geometric steps; on a flip alone, `fill` and
    `interpolation` have no effect.
    """

    op = "flip"
    examples = same_type("flip") + same_type("flip: {axis: vertical}", given=ANY_IMAGE)

    axis: Literal["horizontal", "vertical", "both"] = "horizontal"
    """Which way: `horizontal` swaps left and right, `vertical` swaps top and bottom, `both` swaps both."""

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        return mirrored(float(self.axis != "vertical"), float(self.axis != "horizontal"), like, height, width)


class RandomFlip(FlipTransform):
    """Mirrors an image left to right, upside down, or both, each with its own coin.

    Every output pixel is an input pixel, unchanged, so a flip costs nothing in a run of geometric steps; on a flip alone, `fill` and
    `interpolation` have no effect.

    With `axis: both` the two coins are independent: at `probability: 0.5`, a quarter of the images stays as it is.
    """

    op = "random_flip"
    random = True
    handles_probability = True
    examples = (
        *same_type("random_flip", "random_flip: {axis: both}"),
        *same_type("random_flip: {axis: vertical, probability: 0.25}", given=ANY_IMAGE),
    )

    axis: Literal["horizontal", "vertical", "both"] = "horizontal"
    """Which way: `horizontal` swaps left and right, `vertical` swaps top and bottom, `both` draws for each."""
    probability: Probability = 0.5
    """The share of examples that is mirrored, for each axis by itself."""

    def num_draws(self) -> int:
        return 2 if self.axis == "both" else 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Whether the image is mirrored: `horizontal`, `vertical` or both."""
        axes = ("horizontal", "vertical") if self.axis == "both" else (self.axis,)
        return {axis: u[..., i] < self.probability for i, axis in enumerate(axes)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        none = tf.zeros_like(u[..., 0])
        flips = {axis: tf.cast(flip, tf.float64) for axis, flip in self.drawn(u).items()}
        return mirrored(flips.get("horizontal", none), flips.get("vertical", none), none, height, width)
