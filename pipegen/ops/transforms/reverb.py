"""Let sound reverberate, as in a room."""

from __future__ import annotations

import math
from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, within
from pipegen.ops.families.sounds import SoundTransform, unbounded
from pipegen.ops.lowering.random import key_of
from pipegen.ops.lowering.waveforms import convolved, decaying_noise
from pipegen.ops.step_bases import UniformTransform
from pipegen.types import FeatureType, Interval


class RandomReverb(UniformTransform, SoundTransform):
    """Lets each sound reverberate: convolves it with the impulse response of a made-up room, one for all channels.

    The response is the direct sound, and after it normal noise that decays by 60 dB in the reverberation time (RT60). The time, and the
    power of the direct sound relative to the noise, are drawn uniformly. The response has the energy 1, so that sounds stay about as loud.
    The length stays: what reverberates after a sound's end is cut off.

    The noise depends only on the sound's draws and on its place (Threefry-2x32). The convolution is in the frequency domain.
    """

    op = "random_reverb"
    cost = 10.0
    draws = 4
    examples = unbounded("random_reverb: {seconds: [0.1, 0.5]}", "random_reverb: {seconds: [0.3, 1], direct_db: [5, 15], probability: 0.5}")

    seconds: Annotated[Span, within(0.001, 20)]
    """The range of the reverberation time, in seconds: 0.3 is a living room, 1 a lecture hall, 3 a church."""
    direct_db: Annotated[Span, within(-60, 100)] = (0.0, 10.0)
    """The range of the power of the direct sound relative to its reverberation, in decibels: a speaker is near at 10, far away at -5."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        longest = self.largest("seconds")
        if longest <= 8:
            return super().lints(x)
        message = f"the `seconds` of `{self.op}` reach {longest:g}, longer than in a cathedral"
        return (OpError("PG510", message, field="seconds", help="0.1 to 1 are rooms, 3 is a church"), *super().lints(x))

    def interval_after(self, interval: Interval) -> None:
        return None

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        return key_of(u[:, 2:4]), drawn["seconds"], drawn["direct_db"]

    def phase(self, sounds: tf.Tensor, key: tf.Tensor, seconds: tf.Tensor, direct_db: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The response of each example, float32 `(n, taps, 1)`."""
        taps = max(2, math.ceil(self.largest("seconds") * self._rate))
        return (decaying_noise(key, seconds, taps, self._rate, direct_db),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return convolved(images, *given)
