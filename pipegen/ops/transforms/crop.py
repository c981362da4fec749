"""Cut windows out of images, at a place or at random."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import height_width
from pipegen.ops.families.crops import PaddedWindow, RandomSizedCrop, SizedCrop
from pipegen.ops.lowering.windows import inside, pick, place
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example
from pipegen.ops.transform import Transform
from pipegen.ops.transforms.pad import Pad, Pixels
from pipegen.types import FeatureType, Interval, times


class Crop(SizedCrop):
    """Cuts out the window at a place in pixels, the same for every image.

    An image that does not hold the window is an error, which names the file if it is found while running. `center_crop` and `corner_crop`
    choose the place by the image's size, `random_crop` draws it.
    """

    op = "crop"
    examples = (
        Example("crop: {top: 2, left: 10, size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    top: Pixels = 0
    """The window's first row, counted from 0."""
    left: Pixels = 0
    """The window's first column, counted from 0."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        h, w = self.output_size()
        if (x.height is not None and self.top + h > x.height) or (x.width is not None and self.left + w > x.width):
            message = f"`{self.op}` reaches to row {self.top + h} and column {self.left + w} of an image of {times(x.shape[:2])}"
            raise OpError("PG206", message, field="size", help="use a smaller window, or one further up and to the left")
        return y

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((self.top + h, self.left + w), height, width)
        return place(self.top, self.left, h, w, u)


class CenterCrop(SizedCrop):
    """Cuts a window out of the middle: top = ⌊(H - h) / 2⌋, left = ⌊(W - w) / 2⌋.

    An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "center_crop"
    examples = (
        Example("center_crop: {size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("center_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        return place((height - h) // 2, (width - w) // 2, h, w, u)


class CornerCrop(SizedCrop):
    """Cuts a window out of one corner.

    With `center_crop` it gives the five crops of AlexNet (Krizhevsky et al. 2012), torchvision's `FiveCrop`: as branches of `views` with
    `when: all`, each is an input of its own on every split. Five more branches with a `flip` give ten crops.

    An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "corner_crop"
    examples = (
        Example("corner_crop: {size: 160, corner: top_left}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("corner_crop: {size: [180, 240], corner: bottom_right}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    corner: Literal["top_left", "top_right", "bottom_left", "bottom_right"]
    """The corner."""

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        row, column = self.corner.split("_")
        return place(0 if row == "top" else height - h, 0 if column == "left" else width - w, h, w, u)


SMALL = FeatureType("image", "uint8", (32, 32, 3), Interval(0, 255))


class RandomCrop(RandomSizedCrop, PaddedWindow):
    """Cuts out a window of fixed size; each of its (H - h + 1) · (W - w + 1) places is equally likely.

    `padding` puts a border around the image first, as recipes for CIFAR do (`random_crop: {size: 32, padding: 4}`); with `as_needed`, an
    image smaller than the window lies at a random place in it. The border and the window take one copy.

    On the other splits, `center_crop` of the same size replaces it, after a `pad` to at least that size if it has a `padding`. With a
    `probability` below 1, nothing replaces it: images then have the size before it. An image that is smaller than the window even with its
    border is an error, which names the file if it is found while running.
    """

    op = "random_crop"
    draws = 2
    examples = (
        Example("random_crop: {size: 200}", IMAGE_224, "uint8[200×200×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
        Example("random_crop: {size: 32, padding: 4}", SMALL, "uint8[32×32×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240], padding: as_needed, fill: reflect}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
        Example("random_crop: {size: 32, padding: 4, probability: 0.5}", SMALL, "uint8[32×32×3] in [0, 255]"),
    )

    padding: Pixels | tuple[Pixels, Pixels] | Literal["as_needed"] | None = None
    """The width in pixels of a border around the image: on every side, or [above and below, left and right]; or `as_needed`, as far as the
    window is larger than the image."""

    @model_validator(mode="after")
    def _consistent(self) -> RandomCrop:
        if "fill" in self.model_fields_set and not self.pads():
            raise ValueError("`fill` needs `padding`")
        return self

    def pads(self) -> bool:
        return self.padding == "as_needed" or any(self._border())

    def _border(self) -> tuple[int, int]:
        if self.padding is None or isinstance(self.padding, str):
            return 0, 0
        return height_width(self.padding)

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        if self.padding == "as_needed":
            return None, None
        height, width = (side + 2 * more if side is not None else None for side, more in zip(x.shape[:2], self._border(), strict=True))
        return height, width

    def meaning(self) -> dict[str, Any]:
        """Writes an equal border as one number."""
        rows, columns = self._border()
        border = self.padding if isinstance(self.padding, str) else rows if rows == columns else [rows, columns]
        return super().meaning() | {"padding": border}

    def replacement(self) -> tuple[Transform, ...]:
        pad = (Pad(at_least=self.size, fill=self.fill, feature=self.feature),) if self.pads() else ()
        return (*pad, CenterCrop(size=self.size, feature=self.feature))

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        size, border = self.output_size(), self._border()
        if self.padding != "as_needed":
            inside(size, height, width, border)
        starts = []
        for axis, side in enumerate((height, width)):
            room = side + 2 * border[axis] - size[axis]
            first = pick(u[..., axis], tf.abs(room))
            starts.append((first if self.padding != "as_needed" else tf.where(room < 0, -first, first)) - border[axis])
        return place(starts[0], starts[1], *size, u)
