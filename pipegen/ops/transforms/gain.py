"""Multiply the samples of sound: gains, levels, polarity and fades; and clip them."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, Number, Odd, Span, amount_within, bounded, most, needs_one, symmetric_range, within
from pipegen.ops.families.sounds import SECOND, SILENCE, SoundTransform
from pipegen.ops.lowering.filters import Phase
from pipegen.ops.lowering.waveforms import Fade as FadeShape
from pipegen.ops.lowering.waveforms import amplitude, clipped, each, faded, peaks, powers, ratio, whole_frames
from pipegen.ops.step_bases import (
    AmountTransform,
    FixedTransform,
    OccasionalTransform,
    UnconditionalTransform,
    UniformTransform,
    UnsignedTransform,
)
from pipegen.ops.traits import Example, same_type
from pipegen.types import FeatureType, Interval


def gain_lints(op: str, name: str, db: Magnitude, _x: FeatureType) -> tuple[OpError, ...]:
    """Reports a gain of more than 60 dB up or down."""
    least, most = symmetric_range(db)
    reach = most if most > 60 else least
    if abs(reach) <= 60:
        return ()
    said = f"multiplies samples by {10 ** (reach / 20):.3g}"
    help_ = "`db` is in decibels: 6 is twice the amplitude, -6 half of it"
    return (OpError("PG510", f"the `{name}` of `{op}` reaches {reach:g}, which {said}", field=name, help=help_),)


LOUD = Odd(gain_lints)


class GainTransform(AmountTransform, SoundTransform):
    """A factor on every sample."""

    cost = 0.5
    starts_kernel = False

    def interval_after(self, interval: Interval) -> Interval:
        changed = [interval.affine(10 ** (db / 20), 0.0) for db in self.ranges()["db"]]
        return changed[0].union(changed[1]) if not self.is_gated() else changed[0].union(changed[1]).union(interval)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.cast(amplitude(self.amounts(u)["db"]), tf.float32),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        (gain,) = given
        return images * each(gain, images.dtype)


class Gain(FixedTransform, GainTransform):
    """Makes sound louder or quieter by so many decibels: every sample is multiplied by 10^(db / 20). Nothing is clipped."""

    op = "gain"
    examples = (Example("gain: {db: -6}", SECOND, "float32[16000×1] in [-0.501187, 0.501187]"),)

    db: Annotated[Number, bounded(-200, 200), LOUD]
    """The gain in decibels: 6 doubles the amplitude, -6 halves it; 0 changes nothing."""


class RandomGain(UniformTransform, GainTransform):
    """Makes each sound louder or quieter by a number of decibels drawn uniformly: every sample is multiplied by 10^(db / 20). Nothing is
    clipped, so that samples can exceed 1."""

    op = "random_gain"
    examples = (
        Example("random_gain: {db: 6}", SECOND, "float32[16000×1] in [-1.99526, 1.99526]"),
        Example("random_gain: {db: [-12, 0], probability: 0.5}", SECOND, "float32[16000×1] in [-1, 1]"),
    )

    db: Annotated[Magnitude, amount_within(-200, 200), LOUD]
    """The gain in decibels: 6 means from -6, half the amplitude, to 6, twice it; a pair is the range."""


class LoudnessTransform(AmountTransform, SoundTransform):
    """A factor on all samples of a sound that gives it a level."""

    cost = 3.0

    @model_validator(mode="after")
    def _one_level(self) -> LoudnessTransform:
        if len(self.ranges()) != 1:
            raise ValueError("give either `peak` or `rms`")
        return self

    def idle(self) -> bool:
        return most(self.probability) == 0

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        ((name, (_, highest)),) = self.ranges().items()
        if highest <= 0:
            return super().lints(x)
        message = f"the `{name}` of `{self.op}` reaches {highest:g} dB, above full scale, where a file or a loudspeaker clips"
        help_ = "0 is an amplitude of 1, and levels below it are negative, such as -1 for a peak and -20 for a mean"
        return (OpError("PG510", message, field=name, help=help_), *super().lints(x))

    def infer(self, x: FeatureType) -> FeatureType:
        y, highest = super().infer(x), self.ranges().get("peak", (0.0, math.inf))[1]
        if self.idle():
            return y
        if highest == math.inf or (self.is_gated() and x.interval is None):
            return y.with_(interval=None)
        made = Interval(-(10 ** (highest / 20)), 10 ** (highest / 20))
        return y.with_(interval=made.union(x.interval) if self.is_gated() and x.interval is not None else made)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        (level,) = self.amounts(u).values()
        return (amplitude(level),)

    def phase(self, sounds: tf.Tensor, wanted: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The factor of each sound, float32 `(n,)`."""
        present = tf.cast(peaks(sounds), tf.float64) if "peak" in self.ranges() else tf.sqrt(powers(sounds))
        return (tf.cast(ratio(wanted, present, 1.0), tf.float32),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        (gain,) = given
        return images * each(gain, images.dtype)


class Loudness(FixedTransform, LoudnessTransform):
    """Gives every sound the same level: its `peak`, the largest absolute sample, or its root mean square (`rms`), over all channels.

    Both are in decibels of full scale: 0 is the amplitude 1. Silence stays silence. With `rms`, peaks can exceed 1; nothing is clipped.
    """

    op = "loudness"
    examples = (
        Example("loudness: {peak: -1}", SECOND, "float32[16000×1] in [-0.891251, 0.891251]"),
        Example("loudness: {rms: -20}", SECOND, "float32[16000×1]"),
    )

    peak: Annotated[Number | None, bounded(-200, 200)] = None
    """The largest absolute sample, in decibels of full scale: 0 is an amplitude of 1, -6 of one half."""
    rms: Annotated[Number | None, bounded(-200, 200)] = None
    """The root mean square, in decibels of full scale: that of a square wave of amplitude 1 is 0, of a sine -3."""


class RandomLoudness(UniformTransform, LoudnessTransform):
    """Gives each sound a level that is drawn uniformly: its `peak`, the largest absolute sample, or its root mean square (`rms`), over all
    channels.

    Both are in decibels of full scale: 0 is the amplitude 1. Silence stays silence. With `rms`, peaks can exceed 1; nothing is clipped.
    `random_gain` changes the level that a sound has.
    """

    op = "random_loudness"
    examples = (
        Example("random_loudness: {peak: [-12, 0]}", SECOND, "float32[16000×1] in [-1, 1]"),
        Example("random_loudness: {rms: [-30, -15], probability: 0.5}", SECOND, "float32[16000×1]"),
    )

    peak: Annotated[Span | None, within(-200, 200)] = None
    """The range of the largest absolute sample, in decibels of full scale: 0 is an amplitude of 1, -6 of one half."""
    rms: Annotated[Span | None, within(-200, 200)] = None
    """The range of the root mean square, in decibels of full scale: that of a square wave of amplitude 1 is 0, of a sine -3."""


class PolarityTransform(SoundTransform):
    """The sign of every sample, changed."""

    cost = 0.5
    starts_kernel = False

    def interval_after(self, interval: Interval) -> Interval:
        return interval.affine(-1.0, 0.0) if not self.is_gated() else interval.union(interval.affine(-1.0, 0.0))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return -images


class Polarity(UnconditionalTransform, PolarityTransform):
    """Inverts sound: every sample changes its sign. Alone it sounds the same."""

    op = "polarity"
    examples = same_type("polarity", given=SECOND)


class RandomPolarity(OccasionalTransform, PolarityTransform):
    """Inverts a share of the sounds: every sample changes its sign. A model then learns that it does not matter."""

    op = "random_polarity"
    examples = same_type("random_polarity", "random_polarity: {probability: 0.2}", given=SECOND)


class FadeTransform(AmountTransform, SoundTransform):
    """A gain that rises at the start of a sound and falls at its end."""

    cost = 1.5
    starts_kernel = False

    _given = needs_one("fade_in", "fade_out")

    shape: FadeShape = "linear"
    """The gain over the time of a fade: `linear`; `quarter_sine` or `half_sine`, which are smooth at one end or at both; `exponential`,
    which starts slowly; or `logarithmic`, which starts at once. These are torchaudio's."""

    def interval_after(self, interval: Interval) -> Interval:
        return interval.union(SILENCE)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        amounts, none = self.amounts(u), tf.zeros([tf.shape(u)[0]], tf.int32)
        return tuple(whole_frames(amounts[name], self._rate) if name in amounts else none for name in ("fade_in", "fade_out"))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        rising, falling = given
        return faded(images, rising, falling, self.shape)


class Fade(FixedTransform, FadeTransform):
    """Fades sound in at its start, out at its end, or both: samples are multiplied by a gain from 0 to 1. A fade that is longer than the
    sound is cut off."""

    op = "fade"
    examples = same_type("fade: {fade_in: 0.05, fade_out: 0.1}", "fade: {fade_out: 0.2, shape: half_sine}", given=SECOND)

    fade_in: Annotated[Number | None, bounded(0, 86400)] = None
    """The length of the fade at the start, in seconds."""
    fade_out: Annotated[Number | None, bounded(0, 86400)] = None
    """The length of the fade at the end, in seconds."""


class RandomFade(UnsignedTransform, FadeTransform):
    """Fades each sound in at its start, out at its end, or both, in times drawn uniformly: samples are multiplied by a gain from 0 to 1. A
    fade that is longer than the sound is cut off."""

    op = "random_fade"
    examples = same_type(
        "random_fade: {fade_in: 0.1, fade_out: 0.2}",
        "random_fade: {fade_out: [0.1, 0.5], shape: exponential, probability: 0.5}",
        given=SECOND,
    )

    fade_in: Annotated[Magnitude | None, amount_within(0, 86400)] = None
    """The length of the fade at the start, in seconds: 0.1 means from 0 to 0.1, a pair is the range."""
    fade_out: Annotated[Magnitude | None, amount_within(0, 86400)] = None
    """The length of the fade at the end, in seconds: 0.1 means from 0 to 0.1, a pair is the range."""


class RandomClipping(UnsignedTransform, SoundTransform):
    """Clips each sound at a number of decibels below its peak, drawn uniformly: the distortion of a recording that was too loud.

    The peak is the largest absolute sample of all channels. With 6 dB, what exceeds half of it is cut off. The level stays; put a
    `loudness: {peak: -1}` behind it to bring the clipped sound to full scale.
    """

    op = "random_clipping"
    cost = 3.0
    examples = same_type("random_clipping: {db: 12}", "random_clipping: {db: [3, 20], probability: 0.3}", given=SECOND)

    db: Annotated[Magnitude, amount_within(0, 200)]
    """The distance of the limit from the peak, in decibels: 12 means from 0, which clips nothing, to 12; a pair is the range."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = self.largest("db")
        if largest <= 60:
            return super().lints(x)
        message = f"the `db` of `{self.op}` reaches {largest:g}, where every sound is a square wave"
        return (OpError("PG510", message, field="db", help="`db` is a distance from the peak: 6 cuts off what exceeds half of it"),)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.cast(amplitude(-self.drawn(u)["db"]), tf.float32),)

    def phases(self) -> tuple[Phase, ...]:
        return (lambda sounds, share: (peaks(sounds) * tf.cast(share, sounds.dtype),),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return clipped(images, *given)
