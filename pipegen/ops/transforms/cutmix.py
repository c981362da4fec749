"""Replace a rectangle of each image by that of another example."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Alpha
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.mixing import WHOLE, PairTransform, Seen


class Cutmix(PairTransform):
    """Puts a rectangle of another example's image in the same place of each image, and weighs the labels by area (Yun,
    Han, Oh, Chun, Choe and Yoo: CutMix, ICCV 2019).

    λ is drawn from Beta(alpha, alpha) for each example. The rectangle has `sqrt(1 - λ)` of the height and of the width
    and its centre anywhere in the image; what sticks out is cut off, and the label's weights are the exact shares of the
    area that is left. Pixels stay as they are, and so does their dtype. A mask takes the same rectangle. Boxes of both images stay as far
    as they are seen: the own ones beside the rectangle, and the other one's within it.

    The other example is one of the 8 around it in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever
    the batch size; a batch size that is a multiple of 8 for each host saves computing examples twice.

    The labels become soft: `output: {encode: {label: one_hot}}` (or `binary`) is needed, and a loss for it such as
    `categorical_crossentropy`. Steps that fix the size come before.
    """

    op = "cutmix"
    kinds = frozenset({"image", "mask"})
    examples = (
        Example("cutmix", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("cutmix: {alpha: 0.5, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    alpha: Alpha = 1.0
    """Both parameters of the Beta distribution of λ, which decides how large the rectangle is; 1 is uniform, as in the
    paper. Keras' `factor` means another thing: the upper end of a range that this parameter is drawn from."""

    def num_draws(self) -> int:
        return super().num_draws() + 2

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`own_share`, and the rectangle that is another one's: `top`, `left`, `height` and `width`, int32 `(...)`."""
        top, left, bottom, right = tf.unstack(self.choose(u, *shape[:2]), axis=-1)
        return super().drawn_on(u, shape) | {"top": top, "left": left, "height": bottom - top, "width": right - left}

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """The rectangle: int32 `(..., 4)`: top, left, bottom and right; the last two outside."""
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

    def mix(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        top, left, bottom, right = (edge[:, None] for edge in tf.unstack(chosen, axis=1))
        row, column = tf.range(tf.shape(images)[1])[None], tf.range(tf.shape(images)[2])[None]
        rows = tf.logical_and(row >= top, row < bottom)
        columns = tf.logical_and(column >= left, column < right)
        inside = tf.logical_and(rows[:, :, None], columns[:, None, :])
        return tf.where(inside[..., None], partners[:, 0], images)
