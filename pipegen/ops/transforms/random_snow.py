"""Let snow lie on what is dark in images."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift

_BITS = 12


class RandomSnow(ByteTransform):
    """Multiplies the lightness of what is darker than a point that is drawn uniformly, so that it looks snowed over: Albumentations'
    `bleach`.

    Lightness is that of HLS, half of the sum of a pixel's greatest and least channel; hue and saturation stay, and lightness is clipped
    at white. Given the lightness that is a scale and an offset for all channels, read from tables of 12 bits. (Albumentations rounds hue to
    2 degrees and saturation to whole levels on the way.)
    """

    op = "random_snow"
    symmetric = True
    examples = (
        Example("random_snow", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_snow: {point: [0.3, 0.5], factor: 2, probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    point: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.1, 0.3)
    """The range of the lightness below which it lies, from 0 to 1. (Albumentations adds a third to half of what it is given.)"""
    factor: Annotated[float, Field(ge=1, le=16)] = 2.5
    """What the lightness below it is multiplied by, from 1 to 16."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.point)[1] == 0 or self.factor == 1

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"point": span_range(self.point)}

    def weight(self) -> float:
        return 0.8

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.cast(tf.round(self.drawn(u)["point"] * 510.0), tf.int32),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        x = tf.cast(images, tf.int32)
        lightness = tf.reduce_max(x, -1, keepdims=True) + tf.reduce_min(x, -1, keepdims=True)
        scale, offset = (tf.gather(tf.constant(table, tf.int32), lightness) for table in _tables(self.factor))
        snowed = tf.clip_by_value(rounded_shift(x * scale + offset, _BITS), 0, 255)
        return tf.cast(tf.where(lightness < given[0][:, None, None, None], snowed, x), tf.uint8)


@cache
def _tables(factor: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tabulates what values are multiplied by and what is added, in 1/4096, at each sum of the greatest and the least channel."""
    found = []
    for total in range(511):
        after = min(total * factor, 510.0)
        # The spread of the channels shrinks towards black and towards white: that is what keeps the saturation.
        scale = min(after, 510.0 - after) / min(total, 510 - total) if 0 < total < 510 else 1.0
        found.append((round(scale * (1 << _BITS)), round((after - total * scale) / 2 * (1 << _BITS))))
    return tuple(scale for scale, _ in found), tuple(offset for _, offset in found)
