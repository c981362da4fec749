"""Change the tones of images: stretch, invert, posterize, solarize, and bend their curve."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import (
    ABOVE_ZERO,
    AnySchedule,
    Level,
    Magnitude,
    Number,
    Odd,
    Span,
    amount_within,
    bounded,
    check_positive,
    checked,
    level_range,
    most,
    odd_factor,
    span_range,
    symmetric_range,
    within,
)
from pipegen.ops.families.lookup_tables import LookupTableTransform, threshold_lints
from pipegen.ops.lowering.colours import auto_contrasted, gamma_corrected, posterized, repeated, solarized
from pipegen.ops.lowering.linear import normal, whole_bounds
from pipegen.ops.step_bases import AmountTransform, FixedTransform, OccasionalTransform, UnconditionalTransform, UniformTransform
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType


class AutoContrastTransform(LookupTableTransform):
    """The table that stretches each channel over the whole range."""

    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return auto_contrasted(histogram)


class AutoContrast(UnconditionalTransform, AutoContrastTransform):
    """Stretches each channel in a straight line, so that its least value becomes 0 and its greatest 255.

    It is Pillow's `autocontrast` without a cutoff, bit for bit. A channel of one value stays as it is.
    """

    op = "auto_contrast"
    examples = same_type("auto_contrast")


class RandomAutoContrast(OccasionalTransform, AutoContrastTransform):
    """Stretches each channel of a share of the images in a straight line, so that its least value becomes 0 and its greatest 255.

    It is Pillow's `autocontrast` without a cutoff, bit for bit. A channel of one value stays as it is.
    """

    op = "random_auto_contrast"
    examples = same_type("random_auto_contrast", "random_auto_contrast: {probability: 0.2}")


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


Bits = Annotated[int, Field(ge=1, le=8)]


class Posterization(UnconditionalTransform, LookupTableTransform):
    """Sets the low bits of every value to 0, as in Pillow: with 4 bits, 0 to 255 become 16 levels from 0 to 240."""

    op = "posterization"
    examples = same_type("posterization: {bits: 4}")

    bits: Bits
    """How many bits stay, from 1 to 8; 8 changes nothing."""

    def idle(self) -> bool:
        return self.bits == 8

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        step = 2 ** (8 - self.bits)
        return repeated([x // step * step for x in range(256)], u)


class RandomPosterization(LookupTableTransform):
    """Sets the low bits of every value to 0, as in Pillow; the number of bits that stay is drawn, each as likely."""

    op = "random_posterization"
    random = True
    draws = 1
    examples = same_type("random_posterization: {bits: [4, 8]}", "random_posterization: {bits: [3, 3], probability: 0.5}")

    bits: Annotated[tuple[Bits, Bits] | AnySchedule, within(1, 8)]
    """The least and the greatest number of bits that stay, from 1 to 8; 8 changes nothing."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.bits)[0] == 8

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        low, high = whole_bounds(span_range(self.bits))
        return {"bits": low + tf.cast(tf.floor(u[..., 0] * tf.cast(high - low + 1, u.dtype)), tf.int32)}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return posterized(self.drawn(u)["bits"])


class Solarization(UnconditionalTransform, LookupTableTransform):
    """Inverts every value at or above a threshold: x becomes 255 - x, as in Pillow."""

    op = "solarization"
    examples = same_type("solarization", "solarization: {threshold: 200}")

    threshold: Annotated[Number, bounded(0, 256), Odd(threshold_lints)] = 128.0
    """The least value that is inverted, from 0, which inverts all, to 256, which inverts none."""

    def idle(self) -> bool:
        return self.threshold > 255

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x if x >= self.threshold else x for x in range(256)], u)


