"""Let sound reverberate, as in a room."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, within
from pipegen.ops.families.convolutions import ConvolutionTransform
from pipegen.ops.families.sound_files import SoundFilesTransform, whole_sounds
from pipegen.ops.families.sounds import unbounded
from pipegen.ops.lowering.random import key_of
from pipegen.ops.lowering.waveforms import decaying_noise, direct_first, sizes, spectra
from pipegen.ops.lowering.windows import Whole, pick
from pipegen.ops.step_bases import UniformTransform
from pipegen.types import FeatureType


class RandomReverb(UniformTransform, SoundFilesTransform, ConvolutionTransform):
    """Lets each sound reverberate: convolves it with the impulse response of a room, in the frequency domain. The length stays: what
    reverberates after a sound's end is cut off. With filters right before or behind it, it is one convolution if
    all act on every example.

    With `seconds`, a room is made up: the response is the direct sound, and after it normal noise that decays by 60 dB in the reverberation
    time (RT60), one for all channels. The time, and the power of the direct sound relative to the noise, are drawn uniformly. The noise
    depends only on the sound's draws and on its place (Threefry-2x32).

    With `files`, one of some measured responses is drawn, each as likely. It counts from its largest sample on, which is the direct sound,
    so that nothing is delayed.

    Responses have the energy 1, so that sounds stay about as loud.
    """

    op = "random_reverb"
    cost = 27.0
    draws = 4
    examples = unbounded("random_reverb: {seconds: [0.1, 0.5]}", "random_reverb: {seconds: [0.3, 1], direct_db: [5, 15], probability: 0.5}")

    seconds: Annotated[Span | None, within(0.001, 20)] = None
    """The range of the reverberation time, in seconds: 0.3 is a living room, 1 a lecture hall, 3 a church."""
    direct_db: Annotated[Span, within(-60, 100)] = (0.0, 10.0)
    """The range of the power of the direct sound relative to its reverberation, in decibels: a speaker is near at 10, far away at -5."""

    @model_validator(mode="after")
    def _one_kind(self) -> RandomReverb:
        if (self.seconds is None) == (self.files is None):
            raise ValueError("give either `seconds`, for made-up rooms, or `files` of impulse responses")
        if self.files is not None and "direct_db" in self.model_fields_set:
            raise ValueError("`direct_db` is for made-up rooms; leave it out beside `files`")
        return self

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        longest = self.largest("seconds") if self.files is None else 0.0
        if longest <= 8:
            return super().lints(x)
        message = f"the `seconds` of `{self.op}` reach {longest:g}, longer than in a cathedral"
        return (OpError("PG510", message, field="seconds", help="0.1 to 1 are rooms, 3 is a church"), *super().lints(x))

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`seconds` and `direct_db`; or the number of the `file`, in an order that depends on their content."""
        return super().drawn(u) if self.files is None else {"file": pick(u[..., 0], len(self.paths()) - 1)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        if self.files is None:
            return key_of(u[:, 2:4]), drawn["seconds"], drawn["direct_db"]
        held = self.held(width, direct_first)
        return (whole_sounds(held, drawn["file"]),)

    def reach(self, *given: tf.Tensor) -> Whole:
        return self._taps() - 1 if self.files is None else sizes(given[0])[0] - 1

    def transfer(self, length: Whole, *given: tf.Tensor) -> tf.Tensor:
        if self.files is not None:
            return spectra(given[0], length)
        key, seconds, direct_db = given
        return spectra(decaying_noise(key, seconds, self._taps(), self._rate, direct_db), length)

    def _taps(self) -> int:
        """The frames of the responses of made-up rooms."""
        return max(2, math.ceil(self.largest("seconds") * self._rate))
