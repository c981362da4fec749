"""Blur images."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Odd
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.blurs import LARGEST, BlurTransform, sigma_lints
from pipegen.ops.lowering.filters import gaussian_radius, gaussian_weights


class GaussianBlur(BlurTransform):
    """Blurs every image with one Gaussian.

    The filter is separable and reaches 3 sigma; the image is reflected at its border (abc|cba). Bytes are weighted by
    integers of 14 bits, exactly the same everywhere, and are within one level of the true sum.
    """

    op = "gaussian_blur"
    examples = (
        Example("gaussian_blur: {sigma: 1.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("gaussian_blur: {sigma: 3}", IMAGE_224.with_(dtype="float32"), "float32[224×224×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    sigma: Annotated[float, Field(ge=0, le=LARGEST), Odd(sigma_lints)]
    """The standard deviation of the Gaussian, in pixels, at most 10."""

    def radius(self) -> int:
        return gaussian_radius(self.sigma)

    def idle(self) -> bool:
        return self.sigma == 0

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return gaussian_weights(tf.fill(tf.shape(u)[:1], tf.constant(self.sigma, tf.float64)), self.radius())
