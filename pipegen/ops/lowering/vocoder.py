"""The phase vocoder: other lengths and pitches of sounds.

Sources: J. L. Flanagan and R. M. Golden, Phase Vocoder, Bell System Technical Journal 45 (1966); J. Laroche and M. Dolson, Improved Phase
Vocoder Time-Scale Modification of Audio, IEEE Transactions on Speech and Audio Processing 7 (1999). This is the form without phase locking,
with equal hops: output step j reads the spectrum at step j · factor, its magnitude between two neighbours, and its phase goes on by the
difference of their phases.

All is in float64. The phase of a bin is the sum of all differences before it, so what it would lose in a quiet moment in float32, by
another order of sums, would be heard in all that follows.
"""

from __future__ import annotations

import math

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
    unit = tf.where(there, found / tf.cast(tf.where(there, size, tf.ones_like(size)), found.dtype), tf.ones_like(found))

    outputs = (count + window // 2 - 1) // hop + 1
    before, share = positions(step, outputs)
    before = tf.minimum(before, steps - 2)
    (one, other), (low, high) = ([tf.gather(part, before + i, axis=1, batch_dims=1) for i in (0, 1)] for part in (unit, size))
    turns = tf.concat([one[:, :1], (other * tf.math.conj(one))[:, :-1]], 1)
    sizes_ = low + (high - low) * tf.cast(share, tf.float64)[..., None, None]
    made = tf.cast(sizes_, found.dtype) * _running_product(turns, outputs)

    pieces = tf.signal.irfft(tf.transpose(made, [0, 2, 1, 3]), [window]) * bell
    weights = tf.ones([1, 1, outputs, 1], tf.float64) * tf.square(bell)
    whole = (_overlapped(pieces, hop) / _overlapped(weights, hop))[..., window // 2 : window // 2 + count]
    return tf.cast(tf.transpose(whole, [0, 2, 1]), sounds.dtype)


def _running_product(factors: tf.Tensor, count: Whole) -> tf.Tensor:
    """The products of the first 1, 2, … of `count` factors along axis 1, by doubling steps."""

    def doubled(shift: Whole, own: tf.Tensor) -> tf.Tensor:
        return tf.concat([own[:, :shift], own[:, shift:] * own[:, :-shift]], 1)

    def step(shift: Whole, own: tf.Tensor) -> tuple[Whole, tf.Tensor]:
        return 2 * shift, doubled(shift, own)

    if not isinstance(count, int):
        shapes = tf.TensorShape([]), tf.TensorShape([None] * 4)
        found = tf.while_loop(lambda shift, _: shift < count, step, (tf.constant(1), factors), shape_invariants=shapes)[1]
        return tf.ensure_shape(found, factors.shape)
    shift = 1
    while shift < count:
        shift, factors = step(shift, factors)
    return factors


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
