"""Spectrograms as numbers: frames, windows, bands of mel filters, and the defaults of the libraries that models were trained with.

Everything here is plain Python, in float64: `infer` needs the number of steps and the ranges before any array library is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.frozen import dataclass
from pipegen.ops.arguments.magnitudes import Number, checked
from pipegen.ops.model import Model
from pipegen.types import Interval

WindowFunction = Literal["hann", "hamming", "blackman", "povey", "rectangular"]
Outside = Literal["zero", "reflect", "symmetric", "edge"]
Centre = bool | Literal["hop"]
MelScale = Literal["htk", "slaney", "kaldi"]
MelNorm = Literal["none", "slaney"]
Preset = Literal["librosa", "torchaudio", "whisper", "kaldi"]

_LIBRARY_LOG = {"base": "db", "floor": 1e-10, "top": 80.0}
_PLAIN: dict[str, Any] = {
    "window_ms": 25.0, "hop_ms": 10.0, "window_function": "hann", "periodic": True, "power": 2, "center": False, "pad": "zero",
    "frame": "window", "drop_last": False, "pre_emphasis": 0.0, "remove_mean": False, "full_scale": 1.0, "bands": 80, "low_hz": 0.0,
    "scale": "htk", "norm": "none", "log": None, "coefficients": 13, "lifter": 0.0,
}  # fmt: skip
_PRESETS: dict[str, dict[str, Any]] = {
    "librosa": {
        "fft": 2048, "hop": 512, "center": True, "frame": "fft", "bands": 128, "scale": "slaney", "norm": "slaney", "coefficients": 20,
    },
    "torchaudio": {"fft": 400, "center": True, "pad": "reflect", "frame": "fft", "bands": 128, "coefficients": 40},
    "whisper": {
        "fft": 400, "hop": 160, "center": True, "pad": "reflect", "frame": "fft", "drop_last": True, "scale": "slaney", "norm": "slaney",
        "log": {"base": 10, "floor": 1e-10, "top": 8.0, "scale": 0.25, "shift": 1.0},
    },
    "kaldi": {
        "window_ms": 25.0, "hop_ms": 10.0, "window_function": "povey", "periodic": False, "pad": "symmetric", "pre_emphasis": 0.97,
        "remove_mean": True, "full_scale": 32768.0, "bands": 23, "low_hz": 20.0, "scale": "kaldi",
        "log": {"base": "e", "floor": 2.0**-23}, "lifter": 22.0,
    },
}  # fmt: skip
_IN_SAMPLES = ("fft", "hop")  # what a preset gives in samples leaves no room for milliseconds of the plain defaults
WHISPER_RATE = 16000  # samples a second of the sound that Whisper takes

Filters = tuple[tuple[tuple[int, float], ...], ...]
"""For each band, the bins with a weight above 0 and their weights."""


def defaults(preset: str | None) -> Mapping[str, Any]:
    """Returns the value of each argument that a step leaves out: those of a preset, else pipegen's own.

    `fft`, `window` and `hop` may be missing; `Analysis.of` derives them from the others.
    """
    if preset is None:
        return _PLAIN
    given = _PRESETS[preset]
    kept = {k: v for k, v in _PLAIN.items() if k not in ("window_ms", "hop_ms")} if set(_IN_SAMPLES) & set(given) else _PLAIN
    return {**kept, **given}


def default_log(preset: str | None) -> LogScale:
    """Returns the logarithm before the cosine transform of `mfcc`: in dB for librosa and torchaudio, else natural."""
    return LogScale(**(defaults(preset)["log"] or (_LIBRARY_LOG if preset is not None else {})))


Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _not_0(value: float, name: str) -> None:
    if value == 0:
        raise ValueError(f"`{name}: 0` makes every value the same")


class LogScale(Model):
    """A logarithm: y = scale · log(max(x, floor)) + shift, or of x + offset."""

    base: Literal["e", 10, "db"] = "e"
    """The base, `e` or `10`; or `db` for decibels, which are 10 · log10 of a power, or 20 · log10 of a magnitude."""
    floor: Above0 | None = None
    """The least value: smaller ones are raised to it before the logarithm. By default 1e-10, of magnitudes (`power: 1`) 1e-5."""
    offset: Above0 | None = None
    """What is added to each value before the logarithm, instead of a `floor`."""
    top: Above0 | None = None
    """The range below the largest value of each example that is kept, in the units of the logarithm, such as 80 dB: smaller values are
    raised to its lower end."""
    scale: Annotated[Number, checked(_not_0)] = 1.0
    """The factor of the logarithm."""
    shift: Number = 0.0
    """What is added after that."""

    @model_validator(mode="after")
    def _one_form(self) -> LogScale:
        if self.floor is not None and self.offset is not None:
            raise ValueError("give either `floor` or `offset`: both keep the logarithm of 0 finite")
        return self

    def lowest(self, power: int) -> float:
        """The least value whose logarithm is taken, of |X| to a power."""
        return self.floor or self.offset or (1e-10 if power == 2 else 1e-5)

    def _natural(self, power: int) -> float:
        """What one natural logarithm is in the units of the base."""
        return {"e": 1.0, 10: 1.0 / math.log(10.0), "db": 20.0 / power / math.log(10.0)}[self.base]

    def unit(self, power: int) -> float:
        """The factor of the natural logarithm."""
        return self.scale * self._natural(power)

    def share_of_top(self, power: int) -> float:
        """The share of the largest value that lies `top` below it."""
        return math.exp(-(self.top or 0.0) / self._natural(power))

    def range_of(self, given: Interval | None, power: int) -> Interval | None:
        """Bounds the results for values in an interval."""
        if given is None:
            return None
        ends = (math.log(max(end + (self.offset or 0.0), self.lowest(power))) for end in (given.low, given.high))
        return Interval(*ends).affine(self.unit(power), self.shift)


@dataclass(frozen=True, slots=True)
class Analysis:
    """How sound is cut into frames, and what is computed of each. Lengths are in samples.

    Attributes:
        window: Samples that have a weight above 0.
        hop: Samples from one frame to the next.
        fft: Length of the Fourier transform, at least `window`; the rest is zeros.
        frame: Samples of a frame, by which frames are counted: `window`, or `fft` with the window in its middle.
        window_function: The weights.
        periodic: Whether the last weight is the one before a period ends, not the first one again.
        power: 2 for |X|², 1 for |X|.
        center: Whether the middle of the first frame is the first sample; with `hop`, the middle of the first hop.
        pad: What is outside the sound, for `center`.
        drop_last: Whether the last frame is left out.
        pre_emphasis: The share of the sample before that is subtracted from each sample.
        remove_mean: Whether the mean of each frame is subtracted first.
        full_scale: What a sample of 1.0 counts as.
    """

    window: int
    hop: int
    fft: int
    frame: int
    window_function: WindowFunction
    periodic: bool
    power: int
    center: Centre
    pad: Outside
    drop_last: bool
    pre_emphasis: float
    remove_mean: bool
    full_scale: float

    @classmethod
    def of(cls, given: Mapping[str, Any], rate: int) -> Analysis:
        """Derives it from complete arguments, for a rate in Hz. The window may be longer than `fft`, which callers reject."""

        def length(name: str, otherwise: int) -> int:
            found = given.get(name) or (_samples(given[f"{name}_ms"], rate) if given.get(f"{name}_ms") is not None else otherwise)
            return int(found)

        window = length("window", given.get("fft", 0))
        hop, fft = length("hop", max(1, window // 2)), int(given.get("fft") or power_of_2(window))
        same = ("window_function", "periodic", "power", "center", "pad", "drop_last", "pre_emphasis", "remove_mean", "full_scale")
        return cls(window, hop, fft, fft if given["frame"] == "fft" else window, **{name: given[name] for name in same})

    @property
    def bins(self) -> int:
        """Frequencies from 0 to half the rate."""
        return self.fft // 2 + 1

    @property
    def before(self) -> int:
        """Samples outside the sound that the first window reads; if below 0, samples of the sound before it."""
        middle = self.hop // 2 if self.center == "hop" else 0
        return (self.frame // 2 - middle if self.center else 0) - (self.frame - self.window) // 2

    def steps(self, frames: Any) -> Any:
        """Counts the steps of `frames` samples, an int or an integer tensor; not above 0 if they are too few."""
        return (frames + self._around) // self.hop - self.drop_last

    def needed(self) -> int:
        """Counts the samples of the shortest sound that has a step."""
        return max(1, self.hop * (1 + self.drop_last) - self._around)

    @property
    def _around(self) -> int:
        """The samples by which the steps, each of a hop, exceed the sound."""
        return self.hop // 2 if self.center == "hop" else self.hop + (self.frame // 2 * 2 if self.center else 0) - self.frame

    def weights(self) -> tuple[float, ...]:
        """Computes the weights of the window's samples."""
        return weights(self.window_function, self.window, periodic=self.periodic)

    def loudest(self, largest: float) -> float:
        """Bounds the values of a spectrogram of samples up to `largest`."""
        gain = self.full_scale * (1.0 + self.pre_emphasis) * (2.0 if self.remove_mean else 1.0)
        return float((largest * gain * math.fsum(map(abs, self.weights()))) ** self.power)


