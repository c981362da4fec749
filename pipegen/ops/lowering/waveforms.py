"""Functions of batches of sounds `(n, frames, channels)`: gains, shifts, speeds, noise, and filters in the frequency domain.

The number of frames may be unknown. What depends on the draws has the example as its first axis. Powers are summed in float64, and
positions are whole numbers, so that XLA and TensorFlow agree to the rounding of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.linear import working
from pipegen.ops.lowering.random import BITS, half_words, normal_numbers
from pipegen.ops.lowering.windows import Whole

Fade = Literal["linear", "exponential", "logarithmic", "quarter_sine", "half_sine"]
Colour = Literal["white", "pink", "brown", "blue", "violet"]

POSITION_BITS = 32  # positions between frames are in 1/2^32 frame
LOBES = 16  # zero crossings of the sinc to each side
SLOPES: dict[str, float] = {"white": 0.0, "pink": -0.5, "brown": -1.0, "blue": 0.5, "violet": 1.0}
"""The amplitude of each colour of noise is the frequency to this power."""


def sizes(sounds: tf.Tensor) -> tuple[Whole, int]:
    """Returns the number of frames, a tensor where it is not static, and of channels."""
    frames = sounds.shape[1] if sounds.shape[1] is not None else tf.shape(sounds)[1]
    return frames, int(sounds.shape[2])


def each(values: tf.Tensor, dtype: tf.DType = None) -> tf.Tensor:
    """Reshapes a number for each example, `(n,)`, to multiply sounds `(n, frames, channels)`."""
    found = values[:, None, None]
    return found if dtype is None else tf.cast(found, dtype)


def amplitude(db: tf.Tensor) -> tf.Tensor:
    """Converts decibels to a factor on values, 10^(db/20): float64."""
    return tf.exp(tf.cast(db, tf.float64) * (math.log(10.0) / 20.0))


def whole_frames(seconds: tf.Tensor, rate: float) -> tf.Tensor:
    """Converts seconds to the nearest whole number of frames, half to even: int32."""
    return tf.cast(tf.round(tf.cast(seconds, tf.float64) * float(rate)), tf.int32)


def peaks(sounds: tf.Tensor) -> tf.Tensor:
    """Finds the largest absolute value of each sound, over all frames and channels: `(n,)`; 0 without frames."""
    return tf.maximum(tf.reduce_max(tf.abs(sounds), [1, 2]), 0.0)


def powers(sounds: tf.Tensor) -> tf.Tensor:
    """Computes the mean square of each sound, over all frames and channels: float64 `(n,)`; 0 without frames."""
    total = tf.reduce_sum(tf.square(tf.cast(sounds, tf.float64)), [1, 2])
    frames, channels = sizes(sounds)
    return total / tf.cast(tf.maximum(frames * channels, 1), tf.float64)


def ratio(wanted: tf.Tensor, present: tf.Tensor, silent: float) -> tf.Tensor:
    """Divides `wanted` by `present`, float64 `(n,)`; where that is 0 the result is `silent`."""
    there = present > 0
    return tf.where(there, wanted / tf.where(there, present, tf.ones_like(present)), tf.zeros_like(present) + silent)


def shifted(sounds: tf.Tensor, by: tf.Tensor, *, wraps: bool, count: Whole | None = None) -> tf.Tensor:
    """Moves each sound later by a number of frames, int32 `(n,)`, and gives it `count` frames, by default as many as before; what leaves at
    one end enters at the other if it `wraps`, else silence does."""
    frames, _ = sizes(sounds)
    place = tf.range(frames if count is None else count)[None, :] - by[:, None]
    if wraps:
        return tf.gather(sounds, tf.math.floormod(place, frames), axis=1, batch_dims=1)
    inside = tf.logical_and(place >= 0, place < frames)
    found = tf.gather(sounds, tf.clip_by_value(place, 0, tf.maximum(frames - 1, 0)), axis=1, batch_dims=1)
    return tf.where(inside[..., None], found, tf.zeros_like(found))


def silenced(sounds: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """Replaces the frames from `start` up to `end`, int32 `(n,)`, by silence."""
    frames, _ = sizes(sounds)
    place = tf.range(frames)[None, :]
    masked = tf.logical_and(place >= start[:, None], place < end[:, None])
    return tf.where(masked[..., None], tf.zeros_like(sounds), sounds)


_CURVES: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "linear": lambda u: u,
    "exponential": lambda u: tf.exp((u - 1.0) * math.log(2.0)) * u,
    "logarithmic": lambda u: tf.clip_by_value(tf.math.log(0.1 + u) * (1.0 / math.log(10.0)) + 1.0, 0.0, 1.0),
    "quarter_sine": lambda u: tf.sin(u * (math.pi / 2.0)),
    "half_sine": lambda u: 0.5 - 0.5 * tf.cos(u * math.pi),
}
"""The gain of each shape of fade, from its start (0) to its end (1)."""


def faded(sounds: tf.Tensor, rising: tf.Tensor, falling: tf.Tensor, shape: Fade) -> tf.Tensor:
    """Multiplies the first `rising` frames, int32 `(n,)`, by a gain that rises from 0 to 1, and the last `falling` ones by its mirror
    image."""
    frames, _ = sizes(sounds)
    place = tf.range(frames)[None, :]
    gain = _rise(place, rising, shape) * _rise(frames - 1 - place, falling, shape)
    return sounds * tf.cast(gain, sounds.dtype)[..., None]


def _rise(place: tf.Tensor, length: tf.Tensor, shape: Fade) -> tf.Tensor:
    """The gain at a place of a fade of `length` frames: float32 `(n, frames)`."""
    steps = tf.cast(tf.maximum(length - 1, 1), tf.float32)[:, None]
    gain = _CURVES[shape](tf.minimum(tf.cast(place, tf.float32) / steps, 1.0))
    return tf.where(place < length[:, None], gain, tf.ones_like(gain))


def clipped(sounds: tf.Tensor, limit: tf.Tensor) -> tf.Tensor:
    """Clips each sound to values from `-limit` to `limit`, `(n,)`."""
    most = each(limit, sounds.dtype)
    return tf.maximum(tf.minimum(sounds, most), -most)


def fixed_step(factor: tf.Tensor) -> tf.Tensor:
    """Rounds the distance of positions, float64 in frames, to 1/2^32 frame: int64."""
    return tf.cast(tf.round(factor * float(1 << POSITION_BITS)), tf.int64)


def positions(step: tf.Tensor, count: Whole, start: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the whole frames, int32, and the fractions, float32 in 1/2^24, of `count` positions with the distance `step`, int64 `(n,)` as
    `fixed_step` has it: `(n, count)` each. The first one is `start`, likewise, by default 0."""
    place = tf.cast(tf.range(count), tf.int64)[None, :] * step[:, None]
    place = place if start is None else place + start[:, None]
    whole = tf.bitwise.right_shift(place, tf.constant(POSITION_BITS, tf.int64))
    rest = tf.bitwise.bitwise_and(place, tf.constant((1 << POSITION_BITS) - 1, tf.int64))
    share = tf.cast(tf.bitwise.right_shift(rest, tf.constant(POSITION_BITS - 24, tf.int64)), tf.float32) * 2.0**-24
    return tf.cast(whole, tf.int32), share


