"""Cut windows out of images by their boxes, keypoints or masks."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, span_range, within
from pipegen.ops.families.crops import ItemCrop, RandomSizedCrop, WholeOrItemCrop
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import inside, pick, place
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example, same_type
from pipegen.ops.transform import Transform
from pipegen.ops.transforms.crop import CenterCrop


class RandomBoxCrop(WholeOrItemCrop):
    """Cuts out a window around one of the boxes of the image, each as likely: Albumentations' `RandomCropNearBBox`.

    Each edge of the window is that of the box, moved outwards or inwards by a share of the box's side drawn uniformly, rounded outwards to
    whole pixels and clipped to the image. An image without boxes stays whole. Other boxes are cut as by any crop.

    It needs boxes on the image, and a later step that makes images one size, such as `resize: {size: 224}`. On the other splits nothing
    replaces it.
    """

    op = "random_box_crop"
    draws = 6
    examples = same_type("random_box_crop", "random_box_crop: {shift: [0, 1], probability: 0.5}", given=ANY_IMAGE)

    shift: Annotated[float, Field(ge=0, le=10)] | tuple[Annotated[float, Field(ge=-0.45)], Annotated[float, Field(le=10)]] = 0.3
    """The share of the box's side by which an edge moves, outwards above 0: 0.3 means from -0.3 to 0.3, a pair is the range. It is at least
    -0.45, so that some of the box remains."""

    def _range(self) -> tuple[float, float]:
        return self.shift if isinstance(self.shift, tuple) else (max(-self.shift, -0.45), self.shift)

    def meaning(self) -> dict[str, object]:
        return super().meaning() | {"shift": list(self._range())}

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`left`, `top`, `right` and `bottom`: the distance of that edge of the window outside the box, as a share of its side."""
        shares = uniform(u[..., 2:6], self._range())
        return dict(zip(("left", "top", "right", "bottom"), tf.unstack(shares, num=4, axis=-1), strict=True))

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
        last = (edge(tf.math.ceil(right + shares[2] * across), width, width), edge(tf.math.ceil(bottom + shares[3] * down), height, height))
        rows, columns = tf.maximum(last[1] - first[1], 1), tf.maximum(last[0] - first[0], 1)
        return place(first[1], first[0], rows, columns, u), tf.ones_like(there)


class RandomBoxSafeCrop(WholeOrItemCrop):
    """Cuts out a random window that holds every box of the image whole: Albumentations' `BBoxSafeRandomCrop`.

    On each side a share of the room between the image's edge and the nearest box is cut off; the four shares are drawn uniformly, and edges
    are rounded outwards to whole pixels. An image without boxes stays whole.

    It needs boxes on the image, and a later step that makes images one size: with `resize: {size: 512}` it is `RandomSizedBBoxSafeCrop`. On
    the other splits nothing replaces it.
    """

    op = "random_box_safe_crop"
    draws = 5
    examples = same_type("random_box_safe_crop", "random_box_safe_crop: {probability: 0.5}", given=ANY_IMAGE)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`left`, `top`, `right` and `bottom`: the share of the room on that side that is cut off."""
        shares = tf.where((u[..., 0] < self.probability)[..., None], u[..., 1:5], tf.zeros_like(u[..., 1:5]))
        return dict(zip(("left", "top", "right", "bottom"), tf.unstack(shares, num=4, axis=-1), strict=True))

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


TRIES = 50  # the number of windows that are drawn; if none fits, the image stays whole


class RandomIouCrop(WholeOrItemCrop):
    """Cuts out a window whose overlap with some box is at least a number drawn from a list: the crop for training SSD (Liu et al. 2016).

    It draws an overlap (intersection over union) from `overlaps`; 1 leaves the image whole. Then it draws 50 windows, whose height and
    width are uniform in `scale` as fractions of the image's, rounded down, and whose places are uniform. It takes the first window whose
    aspect ratio (width / height) is within `aspect_ratio`, that contains the centre of some box, and whose overlap with one of these boxes
    is large enough; if there is none, the image stays whole. Boxes with their centre outside the window are dropped, and the others are cut
    to it.

    torchvision's `RandomIoUCrop` draws another overlap after every 40 windows until one is found. Here the number of draws is fixed, so
    that the draws of an example do not depend on its batch.

    It needs boxes on the image, and a later step that makes images one size. On the other splits nothing replaces it.
    """

    op = "random_iou_crop"
    draws = 2 + 4 * TRIES
    examples = same_type(
        "random_iou_crop", "random_iou_crop: {overlaps: [0.5, 0.7, 0.9], scale: [0.5, 1], probability: 0.8}", given=ANY_IMAGE
    )

    overlaps: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    """The choices of the least intersection over union of the window and some box; 1 leaves the image whole."""
    scale: Annotated[Span, within(0.01, 1)] = (0.3, 1.0)
    """The range of the window's height and width, as fractions of the image's."""
    aspect_ratio: Annotated[Span, within(0.01, 100)] = (0.5, 2.0)
    """The range of the window's width divided by its height."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`overlap`, which is 1 for an image that stays whole."""
        overlap = tf.gather(tf.constant(self.overlaps, tf.float64), pick(u[..., 1], tf.constant(len(self.overlaps) - 1)))
        return {"overlap": tf.where(u[..., 0] < self.probability, overlap, tf.ones_like(overlap))}

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
        centred, overlaps = _compared(items, windows)
        inside = centred & there[:, None]
        best = tf.reduce_max(tf.where(inside, overlaps, -tf.ones([], tf.float64)), -1)
        fits = shaped & (best >= overlap[:, None]) & tf.reduce_any(inside, -1) & (overlap < 1)[:, None]
        found = tf.reduce_any(fits, -1)
        first = tf.argmax(tf.cast(fits, tf.int32), -1, output_type=tf.int32)
        chosen = tf.gather(windows, first, batch_dims=1)
        stays = tf.gather(inside, first, batch_dims=1)
        return tf.where(found[:, None], chosen, place(0, 0, height, width, u)), stays | ~found[:, None]


