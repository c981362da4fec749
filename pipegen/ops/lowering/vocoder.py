"""The phase vocoder: other lengths and pitches of sounds.

Sources: J. L. Flanagan and R. M. Golden, Phase Vocoder, Bell System Technical Journal 45 (1966); J. Laroche and M. Dolson, Improved Phase
Vocoder Time-Scale Modification of Audio, IEEE Transactions on Speech and Audio Processing 7 (1999). This is the form with equal hops and
identity phase locking: output step j reads the spectrum at step j · factor. Its magnitude is between two neighbours. The phase of a peak
goes on by the difference of their phases, and the bins around it keep the distance to its phase that they have in the input.

All is in float64. A phase is the sum of all differences before it, so what it would lose in a quiet moment in float32, by another order of
sums, would be heard in all that follows.
"""

from __future__ import annotations

import math
from functools import reduce

from pipegen.lazy import tf
from pipegen.ops.lowering.waveforms import LOBES, fixed_step, positions, resampled_by, sizes
from pipegen.ops.lowering.windows import Whole

OVERLAP = 4  # windows that show each frame
_SECONDS = 0.064  # the length of a window


def window_length(rate: float) -> int:
    """Returns the length of a window in frames: the power of two nearest to 64 ms, at least 16."""
    return max(16, 1 << round(math.log2(rate * _SECONDS)))


