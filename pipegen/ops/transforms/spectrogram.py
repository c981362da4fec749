"""`spectrogram`, `mel_spectrogram` and `mfcc`: spectra of sound, frame by frame."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.spectra import (
    WHISPER_RATE,
    Analysis,
    Centre,
    LogScale,
    Mel,
    MelNorm,
    MelScale,
    Outside,
    Preset,
    WindowFunction,
    cosines,
    default_log,
    defaults,
    power_of_2,
)
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.families.sounds import ANY_SOUND, SECOND, SoundTransform, require_sound
from pipegen.ops.kinds.audio import Sound
from pipegen.ops.step_bases import UnconditionalTransform
from pipegen.ops.traits import Example, Traits
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType, Interval

Length = Annotated[int, Field(ge=1, le=1 << 20)]
Milliseconds = Annotated[float, Field(gt=0, le=60_000)]


class FramedTransform(UnconditionalTransform, SoundTransform):
    """Cuts sound into frames that overlap, weights each by a window, and computes its Fourier transform.

    A frame whose middle or end lies at a sample becomes a step: `(frames, channels)` become `(steps, bands, channels)`.
    """

    lengths: ClassVar[tuple[tuple[str, str], ...]] = (("window", "window_ms"), ("hop", "hop_ms"))

    window: Length | None = None
    """The length of the window in samples; or `window_ms`. By default 25 ms."""
    window_ms: Milliseconds | None = None
    """The length of the window in milliseconds, rounded down to samples."""
    hop: Length | None = None
    """The distance from one window to the next in samples; or `hop_ms`. By default 10 ms."""
    hop_ms: Milliseconds | None = None
    """The distance from one window to the next in milliseconds, rounded down to samples."""
    fft: Length | None = None
    """The length of the Fourier transform in samples, at least that of the window, which is followed by zeros: it has `fft` / 2 + 1
    frequencies. By default the next power of 2."""
    window_function: WindowFunction | None = None
    """The weights of the samples of a window: `hann` (the default), `hamming`, `blackman`, `rectangular`, or Kaldi's `povey`."""
    periodic: bool | None = None
    """Whether the window is periodic, as in librosa and PyTorch, which is the default; with false it is symmetric, as in Kaldi: the last
    weight is the first one, too. `povey` always is symmetric."""
    power: Literal[1, 2] | None = None
    """What is kept of the complex number X of a frequency: |X| with 1, |X|² with 2, the default."""
    center: Centre | None = None
    """Whether the first window has its middle at the first sample, so that a sound of n samples has 1 + n / hop steps, and the windows at
    both ends reach outside. With `hop` its middle is that of the first hop: n / hop steps, rounded, as in Kaldi with `--snip-edges=false`.
    By default windows lie inside."""
    pad: Outside | None = None
    """What is outside the sound, for `center`: silence (`zero`, the default), the sound reflected without repeating its last sample
    (`reflect`) or with it (`symmetric`), or its last sample (`edge`)."""
    frame: Literal["window", "fft"] | None = None
    """What is counted and centred where `fft` is longer than the window: the `window`, the default; or frames of `fft` samples with the
    window in their middle, as librosa and PyTorch do."""
    drop_last: bool | None = None
    """Whether the last step is left out, as Whisper does."""
    pre_emphasis: Annotated[float, Field(ge=0, le=1)] | None = None
    """The share of the sample before that is subtracted from each sample of a window, and of itself from the first; 0 by default: 0.97
    raises high frequencies."""
    remove_mean: bool | None = None
    """Whether the mean of each window is subtracted from its samples before all else."""
    full_scale: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """What a sample of 1.0 counts as, 1 by default: 32768 gives the numbers of samples of 16 bits."""

    _rate: int = PrivateAttr(default=0)  # in Hz, once it is known

    @model_validator(mode="after")
    def _one_unit(self) -> FramedTransform:
        for samples, milliseconds in self.lengths:
            if getattr(self, samples) is not None and getattr(self, milliseconds) is not None:
                raise ValueError(f"give either `{samples}`, in samples, or `{milliseconds}`")
        return self

    def complete(self) -> dict[str, Any]:
        """Returns all arguments, with the defaults of those that are left out."""
        given = {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
        known = dict(defaults(given.get("preset")))
        for pair in self.lengths:  # a length in one unit replaces the default in the other
            if any(name in given for name in pair):
                known = {name: value for name, value in known.items() if name not in pair}
        return known | given

    def meaning(self) -> dict[str, Any]:
        own = super().meaning()
        found = {name: own[name] if own[name] is not None else value for name, value in self.complete().items() if name in own}
        return {**own, **found, "preset": None} if "preset" in own else {**own, **found}

    def on(self, x: FeatureType) -> Transform:
        step = self.model_copy()
        step._rate = x.details.rate if isinstance(x.details, Sound) else 0
        return step

    def analysis(self, rate: int) -> Analysis:
        """Returns the lengths in samples at a rate in Hz."""
        found = Analysis.of(self.complete(), rate)
        if found.window > found.fft:
            help_ = (write(f"fft: {power_of_2(found.window)}", "arguments"), "or use a shorter window")
            message = f"a window of {found.window:,} samples does not fit the `fft` of {found.fft:,}"
            raise OpError("PG105", message, field="fft" if self.fft is not None else None, help=help_)
        return found

    def infer(self, x: FeatureType) -> FeatureType:
        rate = require_sound(self, x).rate
        analysis = self.analysis(rate)
        frames, needed = x.shape[0], analysis.needed()
        if frames is not None and frames < needed:
            help_ = write(f"crop_or_pad: {{seconds: {needed / rate:.3g}}}", "before", "put {} or longer before it, or use `center: true`")
            raise OpError("PG206", f"`{self.op}` needs a sound of {needed:,} samples or more, and gets {frames:,}", help=help_)
        steps = None if frames is None else analysis.steps(frames)
        values, holds = self.output(x, analysis)
        details = replace(x.details, hop=float(analysis.hop), holds=holds)  # type: ignore[type-var]
        return x.with_(shape=(steps, self.width(analysis), x.shape[1]), interval=values, details=details, dtype="float32", centred=False)

    def output(self, x: FeatureType, analysis: Analysis) -> tuple[Interval | None, str]:
        """Returns the interval of the values, and what they are, as in `Sound.holds`."""
        raise NotImplementedError

    def bounds(self, x: FeatureType, analysis: Analysis) -> Interval | None:
        """Returns the interval of the spectrogram."""
        if x.interval is None:
            return None
        return Interval(0.0, analysis.loudest(max(abs(x.interval.low), abs(x.interval.high))))

    def traits(self, x: FeatureType) -> Traits:
        found = super().traits(x)
        if not isinstance(x.details, Sound):  # which `infer` rejects
            return found
        analysis = Analysis.of(self.complete(), x.details.rate)
        return replace(found, weight=self.step_ns(analysis) / (Neighbourhood.ns_per_value * self.width(analysis)))

    def width(self, analysis: Analysis) -> int:
        """Returns the number of bands of the output."""
        raise NotImplementedError

    def step_ns(self, analysis: Analysis) -> float:
        """Estimates nanoseconds of one core for a step of one channel."""
        passes = 0.4 + 0.5 * analysis.remove_mean + 0.3 * (analysis.pre_emphasis > 0)
        return passes * analysis.window + 0.12 * analysis.fft * math.log2(max(2, analysis.fft))


class Spectrogram(FramedTransform):
    """The spectrogram of sound: the strength of each frequency from 0 to half the rate in each window.

    `(frames, channels)` become `(steps, fft / 2 + 1, channels)`. `mel_spectrogram` sums frequencies into bands; `log` after it computes
    the logarithm.
    """

    op = "spectrogram"
    examples = (
        Example("spectrogram: {window_ms: 25, hop_ms: 10}", SECOND, "float32[98×257×1] in [0, 40000]"),
        Example("spectrogram: {window: 400, hop: 160, fft: 400, power: 1, center: true}", SECOND, "float32[101×201×1] in [0, 200]"),
    )

    def width(self, analysis: Analysis) -> int:
        return analysis.bins

    def output(self, x: FeatureType, analysis: Analysis) -> tuple[Interval | None, str]:
        return self.bounds(x, analysis), HOLDS[analysis.power]

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.spectra import of_channels, spectra_of  # not every spec needs it

        return of_channels(spectra_of(images, self.analysis(self._rate)), int(images.shape[2]))


HOLDS = {1: "magnitudes", 2: "powers"}  # what |X| to a power is, as in `Sound.holds`
Bands = Annotated[int, Field(ge=1, le=4096)]


class MelTransform(FramedTransform):
    """A spectrogram whose frequencies are summed into bands that are evenly spaced on a mel scale."""

    bands: Bands | None = None
    """The number of bands, 80 by default."""
    low_hz: Annotated[float, Field(ge=0)] | None = None
    """Where the lowest band begins, in Hz, 0 by default."""
    high_hz: Annotated[float, Field(gt=0)] | None = None
    """Where the highest band ends, in Hz; by default half the rate."""
    scale: MelScale | None = None
    """The mel scale: `htk` (2595 · log10(1 + Hz / 700), the default), `slaney` (linear up to 1000 Hz, then logarithmic), or `kaldi`: that
    of HTK with filters that are straight in mel, not in Hz, and without the highest frequency."""
    norm: MelNorm | None = None
    """How much a band counts: filters with a top of 1 (`none`, the default), or of 2 / (their width in Hz) (`slaney`)."""

    def mel(self, x: FeatureType, analysis: Analysis) -> Mel:
        """Returns the filters; `PG105` if their frequencies are out of bounds."""
        rate, given = require_sound(self, x).rate, self.complete()
        low, high = given["low_hz"], given.get("high_hz", rate / 2)
        if high > rate / 2:
            help_ = f"leave it out: it is then {rate / 2:g} Hz"
            raise OpError(
                "PG105", f"a rate of {rate:,} Hz holds frequencies up to {rate / 2:g} Hz, not {high:g}", field="high_hz", help=help_
            )
        if low >= high:
            raise OpError("PG105", f"the bands from {low:g} to {high:g} Hz hold no frequency", field="low_hz")
        return Mel(given["bands"], low, high, given["scale"], given["norm"], analysis.fft, rate)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        mel = self.mel(x, self.analysis(require_sound(self, x).rate))
        if not mel.empty():
            return super().lints(x)
        help_ = "use fewer `bands`, or a longer `fft`"
        message = f"{mel.empty()} of the {mel.bands} bands of `{self.op}` hold none of the {mel.fft // 2 + 1} frequencies, and are always 0"
        return (OpError("PG510", message, field="bands", help=help_), *super().lints(x))

    def mel_bounds(self, x: FeatureType, analysis: Analysis) -> Interval | None:
        """Returns the interval of the bands."""
        own, mel = self.bounds(x, analysis), self.mel(x, analysis)
        return None if own is None else own.affine(mel.largest(), 0.0)

    def summed(self, sounds: tf.Tensor) -> tf.Tensor:
        """Computes the bands of each channel, `(n · channels, steps, bands)`."""
        from pipegen.ops.lowering.spectra import spectra_of

        analysis = self.analysis(self._rate)
        return spectra_of(sounds, analysis, self.mel(SECOND.with_(details=Sound(self._rate)), analysis))

    def width(self, analysis: Analysis) -> int:
        return int(self.complete()["bands"])

    def step_ns(self, analysis: Analysis) -> float:
        return super().step_ns(analysis) + 3.0 * self.complete()["bands"]


NO_LOG: Literal["none"] = "none"


class MelSpectrogram(MelTransform):
    """The mel spectrogram of sound: the strength of bands of frequencies in each window, as most models of sound take it.

    `(frames, channels)` become `(steps, bands, channels)`. `preset` sets every argument as a library or a model does; arguments beside it
    replace single ones. `whisper` and `kaldi` include a logarithm, after others add `log`.

    | argument | without preset | `librosa` | `torchaudio` | `whisper` | `kaldi` |
    | --- | --- | --- | --- | --- | --- |
    | `bands` | 80 | 128 | 128 | 80 | 23 |
    | `window` | 25 ms | `fft` | `fft` | `fft` | 25 ms |
    | `hop` | 10 ms | 512 | half the window | 160 | 10 ms |
    | `fft` | next power of 2 | 2048 | 400 | 400 | next power of 2 |
    | `window_function` | `hann` | `hann` | `hann` | `hann` | `povey` |
    | `periodic` | true | true | true | true | false |
    | `power` | 2 | 2 | 2 | 2 | 2 |
    | `center` | false | true | true | true | false |
    | `pad` | `zero` | `zero` | `reflect` | `reflect` | `symmetric` |
    | `frame` | `window` | `fft` | `fft` | `fft` | `window` |
    | `drop_last` | false | false | false | true | false |
    | `pre_emphasis` | 0 | 0 | 0 | 0 | 0.97 |
    | `remove_mean` | false | false | false | false | true |
    | `full_scale` | 1 | 1 | 1 | 1 | 32768 |
    | `low_hz` | 0 | 0 | 0 | 0 | 20 |
    | `high_hz` | rate / 2 | rate / 2 | rate / 2 | rate / 2 | rate / 2 |
    | `scale` | `htk` | `slaney` | `htk` | `slaney` | `kaldi` |
    | `norm` | `none` | `slaney` | `none` | `slaney` | `none` |
    | `log` | `none` | `none` | `none` | base 10, floor 1e-10, top 8, scale 0.25, shift 1 | base e, floor 2⁻²³ |

    They are those of `librosa.feature.melspectrogram` 0.10 and 0.11, `torchaudio.transforms.MelSpectrogram`, `log_mel_spectrogram` of
    OpenAI's Whisper, and Kaldi's `compute-fbank-feats` without dither; `center: hop` is its `--snip-edges=false`, and `random_noise: {rms:
    [-90.3, -90.3]}` before the step is dither, in training.
    """

    op = "mel_spectrogram"
    examples = (
        Example("mel_spectrogram: {bands: 64, window_ms: 25, hop_ms: 10}", SECOND, "float32[98×64×1] in [0, 414833]"),
        Example("mel_spectrogram: {preset: whisper}", ANY_SOUND, "float32[?×80×1] in [-1.5, 1.75831]"),
    )

    preset: Preset | None = None
    """The library or the model whose defaults hold: `librosa`, `torchaudio`, `whisper` or `kaldi`."""
    log: LogScale | Literal["none"] | None = None
    """The logarithm, with the arguments of the step `log`; or `none`, the default without a preset."""

    def log_scale(self) -> LogScale | None:
        """Returns the logarithm that is included, if any."""
        given = self.complete().get("log")
        return None if given in (None, NO_LOG) else given if isinstance(given, LogScale) else LogScale(**given)

    def meaning(self) -> dict[str, Any]:
        log = self.log_scale()
        return {**super().meaning(), "log": NO_LOG if log is None else log.model_dump(mode="json")}

    def output(self, x: FeatureType, analysis: Analysis) -> tuple[Interval | None, str]:
        if self.preset == "whisper" and require_sound(self, x).rate != WHISPER_RATE:
            help_ = f"give the feature `rate: {WHISPER_RATE}`, which resamples files"
            message = f"Whisper takes sound of {WHISPER_RATE:,} Hz, and this has {require_sound(self, x).rate:,} Hz"
            raise OpError("PG105", message, field="preset", help=help_)
        values, log = self.mel_bounds(x, analysis), self.log_scale()
        if log is None:
            return values, HOLDS[analysis.power]
        return log.range_of(values, analysis.power), "logarithms"

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.spectra import logarithm, of_channels

        bands, log = of_channels(self.summed(images), int(images.shape[2])), self.log_scale()
        return bands if log is None else logarithm(bands, log, self.complete()["power"])

    def step_ns(self, analysis: Analysis) -> float:
        return super().step_ns(analysis) + (1.5 * self.complete()["bands"] if self.log_scale() is not None else 0.0)


class Mfcc(MelTransform):
    """Mel frequency cepstral coefficients: the first numbers of the cosine transform (orthonormal DCT-II) of a logarithmic mel spectrogram.

    `(frames, channels)` become `(steps, coefficients, channels)`. `preset` sets every argument as for `mel_spectrogram`, and

    | argument | without preset | `librosa` | `torchaudio` | `kaldi` |
    | --- | --- | --- | --- | --- |
    | `coefficients` | 13 | 20 | 40 | 13 |
    | `log` | base e, floor 1e-10 | dB, floor 1e-10, top 80 | dB, floor 1e-10, top 80 | base e, floor 2⁻²³ |
    | `lifter` | 0 | 0 | 0 | 22 |

    Kaldi's program replaces the first coefficient by the energy of the frame unless it has `--use-energy=false`; here it stays.
    """

    op = "mfcc"
    examples = (
        Example("mfcc: {coefficients: 13, bands: 40}", SECOND, "float32[98×13×1]"),
        Example("mfcc: {preset: kaldi}", ANY_SOUND, "float32[?×13×1]"),
    )

    preset: Literal["librosa", "torchaudio", "kaldi"] | None = None
    """The library whose defaults hold: `librosa`, `torchaudio` or `kaldi`."""
    coefficients: Bands | None = None
    """How many numbers are kept, 13 by default."""
    log: LogScale | None = None
    """The logarithm, with the arguments of the step `log`."""
    lifter: Annotated[float, Field(ge=0, le=1000)] | None = None
    """With L above 0, coefficient i is multiplied by 1 + L / 2 · sin(π i / L), so that all have a similar size; 0 by default."""

    def log_scale(self) -> LogScale:
        """Returns the logarithm before the cosine transform."""
        return self.log or default_log(self.preset)

    def meaning(self) -> dict[str, Any]:
        return {**super().meaning(), "log": self.log_scale().model_dump(mode="json")}

    def output(self, x: FeatureType, analysis: Analysis) -> tuple[Interval | None, str]:
        given = self.complete()
        self.mel(x, analysis)
        if given["coefficients"] > given["bands"]:
            message = f"{given['bands']} bands have no more than {given['bands']} coefficients, not {given['coefficients']}"
            raise OpError("PG105", message, field="coefficients", help="use fewer `coefficients`, or more `bands`")
        return None, "coefficients"

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.spectra import logarithm, of_channels, transformed

        known, channels = self.complete(), int(images.shape[2])
        bands = self.summed(images)
        together = tf.reshape(bands, [-1, channels, *tf.unstack(tf.shape(bands)[1:])]) if channels > 1 else bands
        values = tf.reshape(logarithm(together, self.log_scale(), known["power"]), tf.shape(bands))
        rows = cosines(known["bands"], known["coefficients"], known["lifter"])
        return of_channels(transformed(values, rows), channels)

    def width(self, analysis: Analysis) -> int:
        return int(self.complete()["coefficients"])

    def step_ns(self, analysis: Analysis) -> float:
        given = self.complete()
        return super().step_ns(analysis) + 1.5 * given["bands"] + 0.05 * given["bands"] * given["coefficients"]
