"""Degrade images: by JPEG, and by shrinking and enlarging."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AnySchedule, Span, span_range, within
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import Phase, columns_of, rows_of, through
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.step_bases import UnconditionalTransform, UniformTransform
from pipegen.ops.traits import IMAGE_224, Example, same_type

Quality = Annotated[int, Field(ge=1, le=100)]


class JpegTransform(NeighbourhoodTransform):
    """Encodes each image as JPEG and decodes it, by libjpeg, with the same bits as a file."""

    on_bytes = True
    on_host = True
    channel_counts = (1, 3)
    cost = 1.1

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        def one(single: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            image, quality = single
            file = tf.raw_ops.EncodeJpegVariableQuality(images=image, quality=quality)
            return tf.io.decode_jpeg(file, int(images.shape[-1]), dct_method="INTEGER_ACCURATE")

        (quality,) = given
        done = tf.map_fn(one, (images, quality), fn_output_signature=tf.TensorSpec(images.shape[1:], tf.uint8))
        done.set_shape(images.shape)
        return done


class Jpeg(UnconditionalTransform, JpegTransform):
    """Encodes every image as JPEG and decodes it, with the losses of that.

    libjpeg does it, with its tables for the quality, colours at half the size (4:2:0), the slow integer DCT and smooth upsampling, bit
    for bit as in a file that Pillow writes and reads. Floats from 0 to 255 are rounded first.
    """

    op = "jpeg"
    examples = (
        Example("jpeg: {quality: 50}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("jpeg: {quality: 10}", IMAGE_224.with_(dtype="float32"), "uint8[224×224×3] in [0, 255]"),
    )

    quality: Quality
    """The quality, from 1 to 100: 75 is usual, below 30 blocks show."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.fill(tf.shape(u)[:1], self.quality),)


class RandomJpeg(JpegTransform):
    """Encodes an image as JPEG at a quality that is drawn, and decodes it, with the losses of that.

    libjpeg does it, with its tables for the quality, colours at half the size (4:2:0), the slow integer DCT and smooth upsampling, bit
    for bit as in a file that Pillow writes and reads. Floats from 0 to 255 are rounded first.
    """

    op = "random_jpeg"
    random = True
    draws = 1
    examples = same_type("random_jpeg: {quality: [30, 90]}", "random_jpeg: {quality: [10, 50], probability: 0.3}")

    quality: Annotated[tuple[Quality, Quality] | AnySchedule, within(1, 100)]
    """The range of the quality, from 1 to 100, each whole number as likely: 75 is usual, below 30 blocks show."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"quality": whole_between(u[..., 0], span_range(self.quality))}


class RandomDownscale(UniformTransform, NeighbourhoodTransform):
    """Shrinks an image by a factor drawn uniformly and enlarges it to its size again, which loses details.

    A side of s pixels becomes one of factor · s, rounded half to even and at least one. `nearest` reads one pixel both times, and gives
    blocks; `bilinear` interpolates between four, without a filter before shrinking.
    """

    op = "random_downscale"
    idle_at = {"factor": 1.0}
    examples = same_type(
        "random_downscale: {factor: [0.25, 0.75]}", "random_downscale: {factor: [0.3, 0.9], method: bilinear, probability: 0.3}"
    )

    factor: Annotated[Span, within(0.01, 1)]
    """The range of the factor, up to 1, which changes nothing."""
    method: Literal["nearest", "bilinear"] = "nearest"
    """How pixels are read, both times: `nearest` takes one, `bilinear` interpolates between four."""

    def weight(self) -> float:
        return 0.7 if self.method == "nearest" else 2.1

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        factor = self.drawn(u)["factor"]
        return *through(factor, height, self.method), *through(factor, width, self.method)

    def phases(self) -> tuple[Phase, ...]:
        return rows_of, columns_of