def _compared(items: tf.Tensor, windows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether each box has its centre in each of the windows `(n, tries, 4)`, bool `(n, tries, most)`; and their intersection over union,
    float64 of that shape."""
    # Not `windows[..., None, i]`: Grappler replaces a slice of a stack by its input, and loses the new axis.
    top, left, rows, columns = (tf.cast(windows[..., i], tf.float64)[..., None] for i in range(4))
    right, bottom = left + columns, top + rows
    x0, y0, x1, y1 = (items[:, None, :, i] for i in range(4))
    x, y = (x0 + x1) / 2.0, (y0 + y1) / 2.0
    shared = tf.maximum(tf.minimum(x1, right) - tf.maximum(x0, left), 0.0) * tf.maximum(tf.minimum(y1, bottom) - tf.maximum(y0, top), 0.0)
    either = (x1 - x0) * (y1 - y0) + (right - left) * (bottom - top) - shared
    return (x > left) & (x < right) & (y > top) & (y < bottom), shared / tf.maximum(either, 1e-9)


Index = Annotated[int, Field(ge=0, le=255)]


class RandomCropAround(RandomSizedCrop, ItemCrop):
    """Cuts out a window of fixed size that holds a random pixel of an object in a mask: Albumentations' `CropNonEmptyMaskIfExists`.

    The pixel is one of the mask, also of an instance mask, whose class index is neither one of `background` nor the mask's `ignore`; all
    such pixels are equally likely. With boxes it is a pixel of one of the boxes, each box as likely; with keypoints it is one that is not
    absent. The window lies around the pixel, each offset as likely, and is then moved onto the image. Without such a pixel, all windows
    are equally likely, as for `random_crop`.

    On the other splits, `center_crop` of the same size replaces it; nothing does with a `probability` below 1, for which images have the
    size before it. An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "random_crop_around"
    led_by: ClassVar[tuple[str, ...]] = ("pixels", "boxes", "points")
    draws = 5
    examples = (
        Example("random_crop_around: {size: 112}", IMAGE_224, "uint8[112×112×3] in [0, 255]"),
        Example("random_crop_around: {size: [180, 240], background: [0, 7]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    around: str | None = None
    """The feature that shows the objects; by default the first mask of the image, else its boxes, else its keypoints."""
    background: Index | tuple[Index, ...] = 0
    """The class indices of a mask that are not objects: one, or several."""

    def _background(self) -> tuple[int, ...]:
        return self.background if isinstance(self.background, tuple) else (self.background,)

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"background": sorted(set(self._background()))}

    def leader(self) -> str | None:
        return self.around

    def replacement(self) -> tuple[Transform, ...]:
        return (CenterCrop(size=self.size, feature=self.feature),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`above` and `before`: the pixels of the window above and left of the chosen pixel, before it is moved onto the image, int32."""
        height, width = (tf.constant(side - 1) for side in self.output_size())
        return {"above": pick(u[..., 0], height), "before": pick(u[..., 1], width)}

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        size = self.output_size()
        inside(size, height, width)
        return place(pick(u[..., 0], height - size[0]), pick(u[..., 1], width - size[1]), *size, u)

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        count = tf.math.count_nonzero(there, axis=-1, dtype=tf.int32)
        one = there & (tf.cumsum(tf.cast(there, tf.int32), -1) - 1 == pick(u[..., 2], count - 1)[..., None])
        left, top, right, bottom = (tf.reduce_sum(tf.where(one, items[..., i], 0.0), -1) for i in range(4))
        x, y = (
            tf.cast(tf.clip_by_value(tf.floor(first + u[..., at] * (last - first)), 0.0, tf.cast(side - 1, tf.float64)), tf.int32)
            for first, last, side, at in ((left, right, width, 3), (top, bottom, height, 4))
        )
        return self._around(u, y, x, count > 0, height, width), tf.ones_like(there)

    def choose_by_pixels(self, u: tf.Tensor, classes: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        for index in self._background():
            there &= classes != index
        # The pixel of a rank is found by its row and then within the row, so that the cumulative sum runs over one row only.
        rows = tf.math.count_nonzero(there, axis=2, dtype=tf.int32)
        before = tf.cumsum(rows, axis=1)
        rank = pick(u[:, 2], before[:, -1] - 1)
        y = tf.math.count_nonzero(before <= rank[:, None], axis=1, dtype=tf.int32)
        height, width = tf.shape(classes)[1], tf.shape(classes)[2]
        y = tf.minimum(y, height - 1)  # for a mask without objects
        row = tf.cast(tf.gather(there, y, batch_dims=1), tf.int32)
        rest = rank - tf.gather(before, y, batch_dims=1) + tf.gather(rows, y, batch_dims=1)
        x = tf.minimum(tf.math.count_nonzero(tf.cumsum(row, axis=1) <= rest[:, None], axis=1, dtype=tf.int32), width - 1)
        return self._around(u, y, x, before[:, -1] > 0, height, width)

    def _around(self, u: tf.Tensor, y: tf.Tensor, x: tf.Tensor, found: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """The windows around these pixels, int32 `(n, 4)`; windows anywhere where none was `found`."""
        size, anywhere, drawn = self.output_size(), self.window(u, height, width), self.drawn(u)
        top = tf.clip_by_value(y - drawn["above"], 0, height - size[0])
        left = tf.clip_by_value(x - drawn["before"], 0, width - size[1])
        return tf.where(found[:, None], place(top, left, *size, u), anywhere)
