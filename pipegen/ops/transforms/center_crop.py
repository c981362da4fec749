"""Cut out the middle of images."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, CropTransform, Example
from pipegen.ops.lowering.windows import inside, place


class CenterCrop(CropTransform):
    """Cuts a window out of the middle: top = ⌊(H - h) / 2⌋, left = ⌊(W - w) / 2⌋.

    An image smaller than the window is an error, which names the file when it is found while running.
    """

    op = "center_crop"
    examples = (
        Example("center_crop: {size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("center_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    size: Size
    """The window's size in pixels: a square's side, or [height, width]."""

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        return place((height - h) // 2, (width - w) // 2, h, w, u)
