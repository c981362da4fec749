"""Filter sound: low-pass, high-pass and band-pass."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, Span, bounded, within
from pipegen.ops.families.convolutions import ConvolutionTransform
from pipegen.ops.families.sounds import require_sound, unbounded
from pipegen.ops.lowering.linear import logarithms, uniform
from pipegen.ops.lowering.waveforms import frequencies, high_pass, low_pass, settling_frames
from pipegen.ops.lowering.windows import Whole
from pipegen.ops.step_bases import AmountTransform, FixedTransform, UniformTransform
from pipegen.types import FeatureType

Hz = Annotated[Number, bounded(1, 1e6)]
HzRange = Annotated[Span, within(1, 1e6)]


class FilterTransform(AmountTransform, ConvolutionTransform):
    """A filter with the magnitude of a Butterworth filter. It delays nothing."""

    cost = 18.0
    falling: ClassVar[str | None] = None  # the argument that is the cut-off of a low-pass
    rising: ClassVar[str | None] = None  # the argument that is the cut-off of a high-pass

    order: Annotated[int, Field(ge=1, le=16)] = 4
    """How steep it is: beyond a cut-off the amplitude falls by 6 dB an octave for each order."""

    def infer(self, x: FeatureType) -> FeatureType:
        rate = require_sound(self, x).rate
        for name, (_, highest) in self.ranges().items():
            if highest >= rate / 2:
                help_ = f"frequencies end at half the rate, {rate / 2:g} Hz; use a lower cut-off, or leave the step out"
                raise OpError("PG105", f"the `{name}` of `{self.op}` reaches {highest:g} Hz in sound of {rate} Hz", field=name, help=help_)
        return super().infer(x)

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(tf.cast(hz, tf.float32) for hz in self.amounts(u).values())

    def reach(self, *given: tf.Tensor) -> int:
        """The frames that the filter takes to settle."""
        lowest = min(low for low, _ in self.over_epochs().ranges().values())
        return settling_frames(lowest, self.order, self._rate)

    def transfer(self, length: Whole, *given: tf.Tensor) -> tf.Tensor:
        """The magnitudes for the cut-offs that are `given`, float32 `(n, 1, bins)`."""
        hz, cutoffs = frequencies(length, self._rate), dict(zip(self.ranges(), given, strict=True))
        parts = [(low_pass, self.falling), (high_pass, self.rising)]
        return reduce(mul, (response(hz, cutoffs[name], self.order) for response, name in parts if name is not None))[:, None]


class RandomFilterTransform(UniformTransform, FilterTransform):
    """A filter whose cut-offs are drawn, with all octaves as likely."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        parts = zip(tf.unstack(u, axis=-1), self.ranges().items(), strict=True)
        return {name: tf.exp(uniform(own, logarithms(bounds))) for own, (name, bounds) in parts}


class BandTransform(FilterTransform):
    """A high-pass and a low-pass above it."""

    rising = "low_hz"
    falling = "high_hz"

    @model_validator(mode="after")
    def _in_order(self) -> BandTransform:
        (_, low), (high, _) = self.ranges()["low_hz"], self.ranges()["high_hz"]
        if low >= high:
            raise ValueError(f"`low_hz` is below `high_hz`, but reaches {low:g}, and `high_hz` {high:g}")
        return self


class LowPass(FixedTransform, FilterTransform):
    """Keeps low frequencies: sound from behind a wall.

    A zero-phase filter in the frequency domain, whose magnitude is that of a Butterworth filter, 1 / sqrt(1 + (f / hz)^(2 order)): -3 dB at
    the cut-off. It delays nothing. With filters and `random_reverb` right before or behind it, it is one
    convolution if all act on every example.
    """

    op = "low_pass"
    examples = unbounded("low_pass: {hz: 4000}")
    falling = "hz"

    hz: Hz
    """The cut-off, in Hz."""


class RandomLowPass(RandomFilterTransform):
    """Keeps low frequencies of each sound, below a cut-off that is drawn: sound from behind a wall.

    A zero-phase filter in the frequency domain, whose magnitude is that of a Butterworth filter, 1 / sqrt(1 + (f / hz)^(2 order)): -3 dB at
    the cut-off. It delays nothing. With filters and `random_reverb` right before or behind it, it is one
    convolution if all act on every example.
    """

    op = "random_low_pass"
    examples = unbounded("random_low_pass: {hz: [1000, 6000]}", "random_low_pass: {hz: [500, 4000], order: 2, probability: 0.5}")
    falling = "hz"

    hz: HzRange
    """The range of the cut-off, in Hz; all octaves are as likely."""


class HighPass(FixedTransform, FilterTransform):
    """Keeps high frequencies: a small loudspeaker, or no rumble.

    A zero-phase filter in the frequency domain, whose magnitude is that of a Butterworth filter, 1 / sqrt(1 + (hz / f)^(2 order)): -3 dB at
    the cut-off. It delays nothing. With filters and `random_reverb` right before or behind it, it is one
    convolution if all act on every example.
    """

    op = "high_pass"
    examples = unbounded("high_pass: {hz: 80}")
    rising = "hz"

    hz: Hz
    """The cut-off, in Hz."""


class RandomHighPass(RandomFilterTransform):
    """Keeps high frequencies of each sound, above a cut-off that is drawn: a small loudspeaker.

    A zero-phase filter in the frequency domain, whose magnitude is that of a Butterworth filter, 1 / sqrt(1 + (hz / f)^(2 order)): -3 dB at
    the cut-off. It delays nothing. With filters and `random_reverb` right before or behind it, it is one
    convolution if all act on every example.
    """

    op = "random_high_pass"
    examples = unbounded("random_high_pass: {hz: [50, 500]}", "random_high_pass: {hz: [20, 2000], order: 2, probability: 0.5}")
    rising = "hz"

    hz: HzRange
    """The range of the cut-off, in Hz; all octaves are as likely."""


class BandPass(FixedTransform, BandTransform):
    """Keeps the frequencies between two cut-offs, such as those of a telephone.

    A zero-phase filter in the frequency domain, whose magnitude is that of a Butterworth high-pass at `low_hz` times that of a low-pass at
    `high_hz`, each of this order. It delays nothing. With filters and `random_reverb` right before or behind it, it is one
    convolution if all act on every example.
    """

    op = "band_pass"
    examples = unbounded("band_pass: {low_hz: 300, high_hz: 3400}")

    low_hz: Hz
    """The lower cut-off, in Hz."""
    high_hz: Hz
    """The upper cut-off, in Hz."""


class RandomBandPass(BandTransform, RandomFilterTransform):
    """Keeps the frequencies of each sound between two cut-offs that are drawn, as microphones, telephones and loudspeakers do.

    A zero-phase filter in the frequency domain, whose magnitude is that of a Butterworth high-pass at the lower cut-off times that of a
    low-pass at the upper one, each of this order. It delays nothing. With filters and `random_reverb` right before or behind it,
    it is one convolution if all act on every example.
    """

    op = "random_band_pass"
    examples = unbounded(
        "random_band_pass: {low_hz: [50, 500], high_hz: [2000, 7000]}",
        "random_band_pass: {low_hz: [300, 300], high_hz: [3000, 4000], order: 2, probability: 0.5}",
    )

    low_hz: HzRange
    """The range of the lower cut-off, in Hz, all of it below `high_hz`; all octaves are as likely."""
    high_hz: HzRange
    """The range of the upper cut-off, in Hz; all octaves are as likely."""
