"""The family of sound: steps on samples, and on the spectra made of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, PrivateAttr

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.kinds.audio import Sound
from pipegen.ops.lowering.waveforms import POSITION_BITS
from pipegen.ops.step_bases import ElementTransform, require_kind
from pipegen.ops.traits import Example
from pipegen.ops.transform import Transform
from pipegen.types import FLOATING, FeatureType, Interval

SECOND = FeatureType("audio", "float32", (16000, 1), Interval(-1.0, 1.0), details=Sound(16000))  # a second of one channel, for examples
ANY_SOUND = SECOND.with_(shape=(None, 1))
SILENCE = Interval(0.0, 0.0)
SPECTRA = FeatureType("audio", "float32", (98, 64, 1), details=Sound(16000, 160.0))


def require_sound(step: Transform, x: FeatureType, form: Literal["samples", "spectra", "either"] = "samples") -> Sound:
    """Returns the rate of a decoded sound. Rejects others: another kind or an encoded file as `PG203`, spectra or samples where the step
    takes the other form as `PG204`, and integers as `PG208`."""
    require_kind(step, x)
    if x.encoded:
        raise OpError("PG203", f"`{step.op}` needs a decoded sound and gets an encoded file", help="`decode` must come first")
    is_spectrum = len(x.shape) == 3
    if form == "samples" and is_spectrum:
        raise OpError("PG204", f"`{step.op}` works on samples, and gets spectra", help="put it before the step that makes spectra")
    if form == "spectra" and not is_spectrum:
        help_ = write("mel_spectrogram: {bands: 64, window_ms: 25, hop_ms: 10}", "before", "put a step that makes them before it: {}")
        raise OpError("PG204", f"`{step.op}` works on spectra, and gets samples", help=help_)
    if x.dtype not in FLOATING:
        help_ = write("cast: {dtype: float32}", "before", "put {} before it")
        raise OpError("PG208", f"`{step.op}` works on floats, and gets {x.dtype}", help=help_)
    found: Sound = x.details  # type: ignore[assignment]  # as the kind says
    return found


Seconds = Annotated[float, Field(gt=0, le=86400)]


def unbounded(*steps: str, given: FeatureType = SECOND) -> tuple[Example, ...]:
    """Examples of steps that keep the length of a sound and can leave its interval."""
    return tuple(Example(step, given, str(given.with_(interval=None))) for step in steps)


class RatedTransform(Transform):
    """A step on sound that counts in seconds or in Hz."""

    kinds: ClassVar[frozenset[str]] = frozenset({"audio"})

    _rate: int = PrivateAttr(default=0)  # of the samples, in Hz, once it is known

    def on(self, x: FeatureType) -> Transform:
        step = self.model_copy()
        step._rate = x.details.rate if isinstance(x.details, Sound) else 0
        return step


class TimeMap(NamedTuple):
    """Where sounds are read, for each example: frame `j` of the result at frame `pace * j + start` of the sound that enters."""

    pace: tf.Tensor  # the distance of two frames of the result, in 1/2^32 frame: int64 `(n,)`
    start: tf.Tensor  # where the first one is read, in 1/2^32 frame, for one step a whole number of frames: int64 `(n,)`
    length: tf.Tensor | int  # the number of frames of the result: an int32 scalar, or `(n,)`

    @classmethod
    def of_shift(cls, sounds: tf.Tensor, start: tf.Tensor | int, length: tf.Tensor | int) -> TimeMap:
        """Makes the map of a window of sounds `(n, frames, channels)` that begins at a whole frame, int32 `(n,)` or a scalar."""
        first = tf.bitwise.left_shift(tf.cast(start, tf.int64), tf.constant(POSITION_BITS, tf.int64))
        own = tf.shape(sounds)[:1]
        return cls(tf.fill(own, tf.constant(1 << POSITION_BITS, tf.int64)), tf.broadcast_to(first, own), length)

    def then(self, other: TimeMap) -> TimeMap:
        """Returns the map of both, where the `other` step, of a whole start, reads the result of this one."""
        pace = tf.cast(self.pace, tf.float64) * (tf.cast(other.pace, tf.float64) * 2.0**-POSITION_BITS)
        whole = tf.bitwise.right_shift(other.start, tf.constant(POSITION_BITS, tf.int64))
        return TimeMap(tf.cast(tf.round(pace), tf.int64), self.pace * whole + self.start, other.length)


class TimeTransform(RatedTransform):
    """A step that moves what happens in a sound, by a map of its frames."""

    moves_time: ClassVar[bool] = True
    changes_pace: ClassVar[bool] = False  # whether it plays sounds at another speed, so that samples are read between frames

    def time_map(self, u: tf.Tensor, sounds: tf.Tensor) -> TimeMap:
        """Returns where the step reads sounds `(n, frames, channels)` of one length, by their draws `(n, num_draws)`."""
        raise NotImplementedError

    def composes(self) -> bool:
        """Checks that it is part of a segment of time: neighbours multiply their maps, and the sound is read once, with silence outside of
        the sound that enters the segment."""
        return False

    def fastest(self) -> float:
        """Returns the largest speed that it plays sounds at."""
        return 1.0

    def moves_apart(self) -> OpError | None:
        """Returns the error of moving events with these arguments, if they are not one map of time."""
        return None


class SoundTransform(RatedTransform, NeighbourhoodTransform):
    """A function of a batch of sounds of one length, `(n, frames, channels)`, or of their spectra, `(n, steps, bands, channels)`.

    A sound whose length is unknown is a batch of one, and its number of frames a tensor. `parameters` gets frames and channels, or steps
    and bands.
    """

    form: ClassVar[Literal["samples", "spectra", "either"]] = "samples"
    """What it works on."""

    def interval_after(self, interval: Interval) -> Interval | None:
        """Returns the values that leave it where those that enter are in an interval; `None` if they can be any, as nothing clips them."""
        return interval

    def infer(self, x: FeatureType) -> FeatureType:
        """Infers the same type, with the interval that follows from the step's arguments."""
        require_sound(self, x, self.form)
        return x if x.interval is None or self.idle() else x.with_(interval=self.interval_after(x.interval))


