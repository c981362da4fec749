"""`mixup` and `cutmix`: blends and rectangles of two examples."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Alpha
from pipegen.ops.families.combining import WHOLE, PairTransform, Seen
from pipegen.ops.families.sounds import SECOND
from pipegen.ops.lowering.linear import as_float32, working
from pipegen.ops.traits import Example, same_type, to_float32
from pipegen.types import FeatureType


class Mixup(PairTransform):
    """Blends each image, sound or spectrum with that of another example, and its label in the same proportion (Zhang, Cissé, Dauphin and
    Lopez-Paz: mixup: Beyond Empirical Risk Minimization, ICLR 2018): `λ · own + (1 - λ) · other`, with λ drawn from Beta(alpha, alpha) for
    each example.

    The other example is from the same group of 8 in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size; a
    batch size that is a multiple of 8 for each host avoids computing examples twice. λ is a multiple of 1/65536, and an image becomes
    float32. The boxes of both images stay.

    Labels become soft: they need `output: {encode: {label: one_hot}}` (or `binary`), and a loss such as `categorical_crossentropy`. Put the
    step after those that fix the size, or the length.
    """

    op = "mixup"
    kinds = frozenset({"image", "audio"})
    examples = (
        *to_float32("mixup", "mixup: {alpha: 0.4, probability: 0.5}"),
        Example("mixup: {alpha: 0.3}", SECOND, "float32[16000×1] in [-1, 1]"),
    )

    alpha: Alpha = 0.2
    """Both parameters of the Beta distribution of λ: 0.2 leaves most images nearly as they are, 1 is uniform."""

    def infer(self, x: FeatureType) -> FeatureType:
        return super().infer(x).with_(dtype="float32")

    def is_identity(self, x: FeatureType) -> bool:
        return super().is_identity(x) and x.dtype == "float32"

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """λ in parts of 1/65536: int32 `(..., 1)`."""
        return self.drawn_share(u)[..., None]

    def shares(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        own = tf.cast(chosen[..., 0], tf.float32) * (1.0 / WHOLE)
        return tf.stack([own, 1.0 - own], -1)

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        dtype = working(images)
        own = tf.reshape(tf.cast(chosen[:, 0], dtype), [-1, *([1] * (len(images.shape) - 1))])
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

    def shares(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        top, left, bottom, right = tf.unstack(chosen, axis=-1)
        area = tf.cast(height, tf.int64) * tf.cast(width, tf.int64)
        cut = tf.cast(bottom - top, tf.int64) * tf.cast(right - left, tf.int64)
        own = tf.cast(tf.cast(area - cut, tf.float64) / tf.cast(area, tf.float64), tf.float32)
        return tf.stack([own, 1.0 - own], -1)

    def seen(self, chosen: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Seen, ...]:
        return Seen(chosen, outside=True), Seen(chosen)

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        top, left, bottom, right = (edge[:, None] for edge in tf.unstack(chosen, axis=1))
        row, column = tf.range(tf.shape(images)[1])[None], tf.range(tf.shape(images)[2])[None]
        rows = tf.logical_and(row >= top, row < bottom)
        columns = tf.logical_and(column >= left, column < right)
        inside = tf.logical_and(rows[:, :, None], columns[:, None, :])
        return tf.where(inside[..., None], partners[:, 0], images)