def stretched(sounds: tf.Tensor, step: tf.Tensor, count: Whole, window: int) -> tf.Tensor:
    """Plays sounds faster or slower at the same pitch.

    Args:
        sounds: `(n, frames, channels)`.
        step: Input frames for each output frame, int64 `(n,)` as `fixed_step` has it: above 1 is faster.
        count: Frames of the output; silence follows the end of a sound.
        window: Frames of a window, a multiple of `OVERLAP`.

    Returns:
        `(n, count, channels)`, of the input's dtype.
    """
    hop, (frames, channels) = window // OVERLAP, sizes(sounds)
    bell = tf.constant([0.5 - 0.5 * math.cos(2.0 * math.pi * i / window) for i in range(window)], tf.float64)
    steps = frames // hop + OVERLAP + 1  # the last two are silent, and stand for all that follows
    after = window // 2 + (steps - 1) * hop - frames
    padded = tf.pad(tf.transpose(tf.cast(sounds, tf.float64), [0, 2, 1]), [[0, 0], [0, 0], [window // 2, after]])
    blocks = tf.reshape(padded, [-1, channels, steps + OVERLAP - 1, hop])
    windows = tf.concat([blocks[:, :, i : i + steps] for i in range(OVERLAP)], -1) * bell
    found = tf.transpose(tf.signal.rfft(windows), [0, 2, 1, 3])  # (n, steps, channels, bins)
    size = tf.abs(found)
    there = size > 0
    unit = tf.where(there, found * tf.cast(1.0 / tf.where(there, size, tf.ones_like(size)), found.dtype), tf.ones_like(found))

    outputs = (count + window // 2 - 1) // hop + 1
    before, share = positions(step, outputs)
    before = tf.minimum(before, steps - 2)
    (one, other), (low, high) = ([tf.gather(part, before + i, axis=1, batch_dims=1) for i in (0, 1)] for part in (unit, size))
    sizes_ = low + (high - low) * tf.cast(share, tf.float64)[..., None, None]
    peak = _nearest_peaks(sizes_)
    beside = one * tf.math.conj(tf.gather(one, peak, axis=3, batch_dims=3))
    made = tf.cast(sizes_, found.dtype) * _locked(one[:, 0], other * tf.math.conj(one), peak, beside)

    pieces = tf.signal.irfft(tf.transpose(made, [0, 2, 1, 3]), [window]) * bell
    weights = tf.ones([1, 1, outputs, 1], tf.float64) * tf.square(bell)
    whole = (_overlapped(pieces, hop) / _overlapped(weights, hop))[..., window // 2 : window // 2 + count]
    made = tf.cast(tf.transpose(whole, [0, 2, 1]), sounds.dtype)
    return tf.ensure_shape(made, [sounds.shape[0], count if isinstance(count, int) else None, channels])


def _locked(first: tf.Tensor, turns: tf.Tensor, peak: tf.Tensor, beside: tf.Tensor) -> tf.Tensor:
    """The phases of all output steps, as complex numbers of length 1, `(n, steps, channels, bins)`.

    They are those of the `first`, `(n, channels, bins)`; of each next one the phases at the bins `peak`, turned by the `turns` of the step
    before, and then by what lies `beside` the peak.
    """

    def following(own: tf.Tensor, given: tuple[tf.Tensor, ...]) -> tf.Tensor:
        turn, place, more = given
        return tf.gather(own * turn, place, axis=2, batch_dims=2) * more

    given = turns[:, :-1], peak[:, 1:], beside[:, 1:]
    later = tf.scan(following, tuple(tf.transpose(part, [1, 0, 2, 3]) for part in given), first, parallel_iterations=1)
    return tf.concat([first[:, None], tf.transpose(later, [1, 0, 2, 3])], 1)


def _nearest_peaks(sizes_: tf.Tensor) -> tf.Tensor:
    """The bin of the peak that is nearest to each bin, int32 of the shape of `sizes_`. A peak is larger than the two bins to each side;
    without any peak, a bin is its own."""
    bins = int(sizes_.shape[-1])
    around = tf.pad(sizes_, [[0, 0], [0, 0], [0, 0], [2, 2]], constant_values=-1.0)
    is_peak = reduce(tf.logical_and, (sizes_ > around[..., i : i + bins] for i in (0, 1, 3, 4)))
    place, far = tf.range(bins), 4 * bins
    left, right = tf.where(is_peak, place, -far), tf.where(is_peak, place, far)

    def doubled(shift: tf.Tensor, left: tf.Tensor, right: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        before = tf.concat([tf.zeros_like(left) - far, left], -1)[..., bins - shift : 2 * bins - shift]
        after = tf.concat([right, tf.zeros_like(right) + far], -1)[..., shift : bins + shift]
        shape = left.shape
        return 2 * shift, tf.ensure_shape(tf.maximum(left, before), shape), tf.ensure_shape(tf.minimum(right, after), shape)

    # The running maximum and minimum, by doubling steps. In a loop: XLA would fuse them, and compute each again for two of the next.
    _, left, right = tf.while_loop(lambda shift, *_: shift < bins, doubled, (tf.constant(1), left, right))
    nearest = tf.where(place - left <= right - place, left, right)
    return tf.where(tf.logical_and(nearest >= 0, nearest < bins), nearest, place)


def _overlapped(pieces: tf.Tensor, hop: int) -> tf.Tensor:
    """Adds pieces `(n, channels, count, OVERLAP · hop)`, each `hop` frames after the one before: `(n, channels, frames)`."""
    shape = tf.shape(pieces)
    count = pieces.shape[2] if pieces.shape[2] is not None else shape[2]
    parts = tf.reshape(pieces, [-1, pieces.shape[1], count, OVERLAP, hop])
    blocks = [tf.pad(parts[:, :, :, i], [[0, 0], [0, 0], [i, OVERLAP - 1 - i], [0, 0]]) for i in range(OVERLAP)]
    return tf.reshape(tf.add_n(blocks), [-1, pieces.shape[1], (count + OVERLAP - 1) * hop])


def pitched(sounds: tf.Tensor, factor: tf.Tensor, highest: float, window: int) -> tf.Tensor:
    """Multiplies all frequencies of sounds by a factor, float64 `(n,)` of at most `highest`, at the same speed: stretches them by it, and
    reads them so much faster."""
    frames, _ = sizes(sounds)
    most = max(1.0, highest)
    longer = math.ceil(frames * most) if isinstance(frames, int) else tf.cast(tf.math.ceil(tf.cast(frames, tf.float64) * most), tf.int32)
    longer = longer + math.ceil(LOBES * most)  # what the last frames read
    return resampled_by(stretched(sounds, fixed_step(1.0 / factor), longer, window), fixed_step(factor), frames, highest)
