"""`mosaic`: quarters of four examples."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, span_range, within
from pipegen.ops.families.combining import CombiningTransform, Seen
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.traits import same_type


class Mosaic(CombiningTransform):
    """Places each image beside three others, two by two, and cuts out a window of the size of one (Bochkovskiy, Wang and Liao: YOLOv4,
    2020): the image itself is at the top left, and the four meet at a point of the window that is drawn for each example.

    The others are from the same group of 8 in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size; a batch
    size that is a multiple of 8 for each host avoids computing examples twice. In a last group of fewer than four, images repeat. Pixels
    and their dtype stay unchanged. A mask is composed of the masks of the same four images, and the boxes of each stay as far as they are
    visible.

    Labels of whole images become soft, weighed by the area of each image: they need `output: {encode: {label: one_hot}}` (or `binary`), and
    a loss such as `categorical_crossentropy`. Put the step after those that fix the size; a `random_affine` after it changes the scale, as
    in YOLO's recipes.
    """

    op = "mosaic"
    draws = 4
    kinds = frozenset({"image", "mask"})
    others: ClassVar[int] = 3
    examples = same_type("mosaic", "mosaic: {centre: [0.4, 0.6], probability: 0.5}")

    centre: Annotated[Span, within(0, 1)] = (0.25, 0.75)
    """The range of the point where the four images meet, as fractions of the height and of the width: [0.5, 0.5] is the middle."""

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`own_share`, and `row` and `column` of the first pixel below and right of the point where the images meet, int32 `(...)`."""
        row, column = tf.unstack(self.choose(u, *shape[:2]), axis=-1)
        return super().drawn_on(u, shape) | {"row": row, "column": column}

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """The rows and columns that the image at the top left keeps, int32 `(..., 2)`: all of them where the step does not act."""
        kept = []
        for side, draw in ((height, u[..., 2]), (width, u[..., 3])):
            part = tf.cast(tf.round(uniform(draw, span_range(self.centre)) * tf.cast(side, tf.float64)), tf.int32)
            kept.append(tf.where(self.acts(u), part, side))
        return tf.stack(kept, -1)

    def shares(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        sides = (tf.cast(side, tf.float64) for side in (height, width))
        parts = [tf.cast(chosen[..., i], tf.float64) / side for i, side in enumerate(sides)]
        (above, left), (below, right) = parts, (1.0 - part for part in parts)
        return tf.cast(tf.stack([above * left, above * right, below * left, below * right], -1), tf.float32)

    def seen(self, chosen: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Seen, ...]:
        row, column = tf.unstack(chosen, axis=-1)
        zero = tf.zeros_like(row)
        return tuple(
            Seen(tf.stack([top, left, bottom, right], -1), shift=tf.stack([down, across], -1))
            for top, bottom, down in ((zero, row, row - height), (row, zero + height, row))
            for left, right, across in ((zero, column, column - width), (column, zero + width, column))
        )

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        height, width, channels = sides(images)
        row, column = tf.range(height)[None], tf.range(width)[None]
        above, left = row < chosen[:, :1], column < chosen[:, 1:]
        # The window shows each image's own rows and columns, shifted cyclically.
        rows = tf.where(above, row - chosen[:, :1] + height, row - chosen[:, :1])
        columns = tf.where(left, column - chosen[:, 1:] + width, column - chosen[:, 1:])
        number = 2 * (1 - tf.cast(above, tf.int32))[:, :, None] + (1 - tf.cast(left, tf.int32))[:, None, :]
        place = (number * height + rows[:, :, None]) * width + columns[:, None, :]
        pixels = tf.reshape(tf.concat([images[:, None], partners], 1), [-1, 4 * height * width, channels])
        return tf.reshape(tf.gather(pixels, tf.reshape(place, [-1, height * width]), batch_dims=1), [-1, height, width, channels])
