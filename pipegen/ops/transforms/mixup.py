"""Combine examples: blends, rectangles, quarters and objects of others."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Alpha, Span, most, span_range, within
from pipegen.ops.families.combining import WHOLE, CombiningTransform, PairTransform, Seen
from pipegen.ops.families.item_stages import PastingTransform
from pipegen.ops.lowering.linear import as_float32, uniform, working
from pipegen.ops.lowering.random import half_words, key_of
from pipegen.ops.traits import same_type, to_float32
from pipegen.types import FeatureType


class Mixup(PairTransform):
    """Blends each image with that of another example, and its label in the same proportion (Zhang, Cissé, Dauphin and Lopez-Paz: mixup:
    Beyond Empirical Risk Minimization, ICLR 2018): `λ · own + (1 - λ) · other`, with λ drawn from Beta(alpha, alpha) for each example.

    The other example is from the same group of 8 in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size; a
    batch size that is a multiple of 8 for each host avoids computing examples twice. λ is a multiple of 1/65536, and the image becomes
    float32. The boxes of both images stay.

    Labels become soft: they need `output: {encode: {label: one_hot}}` (or `binary`), and a loss such as `categorical_crossentropy`. Put the
    step after those that fix the size.
    """

    op = "mixup"
    examples = to_float32("mixup", "mixup: {alpha: 0.4, probability: 0.5}")

    alpha: Alpha = 0.2
    """Both parameters of the Beta distribution of λ: 0.2 leaves most images nearly as they are, 1 is uniform."""

    def infer(self, x: FeatureType) -> FeatureType:
        return super().infer(x).with_(dtype="float32")

    def is_identity(self, x: FeatureType) -> bool:
        return most(self.probability) == 0 and x.dtype == "float32"

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """λ in parts of 1/65536: int32 `(..., 1)`."""
        return self.drawn_share(u)[..., None]

    def own_share(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        return tf.cast(chosen[..., 0], tf.float32) * (1.0 / WHOLE)

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        dtype = working(images)
        own = tf.cast(chosen[:, 0], dtype)[:, None, None, None]
        combined = tf.cast(images, dtype) * own + tf.cast(partners[:, 0], dtype) * (WHOLE - own)
        return as_float32(combined * (1.0 / WHOLE))


class Cutmix(PairTransform):
    """Puts a rectangle of another example's image into each image at the same place, and weighs the labels by area (Yun, Han, Oh, Chun,
    Choe and Yoo: CutMix, ICCV 2019).

    λ is drawn from Beta(alpha, alpha) for each example. The rectangle has `sqrt(1 - λ)` of the height and of the width, and its centre lies
    anywhere in the image; it is clipped to the image, and the weights of the labels are the exact shares of the area. Pixels and their
    dtype stay unchanged. A mask gets the same rectangle. Boxes stay as far as they are visible: those of the image outside the rectangle,
    those of the other inside.

    The other example is from the same group of 8 in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size; a
    batch size that is a multiple of 8 for each host avoids computing examples twice.

    Labels become soft: they need `output: {encode: {label: one_hot}}` (or `binary`), and a loss such as `categorical_crossentropy`. Put the
    step after those that fix the size.
    """

    op = "cutmix"
    draws = 6
    kinds = frozenset({"image", "mask"})
    examples = same_type("cutmix", "cutmix: {alpha: 0.5, probability: 0.5}")

    alpha: Alpha = 1.0
    """Both parameters of the Beta distribution of λ, which decides the size of the rectangle; 1 is uniform, as in the paper. (Keras'
    `factor` is different: the upper end of a range from which this parameter is drawn.)"""

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`own_share`, and the rectangle of the other image: `top`, `left`, `height` and `width`, int32 `(...)`."""
        top, left, bottom, right = tf.unstack(self.choose(u, *shape[:2]), axis=-1)
        return super().drawn_on(u, shape) | {"top": top, "left": left, "height": bottom - top, "width": right - left}

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """The rectangle, int32 `(..., 4)`: top, left, bottom and right, the last two exclusive."""
        ratio = tf.sqrt(tf.cast(WHOLE - self.drawn_share(u), tf.float64) / WHOLE)
        edges = []
        for side, centre in ((height, u[..., 4]), (width, u[..., 5])):
            pixels = tf.cast(side, tf.float64)
            half = tf.cast(tf.floor(pixels * ratio), tf.int32) // 2
            middle = tf.cast(tf.floor(pixels * centre), tf.int32)
            edges.append((tf.maximum(middle - half, 0), tf.minimum(middle + half, tf.cast(side, tf.int32))))
        (top, bottom), (left, right) = edges
        return tf.stack([top, left, bottom, right], -1)

    def own_share(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        top, left, bottom, right = tf.unstack(chosen, axis=-1)
        area = tf.cast(height, tf.int64) * tf.cast(width, tf.int64)
        cut = tf.cast(bottom - top, tf.int64) * tf.cast(right - left, tf.int64)
        return tf.cast(tf.cast(area - cut, tf.float64) / tf.cast(area, tf.float64), tf.float32)

    def seen(self, chosen: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Seen, ...]:
        return Seen(chosen, outside=True), Seen(chosen)

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        top, left, bottom, right = (edge[:, None] for edge in tf.unstack(chosen, axis=1))
        row, column = tf.range(tf.shape(images)[1])[None], tf.range(tf.shape(images)[2])[None]
        rows = tf.logical_and(row >= top, row < bottom)
        columns = tf.logical_and(column >= left, column < right)
        inside = tf.logical_and(rows[:, :, None], columns[:, None, :])
        return tf.where(inside[..., None], partners[:, 0], images)


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
        found = []
        for top, bottom, down in ((zero, row, row - height), (row, zero + height, row)):
            for left, right, across in ((zero, column, column - width), (column, zero + width, column)):
                found.append(Seen(tf.stack([top, left, bottom, right], -1), shift=tf.stack([down, across], -1)))
        return tuple(found)

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(images)
        height, width = (images.shape[a] if images.shape[a] is not None else shape[a] for a in (1, 2))
        row, column = tf.range(height)[None], tf.range(width)[None]
        above, left = row < chosen[:, :1], column < chosen[:, 1:]
        # The window shows each image's own rows and columns, shifted cyclically.
        rows = tf.where(above, row - chosen[:, :1] + height, row - chosen[:, :1])
        columns = tf.where(left, column - chosen[:, 1:] + width, column - chosen[:, 1:])
        number = 2 * (1 - tf.cast(above, tf.int32))[:, :, None] + (1 - tf.cast(left, tf.int32))[:, None, :]
        place = (number * height + rows[:, :, None]) * width + columns[:, None, :]
        channels = images.shape[3]
        pixels = tf.reshape(tf.concat([images[:, None], partners], 1), [-1, 4 * height * width, channels])
        return tf.reshape(tf.gather(pixels, tf.reshape(place, [-1, height * width]), batch_dims=1), [-1, height, width, channels])


class CopyPaste(PastingTransform):
    """Pastes objects of another example into each image at the same place, and their mask pixels into the masks (Ghiasi and others: Simple
    Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation, CVPR 2021).

    A mask defines the objects: all pixels of a class index other than `background` and `ignore`. Each object of the other example is pasted
    with the probability `objects`. A mask of instances (a mask `with: boxes`) separates single objects: the boxes of pasted objects are
    added, with their labels and other features. Objects of the image that are wholly covered are removed, as in the paper; a box whose
    outermost pixels are covered shrinks to the visible ones, and `min_visibility` and `min_area` count the share of its pixels. Covered
    keypoints become absent, and pasted objects bring theirs, unless an image has one keypoint of each name. Edges are not blended, which
    makes no difference according to the paper. Earlier steps that scale and mirror (`random_affine`, `random_flip`) vary what is pasted, as
    in the paper.

    The other example is from the same group of 8 in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size; a
    batch size that is a multiple of 8 for each host avoids computing examples twice. A label of the whole image becomes soft, weighed by
    the share of pasted pixels, and needs `output: {encode: {label: one_hot}}`. Put the step after those that fix the size.
    """

    op = "copy_paste"
    draws = 4
    kinds = frozenset({"image", "mask"})
    examples = same_type("copy_paste", "copy_paste: {objects: 0.5, probability: 0.5}")

    objects: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The probability with which each object (each class index, or each box of an instance mask) of the other example is pasted."""
    background: Annotated[int, Field(ge=0, le=255)] = 0
    """The class index of pixels without an object; for an instance mask it is 0."""

    def pasted(self, masks: tf.Tensor, u: tf.Tensor, ignore: int) -> tf.Tensor:
        index = tf.cast(masks[..., 0], tf.int32)
        words = tf.cast(half_words(key_of(u[:, 2:4]), 256), tf.int32)
        taken = words < round(self.objects * (1 << 16))
        shown = tf.logical_and(index != self.background, index != ignore)
        chosen = tf.gather(taken, tf.reshape(index, [tf.shape(index)[0], -1]), batch_dims=1)
        found = tf.logical_and(tf.reshape(chosen, tf.shape(index)), shown)
        return tf.logical_and(found, self.acts(u)[:, None, None])[..., None]
