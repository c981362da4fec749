"""Change when sound happens: shift it, silence a part, trim silence, play it faster or at another pitch."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import installed_version, tf
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, Magnitude, Odd, amount_within, bounded, odd_factor, symmetric_range
from pipegen.ops.families.series import WINDOW, SeriesResample, lies_on_steps
from pipegen.ops.families.sounds import (
    ANY_SOUND,
    SECOND,
    SILENCE,
    SoundTransform,
    TimeMap,
    TimeTransform,
    is_sound,
    require_sound,
    unbounded,
)
from pipegen.ops.kinds.base import FeatureKind
from pipegen.ops.lowering.vocoder import pitched, stretched, window_length
from pipegen.ops.lowering.waveforms import fixed_step, loud_part, resampled_by, shifted, silenced, sizes, whole_frames
from pipegen.ops.lowering.windows import pick
from pipegen.ops.step_bases import ElementTransform, UnconditionalTransform, UniformTransform, require_kind
from pipegen.ops.traits import Example, same_type
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType, Interval

MOST_TIMES = 100  # the largest ratio of two rates
_OF_SERIES = ("length", "every", "method")
Whole = Any  # a number of frames: an integer, or a tensor where it is not static


class PartTransform(UniformTransform, SoundTransform):
    """A step that draws a length or a distance, in seconds or as a share of the sound."""

    @model_validator(mode="after")
    def _one_unit(self) -> PartTransform:
        if (getattr(self, "seconds") is None) == (getattr(self, "share") is None):  # noqa: B009
            raise ValueError("give either `seconds` or `share`")
        return self

    def drawn_frames(self, u: tf.Tensor, frames: Whole) -> tf.Tensor:
        """The drawn length in frames: int32 `(...)`."""
        drawn = self.drawn(u)
        if "share" in drawn:
            return tf.cast(tf.round(drawn["share"] * tf.cast(frames, tf.float64)), tf.int32)
        return whole_frames(drawn["seconds"], self._rate)


class RandomShift(PartTransform, TimeTransform):
    """Moves each sound later or earlier by a time drawn uniformly, a whole number of frames: what leaves at one end enters at the other, or
    silence does."""

    op = "random_shift"
    cost = 2.0
    examples = same_type("random_shift: {share: 0.2}", "random_shift: {seconds: [0, 0.1], fill: silence, probability: 0.5}", given=SECOND)

    seconds: Annotated[Magnitude | None, amount_within(-86400, 86400)] = None
    """The distance in seconds: 0.1 means from 0.1 earlier to 0.1 later, a pair is the range."""
    share: Annotated[Magnitude | None, amount_within(-1, 1)] = None
    """The distance as a share of the sound's length: 0.2 means from 0.2 earlier to 0.2 later, a pair is the range."""
    fill: Literal["wrap", "silence"] = "wrap"
    """What enters at the other end: what left (`wrap`), or `silence`."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if self.fill == "wrap" or x.shape[0] is None:
            return super().lints(x)
        (name, bounds), length = next(iter(self.ranges().items())), x.shape[0] / _rate_of(x)
        furthest = max(map(abs, bounds)) * (length if name == "share" else 1.0)
        if furthest < length:
            return super().lints(x)
        message = f"`{self.op}` reaches {furthest:g} seconds, and leaves nothing of a sound of {length:g}"
        return (OpError("PG510", message, field=name, help="use a shorter distance, or `fill: wrap`"), *super().lints(x))

    def composes(self) -> bool:
        return self.fill == "silence"

    def moves_apart(self) -> OpError | None:
        if self.fill != "wrap":
            return None
        help_ = write("fill: silence", "arguments", "write {}, so that an event leaves at the end")
        return OpError("PG203", f"`{self.op}` wraps around, which would cut an event in two", field="fill", help=help_)

    def time_map(self, u: tf.Tensor, sounds: tf.Tensor) -> TimeMap:
        frames, _ = sizes(sounds)
        return TimeMap.of_shift(sounds, -self.drawn_frames(u, frames), frames)

    def interval_after(self, interval: Interval) -> Interval:
        return interval if self.fill == "wrap" else interval.union(SILENCE)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.drawn_frames(u, height),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return shifted(images, *given, wraps=self.fill == "wrap")


class RandomTimeMask(PartTransform):
    """Silences one stretch of each sound, whose length is drawn uniformly and which is equally likely at each place. For spectra there is
    `spec_augment`."""

    op = "random_time_mask"
    cost = 1.0
    draws = 2
    starts_kernel = False
    examples = same_type("random_time_mask: {share: [0, 0.2]}", "random_time_mask: {seconds: [0.05, 0.1], probability: 0.5}", given=SECOND)

    seconds: Annotated[Magnitude | None, amount_within(0, 86400)] = None
    """The length in seconds: 0.1 means from 0 to 0.1, a pair is the range."""
    share: Annotated[Magnitude | None, amount_within(0, 1)] = None
    """The length as a share of the sound's: 0.2 means from 0 to 0.2, a pair is the range."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: tf.abs(amount) for name, amount in super().drawn(u).items()}

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if x.shape[0] is None:
            return super().lints(x)
        (name, (_, most)), length = next(iter(self.ranges().items())), x.shape[0] / _rate_of(x)
        longest = most * (length if name == "share" else 1.0)
        if longest < length:
            return super().lints(x)
        message = f"`{self.op}` reaches {longest:g} seconds, and silences a whole sound of {length:g}"
        return (OpError("PG510", message, field=name, help="use a shorter stretch"), *super().lints(x))

    def interval_after(self, interval: Interval) -> Interval:
        return interval.union(SILENCE)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        length = tf.minimum(self.drawn_frames(u, height), height)
        start = pick(u[:, 1], height - length)
        return start, start + length

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return silenced(images, *given)


