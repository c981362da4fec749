"""Give images the losses of JPEG at a random quality."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import check_pair, check_range, checked, span_range
from pipegen.ops.arguments.schedules import AnySchedule
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.jpeg import JpegTransform, Quality
from pipegen.ops.lowering.linear import whole_bounds
from pipegen.ops.lowering.windows import pick


class RandomJpeg(JpegTransform):
    """Encodes an image as JPEG at a quality that is drawn, and decodes it, with what is lost on the way.

    It is libjpeg's: its tables for the quality, colours at half the size (4:2:0), the slow integer DCT and smooth upsampling, bit for
    bit as in a file that Pillow writes and reads. Floats from 0 to 255 are rounded first.
    """

    op = "random_jpeg"
    random = True
    examples = (
        Example("random_jpeg: {quality: [30, 90]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_jpeg: {quality: [10, 50], probability: 0.3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    quality: Annotated[tuple[Quality, Quality] | AnySchedule, checked(check_pair), checked(check_range, 1, 100)]
    """The range of the quality, from 1 to 100, each whole number as likely: 75 is usual, below 30 blocks show."""

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        low, high = whole_bounds(span_range(self.quality))
        return {"quality": low + pick(u[..., 0], high - low)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.drawn(u)["quality"],)