def power_of_2(length: int) -> int:
    """Returns the least power of 2 that is not below a length."""
    return 1 << (length - 1).bit_length()


def _samples(milliseconds: float, rate: int) -> int:
    """Whole samples, rounded down as Kaldi does, but not below 1."""
    return max(1, math.floor(round(milliseconds * rate / 1000.0, 6)))


@cache
def weights(name: WindowFunction, length: int, *, periodic: bool = True) -> tuple[float, ...]:
    """Computes the weights of a window. They are `periodic`, as for spectra of consecutive frames, or symmetric, as in Kaldi; those of
    `povey`, Hann's window to the power of 0.85, always are symmetric."""
    period = length if periodic and name != "povey" else length - 1
    turns = [2.0 * math.pi * i / max(period, 1) for i in range(length)]
    if name == "hamming":
        return tuple(0.54 - 0.46 * math.cos(t) for t in turns)
    if name == "blackman":
        return tuple(0.42 - 0.5 * math.cos(t) + 0.08 * math.cos(2.0 * t) for t in turns)
    if name == "rectangular" or length == 1:
        return (1.0,) * length
    hann = [max(0.0, 0.5 - 0.5 * math.cos(t)) for t in turns]
    return tuple(w**0.85 for w in hann) if name == "povey" else tuple(hann)


