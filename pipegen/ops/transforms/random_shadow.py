"""Cast shadows on images."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.overlays import BITS, ONE, shares


class RandomShadow(ByteTransform):
    """Makes parts of an image darker by a share drawn uniformly: shadows with four straight edges.

    Each shadow lies between the top and the bottom row of `rows`, and between two lines that start at two places of the top
    row and end at two of the bottom row, all drawn uniformly. Where shadows overlap, the image is as dark as in one.
    (Albumentations' `RandomShadow` draws polygons of more corners.)
    """

    op = "random_shadow"
    starts_kernel = False
    examples = (
        Example("random_shadow", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_shadow: {darkness: [0.5, 0.7], count: 3, rows: [0.5, 1.0], probability: 0.3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"
        ),
    )

    darkness: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.3, 0.6)
    """The range of the share of the light that is missing, from 0 to 1, which is black."""
    count: Annotated[int, Field(ge=1, le=8)] = 1
    """How many shadows there are."""
    rows: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.0, 1.0)
    """The top and the bottom of the part that shadows fall on, as fractions of the height: `[0.5, 1]` is the lower half."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.darkness)[1] == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"darkness": span_range(self.darkness)}

    def weight(self) -> float:
        return 0.3 + 0.1 * self.count

    def num_draws(self) -> int:
        return 1 + 4 * self.count

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the share of the light that is left, and for each shadow and row the first column and the one behind the last."""
        whole, across = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        ends = tf.reshape(u[:, 1:], [-1, self.count, 2, 2]) * (across + 1.0)  # at the top and at the bottom, on two sides
        row = tf.range(whole, dtype=tf.float64) + 0.5
        top, bottom = (fraction * whole for fraction in span_range(self.rows))
        down = tf.clip_by_value((row - top) / tf.maximum(bottom - top, 1.0), 0.0, 1.0)
        edges = ends[:, :, 0, :, None] * (1.0 - down) + ends[:, :, 1, :, None] * down
        inside = tf.logical_and(row >= top, row < bottom)
        first = tf.cast(tf.floor(tf.reduce_min(edges, 2)), tf.int32)
        behind = tf.where(inside, tf.cast(tf.floor(tf.reduce_max(edges, 2)), tf.int32), 0)
        return shares(1.0 - self.drawn(u)["darkness"]), first, behind

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        light, first, behind = given
        column = tf.range(sides(images)[1])[None, None, :]
        dark = tf.zeros_like(images[..., 0], dtype=tf.bool)
        for number in range(self.count):
            left, right = first[:, number, :, None], behind[:, number, :, None]
            dark = tf.logical_or(dark, tf.logical_and(column >= left, column < right))
        factor = tf.where(dark, light[:, None, None], ONE)[..., None]
        return tf.cast(rounded_shift(tf.cast(images, tf.int32) * factor, BITS), tf.uint8)
