"""Cut a window out of images at a fixed place."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, CropTransform, Example
from pipegen.ops.lowering.windows import inside, place
from pipegen.types import FeatureType, times

Place = Annotated[int, Field(ge=0, le=32767)]


class Crop(CropTransform):
    """Cuts out the window at a place in pixels, the same one of every image.

    An image that the window leaves is an error, which names the file when it is found while running. `center_crop` and `corner_crop`
    choose the place by the image's size, `random_crop` draws it.
    """

    op = "crop"
    examples = (
        Example("crop: {top: 2, left: 10, size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    size: Size
    """The window's size in pixels: a square's side, or [height, width]."""
    top: Place = 0
    """Its first row, counted from 0."""
    left: Place = 0
    """Its first column, counted from 0."""

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)

    def infer(self, x: FeatureType) -> FeatureType:
        """The window's size; an image that is known to be too small is an error."""
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
