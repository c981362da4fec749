"""Cut a window out of images around a place of what a mask, boxes or keypoints show."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, Example, Transform
from pipegen.ops.families.item_crops import ItemCrop
from pipegen.ops.lowering.windows import inside, pick, place
from pipegen.types import FeatureType

Index = Annotated[int, Field(ge=0, le=255)]


class RandomCropAround(ItemCrop):
    """Cuts out a window of fixed size that holds a random place of what a mask shows: Albumentations' `CropNonEmptyMaskIfExists`.

    The place is a pixel of the mask whose class index is neither one of `background` nor the mask's `ignore`, each as likely, whichever
    object it belongs to; of an instance mask likewise. With boxes it is a pixel of one of the boxes, each box as likely; with keypoints
    it is one that is not absent. The window lies around it at random, each offset as likely, and is then moved onto the image. Where there
    is no such place, each window is as likely, as of `random_crop`.

    On the other splits `center_crop` of the same size stands in for it. An image smaller than the window is an error, which names the
    file when it is found while running.
    """

    op = "random_crop_around"
    led_by: ClassVar[tuple[str, ...]] = ("pixels", "boxes", "points")
    examples = (
        Example("random_crop_around: {size: 112}", IMAGE_224, "uint8[112×112×3] in [0, 255]"),
        Example("random_crop_around: {size: [180, 240], background: [0, 7]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    size: Size
    """The window's size in pixels: a square's side, or [height, width]."""
    around: str | None = None
    """The feature that shows it; by default the first mask of the image, or without any its boxes, or else its keypoints."""
    background: Index | tuple[Index, ...] = 0
    """The class indices of a mask around which there is no window: one, or several."""

    def _background(self) -> tuple[int, ...]:
        return self.background if isinstance(self.background, tuple) else (self.background,)

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"background": sorted(set(self._background()))}

    def leader(self) -> str | None:
        return self.around

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)

    def is_identity(self, x: FeatureType) -> bool:
        return (x.height, x.width) == self.output_size()

    def num_draws(self) -> int:
        return 5

    def evaluation_form(self) -> tuple[Transform, ...]:
        from pipegen.ops.transforms.center_crop import CenterCrop

        return (CenterCrop(size=self.size, feature=self.feature),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`above` and `before`: how many pixels of the window lie above its place and on the left of it, before it is moved onto the
        image, int32."""
        height, width = (tf.constant(side - 1) for side in self.output_size())
        return {"above": pick(u[..., 0], height), "before": pick(u[..., 1], width)}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        return self.drawn(u)

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
        # The pixel of a rank is found by its row and then within that, so that only one row's pixels are summed up one after another.
        rows = tf.math.count_nonzero(there, axis=2, dtype=tf.int32)
        before = tf.cumsum(rows, axis=1)
        rank = pick(u[:, 2], before[:, -1] - 1)
        y = tf.math.count_nonzero(before <= rank[:, None], axis=1, dtype=tf.int32)
        height, width = tf.shape(classes)[1], tf.shape(classes)[2]
        y = tf.minimum(y, height - 1)  # of a mask without any
        row = tf.cast(tf.gather(there, y, batch_dims=1), tf.int32)
        rest = rank - tf.gather(before, y, batch_dims=1) + tf.gather(rows, y, batch_dims=1)
        x = tf.minimum(tf.math.count_nonzero(tf.cumsum(row, axis=1) <= rest[:, None], axis=1, dtype=tf.int32), width - 1)
        return self._around(u, y, x, before[:, -1] > 0, height, width)

    def _around(self, u: tf.Tensor, y: tf.Tensor, x: tf.Tensor, found: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """The windows that hold the pixels at these places, int32 `(n,)`; where nothing was found, windows anywhere."""
        size, anywhere, drawn = self.output_size(), self.window(u, height, width), self.drawn(u)
        top = tf.clip_by_value(y - drawn["above"], 0, height - size[0])
        left = tf.clip_by_value(x - drawn["before"], 0, width - size[1])
        return tf.where(found[:, None], place(top, left, *size, u), anywhere)