def _rate_of(x: FeatureType) -> int:
    found: Any = x.details
    return int(found.rate)


class FactorTransform(UniformTransform, SoundTransform):
    """A step that draws a factor on time or frequencies. Its sounds keep their number of frames, so that batches stay rectangular."""

    def interval_after(self, interval: Interval) -> None:
        return None


Tempo = Annotated[Magnitude, ABOVE_ZERO, bounded(high=4), odd_factor(low=0.4, high=2.5)]


class TempoTransform(FactorTransform, TimeTransform):
    """A step that plays each sound faster or slower."""

    factors = frozenset({"factor"})
    changes_pace = True

    factor: Tempo
    """The speed: 0.1 means from 0.9 to 1.1, a pair is the range; 2 is twice as fast."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (fixed_step(self.drawn(u)["factor"]),)

    def time_map(self, u: tf.Tensor, sounds: tf.Tensor) -> TimeMap:
        (pace,), (frames, _) = self.parameters(u, *sizes(sounds)), sizes(sounds)
        return TimeMap(pace, tf.zeros_like(pace), frames)


class RandomSpeed(TempoTransform):
    """Plays each sound faster or slower by a factor drawn uniformly: above 1 it is shorter and higher, below 1 longer and lower, as a
    record at another speed.

    The number of frames stays: silence follows a shorter sound, and a longer one is cut at its end. Samples are read by a sinc with 16
    zero crossings to each side under a Hann window, which is wider above a factor of 1, so that nothing aliases (J. O. Smith, Digital Audio
    Resampling, 1984). `random_time_stretch` keeps the pitch.
    """

    op = "random_speed"
    cost = 40.0
    examples = unbounded("random_speed: {factor: 0.1}", "random_speed: {factor: [0.8, 1.25], probability: 0.5}")

    factor: Tempo
    """The speed: 0.1 means from 0.9 to 1.1, a pair is the range; 2 is twice as fast and an octave higher."""

    def composes(self) -> bool:
        return True

    def fastest(self) -> float:
        return self.largest("factor")

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        (step,) = given
        return resampled_by(images, step, sizes(images)[0], self.fastest())


def _compiles_float64() -> bool:
    """Checks that XLA has Fourier transforms of float64: from TensorFlow 2.18 on. Without importing it."""
    found = installed_version("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos", "tf-nightly") or ""
    return tuple(map(int, re.findall(r"\d+", found)[:2])) >= (2, 18)


class VocoderTransform(FactorTransform):
    """A step by the phase vocoder."""

    on_host = not _compiles_float64()


class RandomTimeStretch(VocoderTransform, TempoTransform):
    """Plays each sound faster or slower at the same pitch, by a factor drawn uniformly: above 1 it is shorter, below 1 longer.

    The number of frames stays: silence follows a shorter sound, and a longer one is cut at its end. It is a phase vocoder with identity
    phase locking, a Hann window of the power of two nearest to 64 ms and a quarter of it as hop. Output step j has the magnitude between
    the two input steps around j · factor; the phase of a peak goes on by the difference of theirs, and the bins around the peak follow
    it. Computed in float64.

    Sources: Flanagan and Golden, "Phase Vocoder" (1966); Laroche and Dolson, "Improved Phase Vocoder Time-Scale Modification of Audio"
    (1999).
    """

    op = "random_time_stretch"
    cost = 130.0
    examples = unbounded("random_time_stretch: {factor: 0.1}", "random_time_stretch: {factor: [0.8, 1.25], probability: 0.5}")

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        (step,) = given
        return stretched(images, step, sizes(images)[0], window_length(self._rate))


def pitch_lints(op: str, name: str, semitones: Magnitude, _x: FeatureType) -> tuple[OpError, ...]:
    """Reports a pitch more than an octave away."""
    furthest = max(symmetric_range(semitones), key=abs)
    if abs(furthest) <= 12:
        return ()
    message = f"the `{name}` of `{op}` reaches {furthest:g}, {abs(furthest) / 12:.3g} octaves"
    return (OpError("PG510", message, field=name, help="12 semitones are an octave; a voice stays one within about 4"),)


class RandomPitch(VocoderTransform):
    """Plays each sound at another pitch and the same speed, by a number of semitones drawn uniformly: 12 are an octave.

    The sound is stretched as by `random_time_stretch`, and read faster or slower as by `random_speed`, so that formants move with the
    pitch. Nothing that would alias is kept.

    Sources: Flanagan and Golden, "Phase Vocoder" (1966); Laroche and Dolson, "Improved Phase Vocoder Time-Scale Modification of Audio"
    (1999).
    """

    op = "random_pitch"
    cost = 160.0
    examples = unbounded("random_pitch: {semitones: 2}", "random_pitch: {semitones: [-4, 4], probability: 0.5}")

    semitones: Annotated[Magnitude, amount_within(-24, 24), Odd(pitch_lints)]
    """The distance in semitones: 2 means from 2 down to 2 up, a pair is the range; fractions are allowed."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.pow(tf.constant(2.0, tf.float64), self.drawn(u)["semitones"] / 12.0),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        (factor,) = given
        return pitched(images, factor, 2.0 ** (self.largest("semitones") / 12.0), window_length(self._rate))


