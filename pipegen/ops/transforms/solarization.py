"""Invert images, whole or in part."""

from __future__ import annotations

from typing import Annotated

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, Number, Odd, Span, amount_within, bounded, most, symmetric_range, within
from pipegen.ops.families.lookup_tables import LookupTableTransform, threshold_lints
from pipegen.ops.lowering.colours import repeated, solarized
from pipegen.ops.step_bases import AmountTransform, FixedTransform, OccasionalTransform, UnconditionalTransform, UniformTransform
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType


class InvertTransform(LookupTableTransform):
    """The table from x to 255 - x."""

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x for x in range(256)], u)


class Invert(UnconditionalTransform, InvertTransform):
    """Makes bright dark and dark bright: x becomes 255 - x."""

    op = "invert"
    examples = same_type("invert")


class RandomInvert(OccasionalTransform, InvertTransform):
    """Makes bright dark and dark bright in a share of the images: x becomes 255 - x."""

    op = "random_invert"
    examples = same_type("random_invert", "random_invert: {probability: 0.1}")


class SolarizationTransform(AmountTransform, LookupTableTransform):
    """The table that inverts values at or above a threshold."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or self.ranges()["threshold"][0] > 255

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return solarized(self.amounts(u)["threshold"])


class Solarization(FixedTransform, SolarizationTransform):
    """Inverts every value at or above a threshold: x becomes 255 - x, as in Pillow."""

    op = "solarization"
    examples = same_type("solarization", "solarization: {threshold: 200}")

    threshold: Annotated[Number, bounded(0, 256), Odd(threshold_lints)] = 128.0
    """The least value that is inverted, from 0, which inverts all, to 256, which inverts none."""


class RandomSolarization(UniformTransform, SolarizationTransform):
    """Inverts every value at or above a threshold drawn uniformly: x becomes 255 - x, as in Pillow."""

    op = "random_solarization"
    examples = same_type("random_solarization: {threshold: [100, 255]}", "random_solarization: {threshold: [128, 128], probability: 0.2}")

    threshold: Annotated[Span, within(0, 256), Odd(threshold_lints)]
    """The range of the least value that is inverted: 0 inverts all, 256 inverts none."""


class RandomSolarizeAdd(UniformTransform, LookupTableTransform):
    """Adds an amount drawn uniformly to every value below a threshold, rounded half to even: AutoAugment's "solarize add".

    Values stay between 0 and 255, so dark values get brighter, and those at or above the threshold stay.
    """

    op = "random_solarize_add"
    examples = same_type("random_solarize_add: {delta: [0, 110]}", "random_solarize_add: {delta: 40, threshold: 100, probability: 0.5}")

    delta: Annotated[Magnitude, amount_within(-255, 255)]
    """What is added, in levels of 255: 40 means from -40 to 40, a pair is the range."""
    threshold: Annotated[Number, bounded(0, 256), Odd(threshold_lints)] = 128.0
    """The least value that stays as it is, from 0 to 256."""

    def idle(self) -> bool:
        return super().idle() or self.threshold == 0

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = max(abs(v) for v in symmetric_range(self.delta))
        if not 0 < largest <= 1:
            return super().lints(x)
        message = f"the `delta` of `{self.op}` is at most {largest:g}, but values are from 0 to 255"
        help_ = write(f"delta: {255 * largest:g}", "arguments", "for a share of the range write {}")
        return (OpError("PG510", message, field="delta", help=help_), *super().lints(x))

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        values = tf.range(256)
        added = tf.cast(tf.round(self.drawn(u)["delta"]), tf.int32)[:, None, None]
        return tf.where(values < -int(-self.threshold // 1), tf.clip_by_value(values + added, 0, 255), values)
