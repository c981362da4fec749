"""Add noise to sound."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, ClassVar

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, within
from pipegen.ops.families.sound_files import SoundFilesTransform, drawn_parts
from pipegen.ops.families.sounds import unbounded
from pipegen.ops.lowering.filters import Phase
from pipegen.ops.lowering.random import key_of
from pipegen.ops.lowering.waveforms import Colour, coloured_noise, each, noise_gain, sizes
from pipegen.ops.lowering.windows import pick
from pipegen.ops.step_bases import UniformTransform
from pipegen.types import FeatureType, Interval


class RandomNoise(UniformTransform, SoundFilesTransform):
    """Adds noise to each sound, at a signal-to-noise ratio in decibels, or at a level of its own, drawn uniformly. Nothing is clipped.

    The ratio `snr_db` is that of the mean squares of the sound and of the noise that is added, over all frames and channels, so that each
    sound has exactly the drawn one, and silence stays silence. The level `rms` is the root mean square of the noise, in decibels of full
    scale, whatever the sound is: `rms: [-90.3, -90.3]` is Kaldi's dither, one step of 16 bits.

    The noise is a part of one of some `files`, each as likely, from a place that is drawn; a file that is shorter
    than the sound is repeated. Or it is normal, with values of its own for each channel: `white` has the same power at all frequencies,
    `pink` loses 3 dB an octave, and `brown` 6 dB; `blue` and `violet` gain as much.

    A value of white noise depends only on the sound's draws and on its place: 16 random bits (Threefry-2x32) choose one of the 65,536
    quantiles of the normal distribution. Other colours are white noise of the next power of two of frames, multiplied by a power of the
    frequency.
    """

    op = "random_noise"
    draws = 3
    idle_at: ClassVar[dict[str, float]] = {"snr_db": math.inf}
    examples = unbounded(
        "random_noise: {snr_db: [5, 30]}",
        "random_noise: {snr_db: [0, 20], color: pink, probability: 0.5}",
        "random_noise: {rms: [-60, -40]}",
    )

    snr_db: Annotated[Span | None, within(-100, 200)] = None
    """The range of the signal-to-noise ratio, in decibels: with 20 the noise has a hundredth of the sound's power, with 0 the same."""
    rms: Annotated[Span | None, within(-200, 200)] = None
    """The range of the root mean square of the noise, in decibels of full scale: -20 is loud, -60 is hardly heard."""
    color: Colour = "white"
    """The power over frequency: `white` is flat, `pink` falls by 3 dB an octave, `brown` by 6 dB; `blue` and `violet` rise by as much."""

    @model_validator(mode="after")
    def _one_kind(self) -> RandomNoise:
        if len(self.ranges()) != 1:
            raise ValueError("give either `snr_db`, relative to each sound, or `rms`, in decibels of full scale")
        if self.files is not None and "color" in self.model_fields_set:
            raise ValueError("`color` is for noise that is made; leave it out beside `files`")
        return self

    def weight(self) -> float:
        return 3.0 if self.files is not None else 15.0 if self.color == "white" else 35.0

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        ((name, (least, most)),) = self.ranges().items()
        if name == "rms" and most > 0:
            message = f"the `rms` of `{self.op}` reaches {most:g} dB, noise above full scale"
            help_ = "0 is an amplitude of 1, and levels below it are negative: -20 is loud, -60 is hardly heard"
        elif name == "rms":
            return super().lints(x)
        elif least < -30:
            message = f"the `snr_db` of `{self.op}` reaches {least:g}, where a sound cannot be heard"
            help_ = "0 is noise as strong as the sound, 20 is a noisy room, 40 is hardly heard"
        elif least > 80:
            message, help_ = f"noise of at least {least:g} dB below a sound cannot be heard", "16 bits hold 96 dB; 5 to 30 are usual"
        elif least >= 0 and 0 < most <= 1:
            message = f"the `snr_db` of `{self.op}` is at most {most:g}: all sounds get noise as strong as themselves"
            help_ = "`snr_db` is a ratio in decibels, not an amplitude: 5 to 30 are usual"
        else:
            return super().lints(x)
        return (OpError("PG510", message, field=name, help=help_), *super().lints(x))

    def interval_after(self, interval: Interval) -> None:
        return None

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`snr_db` or `rms`, and with files the number of the `file`, in an order that depends on their content."""
        found = super().drawn(u)
        return found if self.files is None else {**found, "file": pick(u[..., 1], len(self.paths()) - 1)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        db = drawn["snr_db"] if self.snr_db is not None else drawn["rms"]
        if self.files is None:
            return key_of(u[:, 1:3]), db
        return drawn_parts(self.held(width), drawn["file"], u[:, 2], height), db

    def phases(self) -> tuple[Phase, ...]:
        weighed = partial(_weighed, relative=self.snr_db is not None)
        return (partial(_made, color=self.color), weighed) if self.files is None else (weighed,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        noise, gain = given
        return images + tf.cast(noise * each(gain), images.dtype)


def _made(sounds: tf.Tensor, key: tf.Tensor, db: tf.Tensor, color: Colour) -> tuple[tf.Tensor, ...]:
    """The noise, float32 `(n, frames, channels)`, and its level."""
    return coloured_noise(key, *sizes(sounds), color), db


def _weighed(sounds: tf.Tensor, noise: tf.Tensor, db: tf.Tensor, *, relative: bool) -> tuple[tf.Tensor, ...]:
    """The noise and its factor, float32 `(n,)`."""
    return noise, noise_gain(sounds, noise, db, relative=relative)
