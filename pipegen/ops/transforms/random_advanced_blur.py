"""Blur images by bells of random shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.ops.lowering.taps import along, whole_weights, with_border

LARGEST = 3.0
"""The largest sigma, in pixels: the filter is no product of two, so its cost grows with the square."""


class RandomAdvancedBlur(NeighbourhoodTransform):
    """Blurs images with a generalised Gaussian of two widths, an angle and an exponent, each drawn uniformly: the blur kernels of
    Real-ESRGAN, and Albumentations' `AdvancedBlur` without noise.

    A pixel at (x, y), turned by the angle, weighs exp(-½ · ((x / sigma_1)² + (y / sigma_2)²) ^ beta): an exponent of 1 is a Gaussian, a
    smaller one has heavier tails, a larger one is flatter. The filter reaches 2 of the largest sigma; the image is reflected at its border
    (abc|cba), and bytes are weighted by integers of 14 bits.
    """

    op = "random_advanced_blur"
    random = True
    examples = (
        Example("random_advanced_blur: {sigma: [0.5, 1.5]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_advanced_blur: {sigma: [0.2, 1], beta: [1, 1], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    sigma: Annotated[Span, checked(check_pair), checked(check_range, 0.1, LARGEST)] = (0.2, 1.0)
    """The range of each of the two widths, in pixels, from 0.1 to 3."""
    degrees: Annotated[Span, checked(check_pair), checked(check_range, -180, 180)] = (-90.0, 90.0)
    """The range of the angle of the first one, in degrees, anticlockwise from the right."""
    beta: Annotated[Span, checked(check_pair), checked(check_range, 0.2, 16)] = (0.5, 8.0)
    """The range of the exponent, from 0.2 to 16."""

    def reach(self) -> int:
        """Returns how many pixels to each side are read."""
        return max(1, math.ceil(2 * span_range(self.over_epochs().sigma)[1]))

    def weight(self) -> float:
        return 0.4 + 0.05 * (2 * self.reach() + 1) ** 2

    def num_draws(self) -> int:
        return 4

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`sigma_1`, `sigma_2`, `degrees` and `beta`."""
        first, second = (uniform(u[..., i], span_range(self.sigma)) for i in (0, 1))
        return {
            "sigma_1": first,
            "sigma_2": second,
            "degrees": uniform(u[..., 2], span_range(self.degrees)),
            "beta": uniform(u[..., 3], span_range(self.beta)),
        }

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        first, second, degrees, beta = (value[:, None] for value in self.drawn(u).values())
        reach = self.reach()
        offsets = [(y, x) for y in range(-reach, reach + 1) for x in range(-reach, reach + 1)]
        down, right = (tf.constant([float(o[i]) for o in offsets], tf.float64) for i in (0, 1))
        cos, sin = tf.cos(radians(degrees)), tf.sin(radians(degrees))
        along_, beside = cos * right - sin * down, sin * right + cos * down
        weights = tf.exp(-0.5 * (tf.square(along_ / first) + tf.square(beside / second)) ** beta)
        weights = weights / tf.reduce_sum(weights, -1, keepdims=True)
        places = tf.constant([[y + reach, x + reach] for y, x in offsets], tf.int32) + tf.zeros_like(degrees, tf.int32)[..., None]
        return places, *whole_weights(weights, len(offsets) // 2)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return self._widen, self._sum

    def _widen(self, images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return with_border(images, self.reach(), "reflect"), *given

    def _sum(self, images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (along(images, *given),)
