"""Sharpen images by what a blur takes away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import (
    BITS,
    beside,
    filter_columns,
    filter_rows,
    gaussian_radius,
    gaussian_weights,
    rounded_shift,
    sides,
    widen,
)
from pipegen.ops.lowering.floats import nearest_float32, working
from pipegen.ops.lowering.linear import uniform

LARGEST = 8.0
"""The largest amount; with it, sums of bytes still fit 32 bits."""


class RandomUnsharpMask(NeighbourhoodTransform):
    """Adds to an image, times an amount that is drawn uniformly, what a Gaussian blur takes away: y = x + amount · (x - blurred).

    Where that is at most `threshold`, a value stays. The blur is that of `gaussian_blur`, rounded to bytes where the image is; values
    are clipped to the range of those that enter. A large `sigma` gives halos, as oversharpened pictures have them (ringing).
    """

    op = "random_unsharp_mask"
    random = True
    overshoots = True
    symmetric = True
    examples = (
        Example("random_unsharp_mask: {sigma: 2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_unsharp_mask: {sigma: 1, amount: [0.5, 2], threshold: 3, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"
        ),
    )

    sigma: Annotated[float, Field(gt=0, le=10)]
    """The standard deviation of the Gaussian, in pixels, at most 10."""
    amount: Annotated[Span, checked(check_pair), checked(check_range, 0, LARGEST)] = (0.2, 1.0)
    """The range of the amount, at most 8; 0 changes nothing."""
    threshold: Annotated[float, Field(ge=0)] = 0.0
    """The difference up to which a value stays, in the units of the values that enter."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.amount) == (0.0, 0.0)

    def weight(self) -> float:
        return 0.85 + 0.1 * gaussian_radius(self.sigma)

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"amount": uniform(u[..., 0], span_range(self.amount))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        amount = self.drawn(u)["amount"]
        sigma = tf.fill(tf.shape(u)[:1], tf.constant(self.sigma, tf.float64))
        return tf.cast(amount, tf.float32), *gaussian_weights(sigma, gaussian_radius(self.sigma))

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return tuple(beside(phase) for phase in (widen, filter_rows, filter_columns))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        amount, lines = given
        blurred = tf.reshape(lines, [-1, *sides(images)])
        dtype = tf.int32 if images.dtype.is_integer else working(images)
        x = tf.cast(images, dtype)
        lost = x - tf.cast(blurred, dtype)
        shown = tf.abs(tf.cast(lost, tf.float32)) > self.threshold
        lost = tf.where(shown, lost, tf.zeros_like(lost))
        if not images.dtype.is_integer:
            return tf.cast(x + nearest_float32(lost) * tf.cast(amount, dtype)[:, None, None, None], images.dtype)
        whole = tf.cast(tf.round(amount * float(1 << BITS)), tf.int32)[:, None, None, None]
        return tf.cast(tf.clip_by_value(x + rounded_shift(lost * whole, BITS), 0, 255), images.dtype)
