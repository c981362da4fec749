"""Cut a window out of images at a random place."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, CropTransform, Example, Transform
from pipegen.ops.lowering.windows import inside, pick, place


class RandomCrop(CropTransform):
    """Cuts out a window of fixed size; each of its (H - h + 1) · (W - w + 1) places is equally likely.

    On the other splits `center_crop` of the same size stands in for it. An image smaller than the window is an error,
    which names the file when it is found while running.
    """

    op = "random_crop"
    random = True
    examples = (
        Example("random_crop: {size: 200}", IMAGE_224, "uint8[200×200×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    size: Size
    """The window's size in pixels: a square's side, or [height, width]."""

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)

    def num_draws(self) -> int:
        return 2

    def evaluation_form(self) -> tuple[Transform, ...]:
        from pipegen.ops.transforms.center_crop import CenterCrop

        return (CenterCrop(size=self.size, feature=self.feature),)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        return place(pick(u[..., 0], height - h), pick(u[..., 1], width - w), h, w, u)
