"""Cut a window out of images that overlaps some box as much as is drawn."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import ANY_IMAGE, Example
from pipegen.ops.families.item_crops import WholeOrItemCrop
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import pick, place

TRIES = 50
"""How many windows are drawn before the image stays whole."""


class RandomIouCrop(WholeOrItemCrop):
    """Cuts out a window whose overlap with some box is at least a number drawn from a list: the crop that SSD is trained with (Liu et
    al. 2016).

    It draws an overlap (intersection over union) from `overlaps`; 1 leaves the image whole. Then it draws 50 windows, whose height and
    width are uniform in `scale` as fractions of the image's, rounded down, and whose places are uniform. The first is taken whose aspect
    ratio (width / height) is within `aspect_ratio`, in which the centre of some box lies, and whose overlap with one of those boxes is
    large enough; where none is, the image stays whole. Boxes whose centre lies outside the window are left out, and the others are cut
    to it.

    torchvision's `RandomIoUCrop` draws another overlap after 40 windows, again and again until one is found. All draws are made for 50
    windows here, so that an example's are the same whatever the batch.

    It needs boxes on the image, and a step behind it that makes images one size. On the other splits nothing stands in for it.
    """

    op = "random_iou_crop"
    examples = (
        Example("random_iou_crop", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("random_iou_crop: {overlaps: [0.5, 0.7, 0.9], scale: [0.5, 1], probability: 0.8}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    overlaps: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    """The least intersection over union of the window and some box, of which one is drawn; 1 leaves the image whole."""
    scale: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 1)] = (0.3, 1.0)
    """The range of the window's height and width, as fractions of the image's."""
    aspect_ratio: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 100)] = (0.5, 2.0)
    """The range of the window's width divided by its height."""

    def num_draws(self) -> int:
        return 2 + 4 * TRIES

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`overlap`, which is 1 for an image that stays as it is."""
        overlap = tf.gather(tf.constant(self.overlaps, tf.float64), pick(u[..., 1], tf.constant(len(self.overlaps) - 1)))
        return {"overlap": tf.where(u[..., 0] < self.probability, overlap, tf.ones_like(overlap))}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        return self.drawn(u)

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        overlap = self.drawn(u)["overlap"]
        tries = tf.reshape(u[:, 2:], [-1, TRIES, 4])
        sides = [tf.cast(side, tf.float64) for side in (height, width)]
        rows, columns = (tf.cast(tf.floor(side * uniform(tries[..., i], span_range(self.scale))), tf.int32) for i, side in enumerate(sides))
        top, left = pick(tries[..., 2], height - rows), pick(tries[..., 3], width - columns)
        windows = tf.stack([top, left, rows, columns], -1)
        ratio = tf.cast(columns, tf.float64) / tf.cast(tf.maximum(rows, 1), tf.float64)
        flattest, steepest = span_range(self.aspect_ratio)
        shaped = (ratio >= flattest) & (ratio <= steepest) & (rows > 0) & (columns > 0)
        inside = _centred(items, windows) & there[:, None]
        best = tf.reduce_max(tf.where(inside, _overlap(items, windows), -tf.ones([], tf.float64)), -1)
        fits = shaped & (best >= overlap[:, None]) & tf.reduce_any(inside, -1) & (overlap < 1)[:, None]
        found = tf.reduce_any(fits, -1)
        first = tf.argmax(tf.cast(fits, tf.int32), -1, output_type=tf.int32)
        chosen = tf.gather(windows, first, batch_dims=1)
        stays = tf.gather(inside, first, batch_dims=1)
        return tf.where(found[:, None], chosen, place(0, 0, height, width, u)), stays | ~found[:, None]


def _edges(windows: tf.Tensor) -> list[tf.Tensor]:
    """Left, top, right and bottom of windows `(n, tries, 4)`, float64 `(n, tries, 1)`."""
    # Not by `windows[..., None, i]`: Grappler takes a slice of a stack for what was stacked, and loses the new axis.
    top, left, rows, columns = (tf.cast(windows[..., i], tf.float64)[..., None] for i in range(4))
    return [left, top, left + columns, top + rows]


def _centred(items: tf.Tensor, windows: tf.Tensor) -> tf.Tensor:
    """Returns which boxes have their centre in which windows, bool `(n, tries, most)`."""
    left, top, right, bottom = _edges(windows)
    x, y = ((items[:, None, :, i] + items[:, None, :, i + 2]) / 2.0 for i in (0, 1))
    return (x > left) & (x < right) & (y > top) & (y < bottom)


def _overlap(items: tf.Tensor, windows: tf.Tensor) -> tf.Tensor:
    """The intersection over union of boxes and windows, float64 `(n, tries, most)`."""
    left, top, right, bottom = _edges(windows)
    x0, y0, x1, y1 = (items[:, None, :, i] for i in range(4))
    shared = tf.maximum(tf.minimum(x1, right) - tf.maximum(x0, left), 0.0) * tf.maximum(tf.minimum(y1, bottom) - tf.maximum(y0, top), 0.0)
    either = (x1 - x0) * (y1 - y0) + (right - left) * (bottom - top) - shared
    return shared / tf.maximum(either, 1e-9)