class Resample(UnconditionalTransform, SoundTransform):
    """Changes the rate of sound: `rate` frames a second. It sounds the same, but for frequencies above half of the lower rate. Of a series,
    the number of time steps.

    Of sound, the filter is a sinc of 64 zero crossings to each side in a Kaiser window, the `kaiser_best` of resampy and librosa. Files of
    another rate than that of their feature are resampled by it when they are read, so this step is for a second rate.

    A series is brought to a `length` by linear interpolation, whose first and last value stay, or to the means of `every` so many time
    steps, as `resample().mean()` of pandas: missing values are left out. What lies on the same time steps follows: a value counts as
    observed unless it would be missing, and a mean has the time of its first step and the most frequent class of its steps.
    """

    op = "resample"
    cost = 3.0
    examples = (
        Example("resample: {rate: 8000}", SECOND, "float32[8000×1]"),
        Example("resample: {rate: 22050}", ANY_SOUND, "float32[?×1]"),
        Example("resample: {length: 24}", WINDOW, "float32[24×2]"),
        Example("resample: {every: 4}", WINDOW, "float32[24×2]"),
    )

    rate: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """For sound: the rate of the result, in Hz."""
    length: Annotated[int, Field(ge=1, le=1 << 24)] | None = None
    """For a series: the number of time steps of the result."""
    every: Annotated[int, Field(ge=1, le=1 << 24)] | None = None
    """For a series: the number of time steps that become one, from the first on; the last may have fewer."""
    method: Literal["linear", "mean"] | None = None
    """For a series: how a value is made: by `linear` interpolation, the default with `length`, or as the `mean` of the time steps that fall
    together, the default with `every`."""

    @model_validator(mode="after")
    def _one_form(self) -> Resample:
        given = [name for name in ("rate", "length", "every") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give `rate` for sound, or `length` or `every` for a series")
        if self.method is not None and self.rate is not None:
            raise ValueError("`method` is for a series; leave it out")
        if self.method == "linear" and self.every is not None:
            raise ValueError("`every` takes means; for `method: linear` give the `length`")
        return self

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return super().acts_on(kind) or kind.name in SeriesResample.kinds

    def reaches(self, x: FeatureType) -> bool:
        return lies_on_steps(x)

    def on(self, x: FeatureType) -> Transform:
        if self.rate is not None or is_sound(x):
            return super().on(x)
        method: Any = self.method or ("linear" if self.every is None else "mean")
        step = SeriesResample(owner=self, length=self.length, every=self.every, method=method, when=self.when, feature=self.feature)
        return step.on(x)

    def meaning(self) -> dict[str, Any]:
        return {name: value for name, value in super().meaning().items() if value is not None or name not in ("rate", *_OF_SERIES)}

    def infer(self, x: FeatureType) -> FeatureType:
        if self.rate is None or not is_sound(x):
            require_kind(self, x)
            due, what = ("`length` or `every`", "series") if self.rate is not None else ("`rate`", "sounds")
            help_ = f"give it {due}, or name the `feature` that it acts on"
            raise OpError("PG203", f"`{self.op}` changes {what} by their {due}", help=help_)
        own = require_sound(self, x)
        if own.rate == self.rate:
            return x
        if max(own.rate, self.rate) > MOST_TIMES * min(own.rate, self.rate):
            help_ = f"the ratio of the rates is at most {MOST_TIMES}"
            raise OpError("PG105", f"`{self.op}` cannot make {self.rate} Hz of {own.rate} Hz", field="rate", help=help_)
        frames = None if x.shape[0] is None else -(-x.shape[0] * self.rate // own.rate)
        return x.with_(shape=(frames, x.shape[1]), interval=None, details=replace(own, rate=self.rate))

    def is_identity(self, x: FeatureType) -> bool:
        return is_sound(x) and require_sound(self, x).rate == self.rate

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.resampling import resample  # not every spec needs it

        return resample(images, self._rate, self.rate or self._rate)


class Trim(TimeTransform, ElementTransform):
    """Drops silence at both ends of each sound: what is quieter than its loudest moment by more than so many decibels. Sounds then have
    lengths of their own; `crop_or_pad` gives them one.

    The root mean square is taken in windows around every `hop`-th frame, and compared with the largest one; a window counts if it is loud
    in any channel. It is librosa's `effects.trim`, with its floor of -100 dB. Nothing is cut from a silent sound.
    """

    op = "trim"
    examples = (
        Example("trim: {db: 40}", ANY_SOUND, "float32[?×1] in [-1, 1]"),
        Example("trim: {db: 60, window: 512, hop: 128}", SECOND, "float32[?×1] in [-1, 1]"),
    )

    db: Annotated[float, Field(gt=0, le=200)] = 60.0
    """How much quieter than the loudest window silence is, in decibels."""
    window: Annotated[int, Field(ge=1, le=1 << 24)] = 2048
    """The length of a window, in frames."""
    hop: Annotated[int, Field(ge=1, le=1 << 24)] = 512
    """The distance of windows, in frames: how exactly silence is cut off."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if self.db >= 10:
            return super().lints(x)
        message = f"`trim` drops all that is not within {self.db:g} dB of the loudest moment, which is not silence"
        help_ = write("db: 40", "arguments", "silence is 30 to 60 dB quieter: write for example {}")
        return (OpError("PG510", message, field="db", help=help_), *super().lints(x))

    def infer(self, x: FeatureType) -> FeatureType:
        require_sound(self, x)
        return x.with_(shape=(None, x.shape[1]), uniform=False)

    def time_map(self, u: tf.Tensor, sounds: tf.Tensor) -> TimeMap:
        start, end = loud_part(sounds[0], self.db, self.window, self.hop)  # lengths differ, so that it is a batch of one
        return TimeMap.of_shift(sounds, start, end - start)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        start, end = loud_part(image, self.db, self.window, self.hop)
        return image[start:end]
