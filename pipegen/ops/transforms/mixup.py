"""Blend pairs of examples."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Alpha, most
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.mixing import WHOLE, PairTransform
from pipegen.ops.lowering.floats import as_float32, working
from pipegen.types import FeatureType


class Mixup(PairTransform):
    """Blends each image with that of another example, and its label in the same proportion (Zhang, Cissé, Dauphin and
    Lopez-Paz: mixup: Beyond Empirical Risk Minimization, ICLR 2018): `λ · own + (1 - λ) · other`, λ drawn from
    Beta(alpha, alpha) for each example.

    The other example is one of the 8 around it in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever
    the batch size; a batch size that is a multiple of 8 for each host saves computing examples twice. λ is a multiple of
    1/65536, and the image becomes float32. The boxes of both images stay.

    The labels become soft: `output: {encode: {label: one_hot}}` (or `binary`) is needed, and a loss for it such as
    `categorical_crossentropy`. Steps that fix the size come before.
    """

    op = "mixup"
    examples = (
        Example("mixup", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("mixup: {alpha: 0.4, probability: 0.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    alpha: Alpha = 0.2
    """Both parameters of the Beta distribution of λ: 0.2 leaves most images nearly as they are, 1 is uniform."""

    def infer(self, x: FeatureType) -> FeatureType:
        """float32 in the interval that enters."""
        return super().infer(x).with_(dtype="float32")

    def is_identity(self, x: FeatureType) -> bool:
        return most(self.probability) == 0 and x.dtype == "float32"

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """λ in parts of 1/65536: int32 `(..., 1)`."""
        return self.drawn_share(u)[..., None]

    def own_share(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        return tf.cast(chosen[..., 0], tf.float32) * (1.0 / WHOLE)

    def mix(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        dtype = working(images)
        own = tf.cast(chosen[:, 0], dtype)[:, None, None, None]
        mixed = tf.cast(images, dtype) * own + tf.cast(partners[:, 0], dtype) * (WHOLE - own)
        return as_float32(mixed * (1.0 / WHOLE))
