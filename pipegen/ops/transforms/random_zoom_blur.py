"""Blur images as a zoom during the exposure does."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.chains import PLAIN, Chains, ChainsTransform
from pipegen.ops.kinds.base import FeatureKind
from pipegen.ops.lowering.linear import about_centre, uniform
from pipegen.ops.lowering.taps import whole_weights
from pipegen.types import FeatureType


class RandomZoomBlur(ChainsTransform):
    """Replaces each image by the mean of itself and of enlargements about its centre, up to a factor that is drawn uniformly.

    The enlargements are evenly spaced between 1 and that factor, both included; each is read once, bilinear, and the sum is in whole
    numbers. What an image shows stays where it is, so masks and boxes do, too.
    """

    op = "random_zoom_blur"
    random = True
    examples = (
        Example("random_zoom_blur: {factor: [1, 1.2]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_zoom_blur: {factor: [1.05, 1.1], steps: 5, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    geometry: ClassVar[bool] = True  # type: ignore[misc]  # takes the argument away
    factor: Annotated[Span, checked(check_pair), checked(check_range, 1, 4)] = (1.0, 1.2)
    """The range of the largest enlargement, from 1, which changes nothing, to 4."""
    steps: Annotated[int, Field(ge=2, le=32)] = 8
    """How many images the mean is of, from 2 to 32; for a large factor, few are seen apart."""

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return kind.name in cls.kinds

    def reaches(self, x: FeatureType) -> bool:
        return False

    def idle(self) -> bool:
        return super().idle() or span_range(self.factor)[1] == 1

    def weight(self) -> float:
        return 3.6 * (self.steps - 1)

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"factor": uniform(u[..., 0], span_range(self.factor))}

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        factor, count = self.drawn(u)["factor"], self.steps - 1
        along = tf.range(1, count + 1, dtype=tf.float64) / float(count)
        scale = 1.0 / (1.0 + (factor[:, None] - 1.0) * along)
        matrices = about_centre(((scale, 0.0), (0.0, scale)), scale, height, width)
        kinds = tf.fill(tf.shape(scale[..., None]), PLAIN)
        kinds.set_shape([None, count, 1])
        weights, _ = whole_weights(tf.ones_like(factor)[:, None] * tf.fill([1, self.steps], tf.constant(1.0 / self.steps, tf.float64)))
        return Chains(kinds, tf.range(256) + tf.zeros_like(kinds)[..., None], matrices, weights)