class RandomSolarization(UniformTransform, LookupTableTransform):
    """Inverts every value at or above a threshold drawn uniformly: x becomes 255 - x, as in Pillow."""

    op = "random_solarization"
    examples = same_type("random_solarization: {threshold: [100, 255]}", "random_solarization: {threshold: [128, 128], probability: 0.2}")

    threshold: Annotated[Span, within(0, 256), Odd(threshold_lints)]
    """The range of the least value that is inverted: 0 inverts all, 256 inverts none."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.threshold)[0] > 255

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return solarized(self.drawn(u)["threshold"])


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


class GammaTransform(AmountTransform, LookupTableTransform):
    """The table of a power of the values."""

    factors = frozenset({"gamma"})

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return gamma_corrected(self.amounts(u)["gamma"])


class Gamma(FixedTransform, GammaTransform):
    """Raises values to a power: x becomes 255 · (x / 255) ^ gamma, rounded half to even. Black and white stay.

    Above 1 middle tones get darker, below 1 brighter.
    """

    op = "gamma"
    examples = same_type("gamma: {gamma: 2.2}")

    gamma: Annotated[Number, checked(check_positive), odd_factor(low=0.1, high=10.0, drawn=False)]
    """The exponent, above 0; 1 changes nothing."""


class RandomGamma(UniformTransform, GammaTransform):
    """Raises values to a power drawn uniformly: x becomes 255 · (x / 255) ^ gamma, rounded half to even.

    Black and white stay. Above 1 middle tones get darker, below 1 brighter.
    """

    op = "random_gamma"
    examples = same_type("random_gamma: {gamma: 0.2}", "random_gamma: {gamma: [0.7, 1.5], probability: 0.5}")

    gamma: Annotated[Magnitude, ABOVE_ZERO, odd_factor(low=0.1, high=10.0)]
    """The exponent, above 0: 0.2 means from 0.8 to 1.2, a pair is the range."""


class RandomToneCurve(LookupTableTransform):
    """Bends the tone curve at random: dark and bright values get darker or brighter.

    A value v, from 0 to 1, becomes 3 (1 - v)² v a + 3 (1 - v) v² b + v³, where a and b are normal
    around 1/4 and 3/4 and clipped to 0 and 1; then it is rounded half to even. Black and white stay. It is Albumentations'
    `RandomToneCurve`. Values would stay as they are with a = 1/3 and b = 2/3, so 1/4 and 3/4 raise the contrast a little.
    """

    op = "random_tone_curve"
    random = True
    examples = same_type("random_tone_curve", "random_tone_curve: {std: 0.2, per_channel: true, probability: 0.5}")

    std: Annotated[Level, bounded(0, 1)] = 0.1
    """The standard deviation of a and b, from 0 to 1."""
    per_channel: bool = False
    """Draw a curve for each of the three channels, which tints the image, instead of one for all."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if self.per_channel and x.channels != 3:
            raise OpError("PG205", f"`per_channel` of `{self.op}` needs 3 channels, and gets {x.channels}", field="per_channel")
        return y

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = level_range(self.std)[1]
        if largest <= 0.5:
            return super().lints(x)
        message = f"with a `std` of {largest:g} most curves of `{self.op}` are at a limit"
        return (OpError("PG510", message, field="std", help="0.1 is usual"),)

    def num_draws(self) -> int:
        return 6 if self.per_channel else 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The curve, or one for each channel: `a` and `b`."""
        std = tf.convert_to_tensor(self.std, tf.float64)
        half = self.num_draws() // 2
        ends = {"a": 0.25 + std * normal(u[..., :half]), "b": 0.75 + std * normal(u[..., half:])}
        return {name: tf.clip_by_value(end if self.per_channel else end[..., 0], 0.0, 1.0) for name, end in ends.items()}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        a, b = (end[..., None] if self.per_channel else end[:, None, None] for end in self.drawn(u).values())
        v = tf.range(256, dtype=tf.float64) / 255.0
        curve = 3.0 * (1.0 - v) ** 2 * v * a + 3.0 * (1.0 - v) * v**2 * b + v**3
        return tf.cast(tf.clip_by_value(tf.round(255.0 * curve), 0.0, 255.0), tf.int32)