def _to_htk(hz: float) -> float:
    return 2595.0 * math.log10(1.0 + hz / 700.0)


def _from_htk(mel: float) -> float:
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


_BREAK_HZ, _BREAK_MEL, _LOG_STEP = 1000.0, 15.0, math.log(6.4) / 27.0  # of Slaney's scale: linear up to here, then logarithmic


def _to_slaney(hz: float) -> float:
    return hz * 3.0 / 200.0 if hz < _BREAK_HZ else _BREAK_MEL + math.log(hz / _BREAK_HZ) / _LOG_STEP


def _from_slaney(mel: float) -> float:
    return mel * 200.0 / 3.0 if mel < _BREAK_MEL else _BREAK_HZ * math.exp(_LOG_STEP * (mel - _BREAK_MEL))


_SCALES: dict[MelScale, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "htk": (_to_htk, _from_htk),
    "slaney": (_to_slaney, _from_slaney),
    "kaldi": (_to_htk, _from_htk),
}
"""From Hz to mel, and back. HTK's and Slaney's (Auditory Toolbox, 1998) are those of librosa; Kaldi's is HTK's."""


@dataclass(frozen=True, slots=True)
class Mel:
    """Triangular filters, evenly spaced on a mel scale from `low_hz` to `high_hz`, on the bins of a Fourier transform of length `fft`.

    A triangle is straight in Hz, for the scale `kaldi` in mel, and its top is 1, or with the norm `slaney` 2 / (its width in Hz). With
    `kaldi` the highest bin counts for no band.
    """

    bands: int
    low_hz: float
    high_hz: float
    scale: MelScale
    norm: MelNorm
    fft: int
    rate: int

    def edges(self) -> tuple[float, ...]:
        """Lists the ends and the middles of the triangles in Hz: `bands` + 2 frequencies, ascending."""
        to, back = _SCALES[self.scale]
        low, high = to(self.low_hz), to(self.high_hz)
        return tuple(back(low + (high - low) * i / (self.bands + 1)) for i in range(self.bands + 2))

    def filters(self) -> Filters:
        """Computes the weights of the bins."""
        return _filters(self)

    def empty(self) -> int:
        """Counts the bands in which no bin lies, so that they are always 0."""
        return sum(not own for own in self.filters())

    def largest(self) -> float:
        """Returns the largest sum of the weights of a band."""
        return max(math.fsum(weight for _, weight in own) for own in self.filters())


@cache
def _filters(mel: Mel) -> Filters:
    edges, kaldi = mel.edges(), mel.scale == "kaldi"
    hz = mel.rate / mel.fft
    bins = mel.fft // 2 + (0 if kaldi else 1)
    place: Callable[[float], float] = _to_htk if kaldi else float
    found: list[tuple[tuple[int, float], ...]] = []
    for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
        first, last = max(0, math.floor(low / hz)), min(bins - 1, math.ceil(high / hz))
        top = 2.0 / (high - low) if mel.norm == "slaney" else 1.0
        left, centre, right = map(place, (low, middle, high))
        own = []
        for number in range(first, last + 1):
            at = place(number * hz)
            weight = min((at - left) / (centre - left), (right - at) / (right - centre))
            if weight > 0.0:
                own.append((number, weight * top))
        found.append(tuple(own))
    return tuple(found)


@cache
def cosines(bands: int, coefficients: int, lifter: float = 0.0) -> tuple[tuple[float, ...], ...]:
    """Computes the orthonormal cosine transform (DCT-II) from `bands` to the first `coefficients`, as rows of `bands`; with a `lifter` L
    above 0, coefficient i is multiplied by 1 + L/2 · sin(π i / L), as HTK and Kaldi do."""
    found = []
    for i in range(coefficients):
        size = math.sqrt((1.0 if i == 0 else 2.0) / bands)
        lifted = size * (1.0 + lifter / 2.0 * math.sin(math.pi * i / lifter) if lifter else 1.0)
        found.append(tuple(lifted * math.cos(math.pi * i * (b + 0.5) / bands) for b in range(bands)))
    return tuple(found)
