"""Turn images by quarters, and swap their rows and columns."""

from __future__ import annotations

from typing import Literal

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.lowering.linear import quarter_turned, zeros_for
from pipegen.ops.step_bases import GeometricTransform, OccasionalTransform, UnconditionalTransform, require_image
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example, Family, Traits, same_type
from pipegen.types import BYTE_RANGE, FeatureType, times


class TurnTransform(GeometricTransform):
    """A geometric step that copies pixels: it mirrors the axes and may swap them."""

    def swaps(self) -> bool:
        """Whether the step can swap the axes of an example."""
        return True

    def reach(self) -> Reach:
        return Reach(shift=1.0)  # the centre moves where the sides swap

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, moves_pixels_only=True, turns=True, mirrors=not self.swaps())

    def infer(self, x: FeatureType) -> FeatureType:
        """The sides swap. A size that is unknown, or that only some examples would have, is an error."""
        require_image(self, x)
        y = super().infer(x)
        if not self.swaps() or (x.height == x.width is not None):
            return y
        if (x.height is None or x.width is None) and x.uniform:
            return y  # known once the data is read
        if x.height is None or x.width is None:
            message = f"`{self.op}` swaps height and width, and here they differ from image to image"
            raise OpError("PG255", message, help=f"move `{self.op}` behind the step that gives the images one size, such as `resize`")
        if self.random:
            message = f"`{self.op}` makes some images {times((x.width, x.height))}, and leaves others {times(x.shape[:2])}"
            raise OpError("PG255", message, help="resize or crop to a square before it, or use `random_flip: {axis: both}`")
        return y.with_(shape=(x.width, x.height, *x.shape[2:]))


class Rotate90(UnconditionalTransform, TurnTransform):
    """Turns every image counter-clockwise by quarters of a full turn, as `numpy.rot90` does.

    Every output pixel is an input pixel, unchanged. One and three quarters swap height and width, which have to be known; where they
    differ, the step ends its run of geometric steps. On a turn alone, `fill` and `interpolation` have no effect.
    """

    op = "rotate_90"
    examples = (
        Example("rotate_90", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("rotate_90: {turns: 3}", FeatureType("image", "uint8", (40, 56, 3), BYTE_RANGE), "uint8[56×40×3] in [0, 255]"),
        Example("rotate_90: {turns: 2}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    turns: Literal[1, 2, 3] = 1
    """The number of quarter turns: 3 is a quarter clockwise."""

    def swaps(self) -> bool:
        return self.turns != 2

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return quarter_turned(zeros_for(u) + float(self.turns), 0.0, height, width)


class RandomRotate90(TurnTransform):
    """Turns each image by none to three quarters of a full turn, each as likely.

    Every output pixel is an input pixel, unchanged, so that it costs nothing in a run of geometric steps. Images have to be squares of a
    known size, since a batch has one shape. `probability` is the share of examples that draw a turn, which can be by zero quarters.
    """

    op = "random_rotate_90"
    random = True
    draws = 1
    examples = same_type("random_rotate_90", "random_rotate_90: {probability: 0.5}")

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`turns`: the number of quarters, counter-clockwise, from 0 to 3."""
        return {"turns": tf.floor(u[..., 0] * 4.0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return quarter_turned(self.drawn(u)["turns"], 0.0, height, width)


class Transpose(UnconditionalTransform, TurnTransform):
    """Swaps rows and columns of every image, which mirrors it about the diagonal from its top left corner.

    Every output pixel is an input pixel, unchanged. Height and width swap, and have to be known; where they differ, the step ends its
    run of geometric steps. On a transposition alone, `fill` and `interpolation` have no effect.
    """

    op = "transpose"
    examples = (
        Example("transpose", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("transpose", FeatureType("image", "uint8", (40, 56, 3), BYTE_RANGE), "uint8[56×40×3] in [0, 255]"),
    )

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return quarter_turned(zeros_for(u) + 1.0, 1.0, height, width)


class RandomTranspose(OccasionalTransform, TurnTransform):
    """Swaps rows and columns of a share of the images, which mirrors them about the diagonal from their top left corner.

    Every output pixel is an input pixel, unchanged, so that it costs nothing in a run of geometric steps. Images have to be squares of a
    known size, since a batch has one shape.
    """

    op = "random_transpose"
    handles_probability = True
    draws = 1
    examples = same_type("random_transpose", "random_transpose: {probability: 0.25}")

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"transposed": u[..., 0] < self.probability}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        transposed = tf.cast(self.drawn(u)["transposed"], tf.float64)
        return quarter_turned(transposed, transposed, height, width)


class RandomD4(TurnTransform):
    """Turns each image by quarters and mirrors it or not: the eight symmetries of a square, all equally likely.

    It suits pictures without an upright orientation, such as aerial or microscope images. Every output pixel is an input pixel, unchanged,
    so that it costs nothing in a run of geometric steps. Images have to be squares of a known size, since a batch has one shape.
    """

    op = "random_d4"
    random = True
    draws = 1
    examples = same_type("random_d4", "random_d4: {probability: 0.5}")

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`mirrored`: whether left and right are swapped; `turns`: the quarters, counter-clockwise, after that, from 0 to 3."""
        which = tf.floor(u[..., 0] * 8.0)
        return {"mirrored": which >= 4.0, "turns": tf.math.floormod(which, 4.0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        return quarter_turned(drawn["turns"], tf.cast(drawn["mirrored"], tf.float64), height, width)
