"""Cut a corner out of images."""

from __future__ import annotations

from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, CropTransform, Example
from pipegen.ops.lowering.windows import inside, place


class CornerCrop(CropTransform):
    """Cuts a window out of one corner.

    With `center_crop` it makes the five crops of AlexNet (Krizhevsky et al. 2012), torchvision's `FiveCrop`: as branches of `views` that
    have `when: all`, each is an input of its own on every split. With a `flip` in five more branches they are ten.

    An image smaller than the window is an error, which names the file when it is found while running.
    """

    op = "corner_crop"
    examples = (
        Example("corner_crop: {size: 160, corner: top_left}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("corner_crop: {size: [180, 240], corner: bottom_right}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    size: Size
    """The window's size in pixels: a square's side, or [height, width]."""
    corner: Literal["top_left", "top_right", "bottom_left", "bottom_right"]
    """Which corner."""

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        row, column = self.corner.split("_")
        return place(0 if row == "top" else height - h, 0 if column == "left" else width - w, h, w, u)
