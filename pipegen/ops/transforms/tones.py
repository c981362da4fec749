"""Change the tones of images: stretch, invert, posterize, solarize, bend their curve, and equalise their histogram."""

from __future__ import annotations

from typing import Annotated, Literal

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
    as_pair,
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
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.colours import auto_contrasted, equalized, gamma_corrected, posterized, repeated, solarized
from pipegen.ops.lowering.filters import Phase, sides
from pipegen.ops.lowering.linear import normal
from pipegen.ops.lowering.statistics import blended, corners, luma, tile_counts, tile_sides, tile_tables
from pipegen.ops.lowering.windows import whole_between
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
        return {"bits": whole_between(u[..., 0], span_range(self.bits))}

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


LARGEST = 255.0  # the largest limit; one of 256 leaves every count as it is
Count = Annotated[int, Field(ge=1, le=32)]


class AdaptiveEqualizationTransform(AmountTransform, NeighbourhoodTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast."""

    pairs = frozenset({"tiles"})
    on_bytes = True

    tiles: Count | tuple[Count, Count] = 8
    """How many rows and columns of tiles there are, at most 32; a pair is `[rows, columns]`."""
    channel: Literal["luma", "each"] = "luma"
    """What is equalised: the `luma`, whose change is added to each channel and clipped, or `each` channel by itself."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if self.channel == "luma" and x.channels not in (1, 3):
            message = f"`{self.op}` takes the luma of 1 or 3 channels, and gets {x.channels}"
            raise OpError("PG205", message, help="`channel: each` takes any number of channels")
        return y

    def weight(self) -> float:
        return 1.4 if self.channel == "luma" else 3.3

    def idle(self) -> bool:
        return most(self.probability) == 0  # a limit of 0 limits nothing

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.amounts(u)["limit"],)

    def phases(self) -> tuple[Phase, ...]:
        return self._plane, self._counts, self._tables, self._quads, self._blend

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        plane, level = given
        if self.channel == "each" or images.shape[-1] == 1:
            return tf.cast(level, tf.uint8)
        change = tf.cast(level, tf.int32) - tf.cast(plane, tf.int32)
        return tf.cast(tf.clip_by_value(tf.cast(images, tf.int32) + change, 0, 255), tf.uint8)

    def _plane(self, images: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (luma(images) if self.channel == "luma" else images), limit

    def _counts(self, images: tf.Tensor, plane: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, tile_counts(plane, as_pair(self.tiles)), limit

    def _tables(self, images: tf.Tensor, plane: tf.Tensor, counts: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        down, across = tile_sides(height, width, as_pair(self.tiles))
        return plane, tile_tables(counts, limit, down * across)

    def _quads(self, images: tf.Tensor, plane: tf.Tensor, tables: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, corners(tables)

    def _blend(self, images: tf.Tensor, plane: tf.Tensor, quads: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, tf.cast(blended(plane, quads, as_pair(self.tiles)), tf.uint8)


class EqualizationTransform(LookupTableTransform):
    """The table that spreads the values of each channel evenly."""

    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return equalized(histogram)


class Equalization(UnconditionalTransform, EqualizationTransform):
    """Spreads the values of each channel evenly: afterwards each range of values has about as many pixels.

    It is Pillow's `equalize`, bit for bit. With s = (pixels - pixels of the greatest value) // 255, x becomes
    (s // 2 + pixels below x) // s, at most 255. A channel with s = 0, such as one of a single value, stays as it is.
    """

    op = "equalization"
    examples = same_type("equalization")


class RandomEqualization(OccasionalTransform, EqualizationTransform):
    """Spreads the values of each channel of a share of the images evenly: afterwards each range of values has about as many pixels.

    It is Pillow's `equalize`, bit for bit. With s = (pixels - pixels of the greatest value) // 255, x becomes
    (s // 2 + pixels below x) // s, at most 255. A channel with s = 0, such as one of a single value, stays as it is.
    """

    op = "random_equalization"
    examples = same_type("random_equalization", "random_equalization: {probability: 0.2}")


class Clahe(FixedTransform, AdaptiveEqualizationTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast: CLAHE (Zuiderveld 1994).

    It is OpenCV's `createCLAHE`, within one level: counts above `limit` times the mean count of a tile are spread over all values, and
    a pixel is read through the tables of the four tiles around it, blended. Floats from 0 to 255 are rounded first.
    """

    op = "clahe"
    examples = same_type("clahe: {limit: 2}", "clahe: {limit: 4, tiles: [6, 10], channel: each}")

    limit: Annotated[float, Field(ge=0, le=LARGEST)] = 2.0
    """How many times the mean count a value may have in a tile, at most 255: 1 changes little, 40 hardly limits, 0 is no limit."""


class RandomClahe(UniformTransform, AdaptiveEqualizationTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast that is drawn uniformly: CLAHE (Zuiderveld 1994).

    It is OpenCV's `createCLAHE`, within one level: counts above the limit are spread over all values, and a pixel is read through the
    tables of the four tiles around it, blended. Floats from 0 to 255 are rounded first.
    """

    op = "random_clahe"
    examples = same_type("random_clahe: {limit: [1, 4]}", "random_clahe: {limit: [2, 2], tiles: 4, probability: 0.5}")

    limit: Annotated[Span, within(0, LARGEST)] = (1.0, 4.0)
    """The range of how many times the mean count a value may have in a tile, at most 255: 1 changes little, 0 is no limit."""
