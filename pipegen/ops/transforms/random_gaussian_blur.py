"""Blur images by a random amount."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, Odd, check_magnitude, checked, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.blurs import LARGEST, BlurTransform, sigma_lints
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import gaussian_radius, gaussian_weights


class RandomGaussianBlur(UniformTransform, BlurTransform):
    """Blurs an image with a Gaussian whose standard deviation is drawn uniformly.

    The filter is separable and reaches 3 sigma of the largest sigma; the image is reflected at its border (abc|cba).
    Bytes are weighted by integers of 14 bits, exactly the same everywhere, and are within one level of the true sum.
    (Keras' layer takes a `kernel_size` beside `sigma`; here it follows from `sigma`.)
    """

    op = "random_gaussian_blur"
    examples = (
        Example("random_gaussian_blur: {sigma: 2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_gaussian_blur: {sigma: [0.1, 2.0], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    sigma: Annotated[Magnitude, checked(check_magnitude, 0, LARGEST), Odd(sigma_lints)]
    """The standard deviation of the Gaussian, in pixels, at most 10: 2 means from 0 to 2, a pair is the range."""

    def radius(self) -> int:
        return gaussian_radius(symmetric_range(self.over_epochs().sigma)[1])

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"sigma": tf.abs(super().drawn(u)["sigma"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return gaussian_weights(self.drawn(u)["sigma"], self.radius())
