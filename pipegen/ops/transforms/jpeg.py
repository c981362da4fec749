"""Give images the losses of JPEG."""

from __future__ import annotations

from typing import ClassVar

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.jpeg import JpegTransform, Quality


class Jpeg(JpegTransform):
    """Encodes every image as JPEG and decodes it, with what is lost on the way.

    It is libjpeg's: its tables for the quality, colours at half the size (4:2:0), the slow integer DCT and smooth upsampling, bit for
    bit as in a file that Pillow writes and reads. Floats from 0 to 255 are rounded first.
    """

    op = "jpeg"
    examples = (
        Example("jpeg: {quality: 50}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("jpeg: {quality: 10}", IMAGE_224.with_(dtype="float32"), "uint8[224×224×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    quality: Quality
    """The quality, from 1 to 100: 75 is usual, below 30 blocks show."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.fill(tf.shape(u)[:1], self.quality),)