def resampled_by(sounds: tf.Tensor, step: tf.Tensor, count: Whole, fastest: float, start: tf.Tensor | None = None) -> tf.Tensor:
    """Reads each sound at `count` positions with the distance `step`, int64 `(n,)` as `fixed_step` has it, of at most `fastest` frames,
    from `start` on, by default the first frame.

    A value is a sum of its neighbours, weighted by a sinc with `LOBES` zero crossings to each side under a Hann window (J. O. Smith,
    Digital Audio Resampling, 1984). Above a distance of 1 the sinc is wider, so that it removes what would alias. Outside is silence.
    """
    reach = math.ceil(LOBES * max(1.0, fastest))
    frames, channels = sizes(sounds)
    whole, share = positions(step, count, start)
    padded = tf.pad(sounds, [[0, 0], [reach, reach], [0, 0]])
    cutoff = 1.0 / tf.maximum(tf.cast(step, tf.float64) * 2.0**-POSITION_BITS, 1.0)
    # sin(a - b) = sin a cos b - cos a sin b, so that there are four sines for a position and none for a neighbour.
    inner, outer = _angles(cutoff * math.pi, share), _angles(cutoff * (math.pi / LOBES), share)
    scale = tf.cast(cutoff, tf.float32)[:, None]

    def part(tap: tf.Tensor) -> tf.Tensor:
        """What one neighbour adds to each value."""
        distance = (tf.cast(tap, tf.float32) - share) * scale
        angle = cutoff * tf.cast(tap, tf.float64)
        (sine, _), (_, bell) = _turned(inner, angle * math.pi), _turned(outer, angle * (math.pi / LOBES))
        # Near the middle a quotient would magnify the rounding of the sine.
        middle, square = tf.abs(distance) < 1.0 / 16.0, tf.square(distance * math.pi)
        quotient = sine / (tf.where(middle, tf.ones_like(distance), distance) * math.pi)
        sinc = tf.where(middle, 1.0 - square * (1.0 / 6.0) * (1.0 - square * (1.0 / 20.0)), quotient)
        weight = tf.where(tf.abs(distance) < LOBES, sinc * (0.5 + 0.5 * bell) * scale, tf.zeros_like(sinc))
        place = tf.clip_by_value(whole + (tap + reach), 0, frames + 2 * reach - 1)
        return tf.gather(padded, place, axis=1, batch_dims=1) * tf.cast(weight, sounds.dtype)[..., None]

    def some(tap: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        for i in range(_UNROLLED):
            total = total + part(tap + i)
        return tap + _UNROLLED, tf.ensure_shape(total, none.shape)  # as it was given, where the number of frames is unknown

    none = tf.zeros_like(share, sounds.dtype)[..., None] + tf.zeros([channels], sounds.dtype)
    done = tf.while_loop(lambda tap, _: tap <= reach, some, (tf.constant(1 - reach), none))
    return tf.ensure_shape(done[1], none.shape)


_UNROLLED = 4  # neighbours in one turn of the loop: with all of them, XLA takes seconds to compile


def _angles(rate: tf.Tensor, share: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The sine and the cosine of `rate · share`, float32 `(n, count)`."""
    angle = tf.cast(rate, tf.float32)[:, None] * share
    return tf.sin(angle), tf.cos(angle)


def _turned(part: tuple[tf.Tensor, tf.Tensor], angle: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The sine and the cosine of `angle`, float64 `(n,)`, minus those of `part`."""
    sine, cosine = (tf.cast(of(angle), tf.float32)[:, None] for of in (tf.sin, tf.cos))
    return sine * part[1] - cosine * part[0], cosine * part[1] + sine * part[0]


def white_noise(key: tf.Tensor, frames: Whole, channels: int) -> tf.Tensor:
    """Makes normal noise of standard deviation 1: float32 `(n, frames, channels)`. A value depends only on the key, uint32 `(n, 2)`, and on
    its place."""
    places = half_words(key, frames * channels)
    return tf.reshape(tf.cast(normal_numbers(places), tf.float32) * 2.0**-BITS, [-1, frames, channels])


def power_of_two(least: Whole) -> Whole:
    """Returns the smallest power of two that is at least `least`, and at least 2."""
    if isinstance(least, int):
        return max(2, 1 << (least - 1).bit_length()) if least > 0 else 2
    powers_ = tf.constant([1 << bits for bits in range(1, 31)], tf.int32)
    return tf.reduce_min(tf.where(powers_ >= least, powers_, powers_[-1]))


def spectra(sounds: tf.Tensor, length: Whole) -> tf.Tensor:
    """Computes the Fourier transform of sounds, padded by silence to `length` frames: complex `(n, channels, length // 2 + 1)`."""
    values = tf.transpose(sounds, [0, 2, 1])
    return tf.ensure_shape(tf.signal.rfft(values, [length]), [*values.shape[:2], length // 2 + 1 if isinstance(length, int) else None])


def from_spectra(found: tf.Tensor, length: Whole, frames: Whole) -> tf.Tensor:
    """Inverts `spectra`, and keeps the first `frames`: `(n, frames, channels)`."""
    values = tf.signal.irfft(found, [length])[..., :frames]
    values = tf.ensure_shape(values, [*found.shape[:2], frames if isinstance(frames, int) else None])
    return tf.transpose(values, [0, 2, 1])


def coloured_noise(key: tf.Tensor, frames: Whole, channels: int, colour: Colour) -> tf.Tensor:
    """Makes normal noise whose amplitude is a power of the frequency (`SLOPES`): float32 `(n, frames, channels)`.

    White noise of the next power of two of frames is filtered in the frequency domain; what is constant is removed.
    """
    if colour == "white":
        return white_noise(key, frames, channels)
    length = power_of_two(frames)
    found = spectra(white_noise(key, length, channels), length)
    number = tf.cast(tf.range(length // 2 + 1), tf.float64)
    gain = tf.where(number > 0, tf.pow(tf.maximum(number, 1.0), tf.constant(SLOPES[colour], tf.float64)), 0.0)
    return from_spectra(found * tf.cast(gain, found.dtype), length, frames)


def noise_gain(sounds: tf.Tensor, noise: tf.Tensor, db: tf.Tensor, *, relative: bool) -> tf.Tensor:
    """Computes the factor on noise that gives it a level in decibels, float64 `(n,)`: float32 `(n,)`. The level is the root mean square,
    where 0 is 1; or if `relative` the power of the sound in multiples of the noise's, and the factor beside silence is 0."""
    wanted = powers(sounds) * amplitude(-2.0 * db) if relative else amplitude(2.0 * db)
    return tf.cast(tf.sqrt(ratio(wanted, powers(noise), 0.0)), tf.float32)


def low_pass(frequency: tf.Tensor, cutoff: tf.Tensor, order: int) -> tf.Tensor:
    """Computes the magnitude of a Butterworth low-pass, 1 / sqrt(1 + (f / cutoff)^(2 order)): float32 `(n, bins)` for frequencies `(bins,)`
    and cut-offs `(n,)`."""
    return tf.sqrt(1.0 / (1.0 + _steep(frequency, cutoff, order)))


def high_pass(frequency: tf.Tensor, cutoff: tf.Tensor, order: int) -> tf.Tensor:
    """Computes the magnitude of a Butterworth high-pass, 1 / sqrt(1 + (cutoff / f)^(2 order)), as `low_pass`."""
    return tf.sqrt(1.0 / (1.0 + 1.0 / _steep(frequency, cutoff, order)))


def _steep(frequency: tf.Tensor, cutoff: tf.Tensor, order: int) -> tf.Tensor:
    """(f / cutoff)^(2 order), by products."""
    square = tf.square(tf.cast(frequency, tf.float32)[None, :] / tf.cast(cutoff, tf.float32)[:, None])
    found = square
    for _ in range(order - 1):
        found = found * square
    return found


def settling_frames(cutoff: float, order: int, rate: float) -> int:
    """Returns the frames after which the response of a Butterworth filter to an impulse is below 1/10,000 of its envelope: the slowest pole
    decays by `2 pi cutoff sin(pi / (2 order))` a second."""
    return math.ceil(math.log(1e4) / (2.0 * math.pi * cutoff * math.sin(math.pi / (2.0 * order))) * rate)


def frequencies(length: Whole, rate: float) -> tf.Tensor:
    """Returns the frequencies of `spectra` in Hz: float32 `(length // 2 + 1,)`."""
    hz = tf.cast(tf.range(length // 2 + 1), tf.float64) * (tf.constant(rate, tf.float64) / tf.cast(length, tf.float64))
    return tf.cast(hz, tf.float32)


def convolved(sounds: tf.Tensor, transfer: tf.Tensor) -> tf.Tensor:
    """Multiplies each sound's spectrum by a transfer function, float32 or complex64 `(n, 1 or channels, bins)`, of sounds padded by silence
    to `2 (bins - 1)` frames. Keeps the number of frames, and the dtype."""
    frames, _ = sizes(sounds)
    bins = transfer.shape[2] if transfer.shape[2] is not None else tf.shape(transfer)[2]
    length = 2 * (bins - 1)
    found = spectra(tf.cast(sounds, working(sounds)), length)
    return tf.cast(from_spectra(found * tf.cast(transfer, found.dtype), length, frames), sounds.dtype)


def decaying_noise(key: tf.Tensor, seconds: tf.Tensor, taps: int, rate: float, direct_db: tf.Tensor) -> tf.Tensor:
    """Makes the impulse response of a room: the direct sound, then normal noise that decays by 60 dB in the reverberation time `seconds`.

    Args:
        key: uint32 `(n, 2)`.
        seconds: Reverberation time (RT60), float64 `(n,)`.
        taps: Frames of the response.
        rate: Frames a second.
        direct_db: Power of the direct sound relative to the noise in decibels, float64 `(n,)`.

    Returns:
        float32 `(n, taps, 1)`, with the energy 1.
    """
    time = tf.range(taps, dtype=tf.float64)[None, :] / float(rate)
    decay = tf.exp(time * (-math.log(1000.0) / seconds[:, None]))
    noise = tf.cast(white_noise(key, taps, 1)[..., 0], tf.float64) * decay
    noise = tf.where(tf.range(taps) > 0, noise, tf.zeros_like(noise))
    share = amplitude(-2.0 * direct_db)  # of the noise's energy, beside 1 of the direct sound
    tail = tf.sqrt(ratio(share, tf.reduce_sum(tf.square(noise), 1), 0.0))[:, None] * noise
    whole = (tail + tf.one_hot(0, taps, dtype=tf.float64)) / tf.sqrt(1.0 + share)[:, None]
    return tf.cast(whole, tf.float32)[..., None]


def direct_first(response: tf.Tensor) -> tf.Tensor:
    """Begins a measured impulse response, float32 `(frames, channels)`, with its largest sample, the direct sound; silence follows. Its
    energy becomes 1, on average over the channels; one of silence stays."""
    sizes_ = tf.reduce_max(tf.abs(response), 1)
    first = tf.argmax(sizes_, output_type=tf.int32)
    moved = tf.pad(response[first:], [[0, first], [0, 0]])
    energy = tf.reduce_sum(tf.square(tf.cast(moved, tf.float64))) / float(response.shape[1])
    return moved * tf.cast(tf.where(energy > 0, 1.0 / tf.sqrt(tf.maximum(energy, 1e-300)), 1.0), tf.float32)


def loud_part(sound: tf.Tensor, db: float, window: int, hop: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first frame, and the one after the last, of what is louder than the loudest window minus `db` decibels: int32 scalars,
    for one sound `(frames, channels)`.

    The mean square is taken in windows of `window` frames around every `hop`-th frame, with silence outside, for each channel: as librosa's
    `effects.trim` does, with its floor of -100 dB. All of a silent sound is kept.
    """
    frames = tf.shape(sound)[0]
    squares = tf.pad(tf.square(tf.cast(sound, tf.float64)), [[window // 2 + 1, window // 2], [0, 0]])
    sums = tf.cumsum(squares)
    count = 1 + tf.maximum(frames + 2 * (window // 2) - window, 0) // hop
    first = tf.range(count) * hop
    power = tf.maximum((tf.gather(sums, first + window) - tf.gather(sums, first)) / window, 1e-10)
    loud = tf.reduce_any(power > tf.reduce_max(power) * 10.0 ** (-db / 10.0), 1)
    places = tf.where(loud)[:, 0]
    start, end = tf.cast(places[0], tf.int32) * hop, (tf.cast(places[-1], tf.int32) + 1) * hop
    return start, tf.minimum(end, frames)
