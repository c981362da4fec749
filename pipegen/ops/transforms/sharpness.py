"""Sharpen or soften images, and emboss them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Factor, Span, bounded, odd_factor, within
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform, SharpenTransform
from pipegen.ops.lowering import filters
from pipegen.ops.lowering.linear import nearest_float32, working
from pipegen.ops.step_bases import AmountTransform, FixedTransform, UniformTransform
from pipegen.ops.traits import same_type

LARGEST = 20.0  # the largest factor; with it, sums of bytes still fit 32 bits


class SharpnessTransform(AmountTransform, SharpenTransform):
    """Sharpness by a factor."""

    factors = frozenset({"factor"})

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return filters.sharpening_gains(self.amounts(u)["factor"])


class Sharpness(FixedTransform, SharpnessTransform):
    """Sharpens or softens every image by one factor: y = s + factor · (x - s), with s the smoothed image.

    It is Pillow's `ImageEnhance.Sharpness`: s is the mean of each 3 by 3 pixels with five times the weight in the
    middle; pixels at the border stay as they are. Below 1 softens, 0 gives s, above 1 sharpens. Values are clipped to
    the range of the input.
    """

    op = "sharpness"
    examples = same_type("sharpness: {factor: 2}")

    factor: Annotated[float, Field(ge=0, le=LARGEST)]
    """How sharp, at least 0 and at most 20; 1 changes nothing."""


class RandomSharpness(UniformTransform, SharpnessTransform):
    """Sharpens or softens an image by a factor drawn uniformly: y = s + factor · (x - s), with s the smoothed image.

    It is Pillow's `ImageEnhance.Sharpness`: s is the mean of each 3 by 3 pixels with five times the weight in the
    middle; pixels at the border stay as they are. Below 1 softens, 0 gives s, above 1 sharpens. Values are clipped to
    the range of the input. (Keras' layer counts from 0 to 1 around 0.5.)
    """

    op = "random_sharpness"
    examples = same_type("random_sharpness: {factor: 0.5}", "random_sharpness: {factor: [1.0, 3.0], probability: 0.5}")

    factor: Annotated[Factor, bounded(None, LARGEST), odd_factor(low=None, high=10.0)]
    """How sharp, at least 0 and at most 20; 1 changes nothing: 0.5 means from 0.5 to 1.5, a pair is the range."""


class RandomUnsharpMask(UniformTransform, NeighbourhoodTransform):
    """Adds to an image what a Gaussian blur takes away, times an amount drawn uniformly: y = x + amount · (x - blurred).

    A value stays where that difference is at most `threshold`. The blur is that of `gaussian_blur`, and rounded to bytes for images of
    bytes; values are clipped to the range of the input. A large `sigma` gives halos, as in oversharpened pictures (ringing).
    """

    op = "random_unsharp_mask"
    overshoots = True
    symmetric = True
    examples = same_type(
        "random_unsharp_mask: {sigma: 2}", "random_unsharp_mask: {sigma: 1, amount: [0.5, 2], threshold: 3, probability: 0.5}"
    )

    sigma: Annotated[float, Field(gt=0, le=10)]
    """The standard deviation of the Gaussian, in pixels, at most 10."""
    amount: Annotated[Span, within(0, 8)] = (0.2, 1.0)  # so that sums of bytes fit 32 bits
    """The range of the amount, at most 8; 0 changes nothing."""
    threshold: Annotated[float, Field(ge=0)] = 0.0
    """The difference up to which a value stays, in the units of the incoming values."""

    def weight(self) -> float:
        return 0.85 + 0.1 * filters.gaussian_radius(self.sigma)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        amount = self.drawn(u)["amount"]
        sigma = tf.fill(tf.shape(u)[:1], tf.constant(self.sigma, tf.float64))
        return tf.cast(amount, tf.float32), *filters.gaussian_weights(sigma, filters.gaussian_radius(self.sigma))

    def phases(self) -> tuple[filters.Phase, ...]:
        return tuple(filters.beside(phase) for phase in (filters.widen, filters.filter_rows, filters.filter_columns))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        amount, lines = given
        blurred = tf.reshape(lines, [-1, *filters.sides(images)])
        dtype = tf.int32 if images.dtype.is_integer else working(images)
        x = tf.cast(images, dtype)
        lost = x - tf.cast(blurred, dtype)
        shown = tf.abs(tf.cast(lost, tf.float32)) > self.threshold
        lost = tf.where(shown, lost, tf.zeros_like(lost))
        if not images.dtype.is_integer:
            return tf.cast(x + nearest_float32(lost) * tf.cast(amount, dtype)[:, None, None, None], images.dtype)
        whole = tf.cast(tf.round(amount * float(1 << filters.BITS)), tf.int32)[:, None, None, None]
        return tf.cast(tf.clip_by_value(x + filters.rounded_shift(lost * whole, filters.BITS), 0, 255), images.dtype)


_RELIEF = {(-1, -1): (-1, -1), (-1, 0): (0, -1), (0, -1): (0, -1), (0, 0): (1, 0), (0, 1): (0, 1), (1, 0): (0, 1), (1, 1): (1, 1)}
"""The weight of each offset, as a constant and a multiple of the strength; they sum to 1."""


class RandomEmboss(UniformTransform, NeighbourhoodTransform):
    """Blends an image with its relief, lit from the lower right: y = (1 - alpha) · x + alpha · relief, with both numbers drawn uniformly.

    The relief is x filtered with [[-1 - s, -s, 0], [-s, 1, s], [0, s, 1 + s]] for a `strength` s; the image is reflected at its
    border (abc|cba). Values are clipped to the range of the input.
    """

    op = "random_emboss"
    cost = 0.5
    idle_at = {"alpha": 0.0}
    overshoots = True
    examples = same_type("random_emboss: {strength: [0.2, 0.7]}", "random_emboss: {alpha: [0.5, 1], probability: 0.5}")

    strength: Annotated[Span, within(0, 4)] = (0.2, 0.7)
    """The range of the strength, from 0 to 4."""
    alpha: Annotated[Span, within(0, 1)] = (0.2, 0.5)
    """The range of the relief's share, from 0, which changes nothing, to 1."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        strength, alpha = drawn["strength"], drawn["alpha"]
        weights = [alpha * (constant + strength * times) for constant, times in _RELIEF.values()]
        middle = list(_RELIEF).index((0, 0))
        weights[middle] = weights[middle] + (1.0 - alpha)
        return filters.whole_weights(tf.stack(weights, -1), middle)

    def phases(self) -> tuple[filters.Phase, ...]:
        return filters.bordered(1, "reflect"), partial(filters.spread, groups=[[offset] for offset in _RELIEF], radius=1)
