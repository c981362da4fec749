"""Degrade images: by JPEG, by shrinking and enlarging, and as lenses separate colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AnySchedule, Span, span_range, within
from pipegen.ops.families.chains import Chains, EnlargingTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import BITS, columns_of, rows_of, through
from pipegen.ops.lowering.linear import uniform, whole_bounds
from pipegen.ops.lowering.windows import pick
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
        low, high = whole_bounds(span_range(self.quality))
        return {"quality": low + pick(u[..., 0], high - low)}


class RandomDownscale(UniformTransform, NeighbourhoodTransform):
    """Shrinks an image by a factor drawn uniformly and enlarges it to its size again, which loses details.

    A side of s pixels becomes one of factor · s, rounded half to even and at least one. `nearest` reads one pixel both times, and gives
    blocks; `bilinear` interpolates between four, without a filter before shrinking.
    """

    op = "random_downscale"
    examples = same_type(
        "random_downscale: {factor: [0.25, 0.75]}", "random_downscale: {factor: [0.3, 0.9], method: bilinear, probability: 0.3}"
    )

    factor: Annotated[Span, within(0.01, 1)]
    """The range of the factor, up to 1, which changes nothing."""
    method: Literal["nearest", "bilinear"] = "nearest"
    """How pixels are read, both times: `nearest` takes one, `bilinear` interpolates between four."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.factor) == (1.0, 1.0)

    def weight(self) -> float:
        return 0.7 if self.method == "nearest" else 2.1

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        factor = self.drawn(u)["factor"]
        return *through(factor, height, self.method), *through(factor, width, self.method)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return rows_of, columns_of


class RandomChromaticAberration(UniformTransform, EnlargingTransform):
    """Enlarges red and blue about the centre, each by a factor that is drawn uniformly, and leaves green: lateral chromatic aberration.

    Each channel is read once, bilinear. Objects stay in place within a pixel or two, so masks and boxes stay, too. (Albumentations moves
    the channels along a curve, by the square and the fourth power of the distance from the centre.)
    """

    op = "random_chromatic_aberration"
    cost = 7.0
    channel_counts = (3,)
    examples = same_type(
        "random_chromatic_aberration: {factor: [0.98, 1.02]}", "random_chromatic_aberration: {factor: [1, 1.01], probability: 0.5}"
    )

    factor: Annotated[Span, within(0.8, 1.25)] = (0.98, 1.02)
    """The range of the factors of red and of blue, from 0.8 to 1.25."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.factor) == (1, 1)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Of `factor_1` for red and `factor_2` for blue."""
        return dict.fromkeys(("factor_1", "factor_2"), span_range(self.factor))

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        scale = 1.0 / uniform(u, span_range(self.factor))
        weights = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) * float(1 << BITS)  # green, red and blue
        return self.enlarged(scale, weights + tf.zeros_like(u[:, :1, None], tf.float32), height, width)
