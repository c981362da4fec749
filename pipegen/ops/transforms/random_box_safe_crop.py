"""Cut a window out of images that holds all of their boxes."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import ANY_IMAGE, Example
from pipegen.ops.families.item_crops import WholeOrItemCrop
from pipegen.ops.lowering.windows import place


class RandomBoxSafeCrop(WholeOrItemCrop):
    """Cuts out a random window that holds every box of the image whole: Albumentations' `BBoxSafeRandomCrop`.

    On each side a share of the room between the image's edge and the nearest box is cut off; the four shares are drawn uniformly, and
    edges are rounded outwards to whole pixels. An image without boxes stays whole.

    It needs boxes on the image, and a step behind it that makes images one size: with `resize: {size: 512}` it is
    `RandomSizedBBoxSafeCrop`. On the other splits nothing stands in for it.
    """

    op = "random_box_safe_crop"
    examples = (
        Example("random_box_safe_crop", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("random_box_safe_crop: {probability: 0.5}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    def num_draws(self) -> int:
        return 5

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`left`, `top`, `right` and `bottom`: the share of the room on that side that is cut off."""
        shares = tf.where((u[..., 0] < self.probability)[..., None], u[..., 1:5], tf.zeros_like(u[..., 1:5]))
        return dict(zip(("left", "top", "right", "bottom"), tf.unstack(shares, num=4, axis=-1), strict=True))

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        return self.drawn(u)

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shares = self.drawn(u)
        rows, columns = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        some = tf.reduce_any(there, -1)
        edges = []
        for i, (name, side) in enumerate((("left", columns), ("top", rows), ("right", columns), ("bottom", rows))):
            if i < 2:
                nearest = tf.reduce_min(tf.where(there, items[..., i], side), -1)
                edges.append(tf.where(some, tf.floor(nearest * shares[name]), 0.0))
            else:
                nearest = tf.reduce_max(tf.where(there, items[..., i], tf.zeros_like(side)), -1)
                edges.append(tf.where(some, tf.math.ceil(side - (side - nearest) * shares[name]), side))
        left, top, right, bottom = (tf.cast(edge, tf.int32) for edge in edges)
        return place(top, left, tf.maximum(bottom - top, 1), tf.maximum(right - left, 1), u), tf.ones_like(there)
