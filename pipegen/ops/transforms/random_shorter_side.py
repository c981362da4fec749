"""Resize images so that their shorter side has one of several lengths."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.base import ANY_IMAGE, Example, Transform
from pipegen.ops.families.resizing import RandomResize
from pipegen.ops.lowering.resizing import side_size
from pipegen.ops.lowering.windows import Box, Sides, pick
from pipegen.types import LARGEST_SIDE

Length = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]


class RandomShorterSide(RandomResize):
    """Resizes an image so that its shorter side has a length drawn from a list or a range; the proportions stay.

    Each length is as likely. The other side follows, rounded half up; where it would be longer than `longer_side`, it gets that length,
    and the shorter side follows. It is how detectors are trained (`sizes: [640, 672, 704, 736, 768, 800], longer_side: 1333`), and,
    with a `random_crop` behind it, how VGG and ResNet were (`between: [256, 480]`).

    On the other splits `resize` to the greatest of the lengths stands in for it.
    """

    op = "random_shorter_side"
    examples = (
        Example("random_shorter_side: {sizes: [640, 704, 768, 800], longer_side: 1333}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("random_shorter_side: {between: [256, 480], antialias: true}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    sizes: Annotated[tuple[Length, ...], Field(min_length=1)] | None = None
    """The lengths that the shorter side can have, in pixels."""
    between: tuple[Length, Length] | None = None
    """The least and the greatest length in pixels, of which every whole number between them is as likely."""
    longer_side: Length | None = None
    """The most that the longer side can have, in pixels."""

    @model_validator(mode="after")
    def _one_form(self) -> RandomShorterSide:
        if (self.sizes is None) == (self.between is None):
            raise ValueError("give either `sizes` or `between`")
        if self.between is not None and self.between[0] > self.between[1]:
            raise ValueError(f"`between` is [least, greatest], got [{self.between[0]}, {self.between[1]}]")
        if self.longer_side is not None and self.longer_side < self._greatest():
            raise ValueError(f"a `longer_side` of {self.longer_side} is shorter than a shorter side of {self._greatest()}")
        return self

    def _greatest(self) -> int:
        return max(self.sizes or self.between or ())

    def needed_size(self) -> tuple[int, int] | None:
        return self._greatest(), self._greatest()

    def num_draws(self) -> int:
        return 1

    def evaluation_form(self) -> tuple[Transform, ...]:
        from pipegen.ops.transforms.resize import Resize

        side, most = self._greatest(), self.longer_side
        return (Resize(shorter_side=side, longer_side=most, method=self.method, antialias=self.antialias, feature=self.feature),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`shorter_side`: the length that is drawn, in pixels, int32 `(...)`."""
        if self.sizes is not None:
            return {"shorter_side": tf.gather(tf.constant(self.sizes), pick(u[..., 0], tf.constant(len(self.sizes) - 1)))}
        least, greatest = self.between or (0, 0)
        return {"shorter_side": least + pick(u[..., 0], tf.constant(greatest - least))}

    def _size(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Sides:
        side = tf.reshape(self.drawn(u)["shorter_side"], [-1])[0]  # images of several sizes come one by one
        return side_size(height, width, side, self.longer_side)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(image)
        return self.resized(image, *self._size(u, shape[0], shape[1]))

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        return (0, 0, height, width), self._size(u, height, width)
