"""`brightness` and `random_brightness`."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ADDED, AROUND_ONE, AROUND_ZERO, Magnitude, Number, bounded, needs_one, odd_factor
from pipegen.ops.lowering.colours import brightness, compose, offset
from pipegen.ops.step_bases import AmountTransform, ColourTransform, FixedTransform, UniformTransform
from pipegen.ops.traits import to_float32


class BrightnessTransform(AmountTransform, ColourTransform):
    """A factor on every value, an amount added to it, or both."""

    separate = True
    factors = frozenset({"factor"})

    _given = needs_one("factor", "delta")

    def takes(self, channels: int) -> bool:
        return channels in (1, 3, 4)

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        amounts = self.amounts(u)
        parts = [of(amounts[name], channels) for name, of in (("factor", brightness), ("delta", offset)) if name in amounts]
        return parts[0] if len(parts) == 1 else compose(*parts)


class Brightness(FixedTransform, BrightnessTransform):
    """Multiplies every value by one factor, or adds one amount: y = factor · x + delta.

    The factor is what Pillow's and torchvision's brightness do, the amount what `tf.image.adjust_brightness` does. With both,
    the amount is added last. Transparency, the fourth of four channels, stays as it is.
    """

    op = "brightness"
    examples = to_float32("brightness: {factor: 1.2}", "brightness: {delta: -30}")

    factor: Annotated[Number | None, bounded(0), odd_factor(low=0.0, high=5.0, drawn=False)] = None
    """What values are multiplied by, at least 0; 1 changes nothing."""
    delta: Annotated[Number | None, ADDED] = None
    """What is added, in the units of the incoming values; 0 changes nothing."""


class RandomBrightness(UniformTransform, BrightnessTransform):
    """Multiplies every value by a factor drawn uniformly, or adds an amount: y = factor · x + delta.

    The factor is what Pillow's and torchvision's brightness do, the amount what Keras' layer and `tf.image.adjust_brightness`
    do. With both, two numbers are drawn, and the amount is added last. Transparency, the fourth of four channels, stays as it is.
    """

    op = "random_brightness"
    examples = to_float32(
        "random_brightness: {factor: 0.2}", "random_brightness: {factor: [0.5, 1.0], probability: 0.5}", "random_brightness: {delta: 40}"
    )

    factor: Annotated[Magnitude | None, AROUND_ONE, odd_factor(low=0.0, high=5.0)] = None
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""
    delta: Annotated[Magnitude | None, AROUND_ZERO, ADDED] = None
    """What is added, in the units of the incoming values: 40 means from -40 to 40, a pair is the range."""
