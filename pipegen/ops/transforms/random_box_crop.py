"""Cut a window out of images around one of their boxes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import ANY_IMAGE, Example
from pipegen.ops.families.item_crops import WholeOrItemCrop
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import place


class RandomBoxCrop(WholeOrItemCrop):
    """Cuts out a window around one of the boxes of the image, each as likely: Albumentations' `RandomCropNearBBox`.

    Each edge of the window is that of the box, moved outwards or inwards by a share of the box's side that is drawn uniformly, and rounded
    outwards to whole pixels; it stays on the image. An image without boxes stays whole. Other boxes are cut as by any crop.

    It needs boxes on the image, and a step behind it that makes images one size, such as `resize: {size: 224}`. On the other splits
    nothing stands in for it.
    """

    op = "random_box_crop"
    examples = (
        Example("random_box_crop", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("random_box_crop: {shift: [0, 1], probability: 0.5}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    shift: Annotated[float, Field(ge=0, le=10)] | tuple[Annotated[float, Field(ge=-0.45)], Annotated[float, Field(le=10)]] = 0.3
    """By what share of the box's side an edge is moved, above 0 outwards: 0.3 means from -0.3 to 0.3, and at least -0.45, where something
    of the box is left; a pair is the range."""

    def _range(self) -> tuple[float, float]:
        return self.shift if isinstance(self.shift, tuple) else (max(-self.shift, -0.45), self.shift)

    def meaning(self) -> dict[str, object]:
        return super().meaning() | {"shift": list(self._range())}

    def num_draws(self) -> int:
        return 6

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`left`, `top`, `right` and `bottom`: how far that edge of the window lies outside the box, as a share of its side."""
        shares = uniform(u[..., 2:6], self._range())
        return dict(zip(("left", "top", "right", "bottom"), tf.unstack(shares, num=4, axis=-1), strict=True))

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        return self.drawn(u)

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shares = tuple(self.drawn(u).values())
        count = tf.reduce_sum(tf.cast(there, tf.int32), -1)
        wanted = tf.cast(tf.floor(u[..., 1] * tf.cast(count, tf.float64)), tf.int32)
        rank = tf.cumsum(tf.cast(there, tf.int32), -1) - 1
        one = tf.cast(there & (rank == wanted[..., None]), tf.float64)
        left, top, right, bottom = (tf.reduce_sum(items[..., i] * one, -1) for i in range(4))
        across, down = right - left, bottom - top
        cuts = (u[..., 0] < self.probability) & (count > 0)

        def edge(at: tf.Tensor, side: tf.Tensor, whole: tf.Tensor) -> tf.Tensor:
            return tf.cast(tf.where(cuts, tf.clip_by_value(at, 0.0, tf.cast(side, tf.float64)), tf.cast(whole, tf.float64)), tf.int32)

        first = edge(tf.floor(left - shares[0] * across), width - 1, 0), edge(tf.floor(top - shares[1] * down), height - 1, 0)
        last = (
            edge(tf.math.ceil(right + shares[2] * across), width, width),
            edge(tf.math.ceil(bottom + shares[3] * down), height, height),
        )
        rows, columns = tf.maximum(last[1] - first[1], 1), tf.maximum(last[0] - first[0], 1)
        return place(first[1], first[0], rows, columns, u), tf.ones_like(there)