class SoundWindow(TimeTransform, ElementTransform):
    """A window of each sound, of one length."""

    seconds: Seconds
    """The length of the window, in seconds."""

    def composes(self) -> bool:
        return True

    @property
    def frames(self) -> int:
        """The length of the window, in frames, once the rate is known."""
        return max(1, round(self.seconds * self._rate))

    def start(self, u: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
        """Returns the window's first frame in a sound of so many, an int32 scalar, by the draws `(..., num_draws)`: int32 `(...)` or a
        scalar; a window that starts before 0 begins in silence."""
        raise NotImplementedError

    def time_map(self, u: tf.Tensor, sounds: tf.Tensor) -> TimeMap:
        return TimeMap.of_shift(sounds, self.start(u, tf.shape(sounds)[1]), self.frames)

    def infer(self, x: FeatureType) -> FeatureType:
        rate = require_sound(self, x).rate
        return x.with_(shape=(max(1, round(self.seconds * rate)), x.shape[1]), uniform=False)

    def is_identity(self, x: FeatureType) -> bool:
        return super().is_identity(x) or self.infer(x) == x

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return cut_frames(image, self.start(u, tf.shape(image)[0]), self.frames)


def cut_frames(sound: tf.Tensor, start: tf.Tensor, length: int) -> tf.Tensor:
    """Cuts `length` frames from `start` on out of a sound, `(frames, channels)`; silence lies before its first frame and after its last."""
    frames = tf.shape(sound)[0]
    first, last = tf.clip_by_value(start, 0, frames), tf.clip_by_value(start + length, 0, frames)
    before = tf.clip_by_value(-start, 0, length)
    held = tf.pad(sound[first:last], [[before, length - before - (last - first)], [0, 0]])
    return tf.ensure_shape(held, [length, sound.shape[1]])


def holds_frames(length: int, frames: tf.Tensor) -> None:
    """Fails if a sound is shorter than a window."""
    if tf.get_static_value(frames) is None or tf.executing_eagerly():  # `infer` has checked known lengths
        message = f"the crop of {length} frames exceeds the sound, whose frames are"
        tf.raw_ops.Assert(condition=frames >= length, data=[message, frames])


def is_sound(x: FeatureType) -> bool:
    """Checks for sound, encoded or not."""
    return isinstance(x.details, Sound)
