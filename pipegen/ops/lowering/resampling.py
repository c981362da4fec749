"""Resampling of sound by a windowed sinc, at rational ratios.

The filter is the one that resampy and librosa call `kaiser_best`: a sinc of 64 zero crossings on each side in a Kaiser window. `torchaudio`
has it as `resample(x, a, b, 64, 0.9475937167399596, "sinc_interp_kaiser", 14.769656459379492)`.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate

from pipegen.lazy import tf
from pipegen.ops.lowering.graphs import chosen, graph_around, made_once, meanwhile

CROSSINGS = 64  # zero crossings of the sinc on each side of its centre
ROLLOFF = 0.9475937167399596  # the cutoff, as a fraction of half the lower rate
BETA = 14.769656459379492  # the shape of the Kaiser window

USUAL = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000)
"""Rates of files, in Hz, whose filters are computed once; that of another rate is interpolated in a table, which takes five to a
hundred times as long."""
MOST = 100  # the largest ratio of two rates
_AT_ONCE = 1 << 20  # products of a weight and a sample that are computed at once for a rate that is not usual
_ENTRIES = 4096  # entries of the table of the filter between two zero crossings


def resample(sounds: tf.Tensor, from_rate: int | tf.Tensor, to_rate: int) -> tf.Tensor:
    """Resamples sounds, float32 `(n, frames, channels)`, to `(n, ceil(frames * to_rate / from_rate), channels)`. Silence lies before the
    first frame and after the last.

    `from_rate` is an integer or, for the rate of a file, an int64 scalar. The ratio of the rates is at most `MOST`. Frame `j` of the result
    is the sum of `x[i] * s * sinc(s * t) * kaiser(s * t / CROSSINGS)` over all `i`, where `t = i - j * from_rate / to_rate`, in frames, and
    `s = ROLLOFF * min(1, to_rate / from_rate)`. Weights are computed in float64 and rounded to float32 once; those of a file's rate that is
    not `USUAL` are interpolated, with an error of at most 3e-8. (J. O. Smith, "Digital Audio
    Resampling Home Page", the algorithm of band-limited interpolation.)
    """
    frames = sounds.shape[1] if sounds.shape[1] is not None else tf.shape(sounds, tf.int64)[1]
    if isinstance(from_rate, int):
        if from_rate == to_rate:
            return sounds
        step, made, reach = _block(from_rate, to_rate)
        with tf.init_scope():
            kernel = _kernels([from_rate], to_rate).numpy().reshape(step, 2 * made)
        return _by_blocks(sounds, tf.constant(kernel), step, made, reach, -(-frames * to_rate // from_rate))
    usual = [rate for rate in USUAL if rate != to_rate and max(rate / to_rate, to_rate / rate) <= MOST]

    def same(sounds: tf.Tensor, from_rate: tf.Tensor) -> tf.Tensor:  # noqa: ARG001 - TensorFlow names an input by it
        return tf.identity(sounds)

    def of_table(sounds: tf.Tensor, from_rate: tf.Tensor) -> tf.Tensor:
        return _by_table(sounds, from_rate, usual, to_rate)

    def other(sounds: tf.Tensor, from_rate: tf.Tensor) -> tf.Tensor:
        return _by_phases(sounds, from_rate, to_rate)

    is_usual = tf.reduce_any(tf.equal(tf.constant(usual, tf.int64), from_rate))
    ways = [same, of_table, other] if usual else [same, other]
    way = tf.where(tf.equal(from_rate, to_rate), 0, tf.where(is_usual, 1, len(ways) - 1))
    return tf.ensure_shape(chosen(way, ways, sounds, from_rate), [*sounds.shape[:1], None, *sounds.shape[2:]])


def _by_table(sounds: tf.Tensor, from_rate: tf.Tensor, rates: list[int], to_rate: int) -> tf.Tensor:
    """Resamples from one of some rates, whose kernels the process that runs the graph computes once."""
    blocks = [_block(rate, to_rate) for rate in rates]
    sizes = [2 * step * made for step, made, _ in blocks]
    begins = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
    with meanwhile(graph_around, None):  # a function that takes a tensor of that graph could not be a branch
        table = made_once(f"pipegen_resampling_to_{to_rate}", tf.float32, partial(_kernels, rates, to_rate), [sum(sizes)])
    rows = [(*block, *place) for block, *place in zip(blocks, begins, sizes, strict=True)]
    known = tf.gather(tf.constant(rows, tf.int64), tf.argmax(tf.equal(tf.constant(rates, tf.int64), from_rate)))
    step, made, reach, begin, size = tf.unstack(known)
    kernel = tf.reshape(tf.slice(table, [begin], [size]), tf.stack([step, 2 * made]))
    return _by_blocks(sounds, kernel, step, made, reach, -(-tf.shape(sounds, tf.int64)[1] * to_rate // from_rate))


def _block(from_rate: int, to_rate: int) -> tuple[int, int, int]:
    """Returns frames of the input and of the output that last equally long, and the reach of the filter to each side, in input frames, of
    which the block holds two."""
    common = math.gcd(from_rate, to_rate)
    reach = math.ceil(CROSSINGS / ROLLOFF * max(1.0, from_rate / to_rate))
    times = -(-2 * reach * common // from_rate)
    return from_rate // common * times, to_rate // common * times, reach


def _kernels(rates: list[int], to_rate: int) -> tf.Tensor:
    """Computes the kernels of several rates, one after another, each float32 `(step, 2 * made)` before it is flattened.

    A kernel has the weights of a block of input frames for the output frames of its own block, and for those of the block before. Time is
    counted from `reach` frames before the input.
    """
    blocks = [_block(rate, to_rate) for rate in rates]
    sizes = [2 * step * made for step, made, _ in blocks]
    # All at once, since each operation takes a while to trace.
    of = tf.repeat(tf.range(len(rates)), sizes)
    step, made, reach = (tf.gather(tf.constant(own, tf.int32), of) for own in zip(*blocks, strict=True))
    place = tf.range(sum(sizes)) - tf.gather(tf.constant([end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]), of)
    row, column = place // (2 * made), place % (2 * made)
    at, due = row - reach + column // made * step, column % made
    ratio = tf.gather(tf.constant([rate / to_rate for rate in rates], tf.float64), of)
    scale = tf.gather(tf.constant([ROLLOFF * min(1.0, to_rate / rate) for rate in rates], tf.float64), of)
    return _weights(tf.cast(at, tf.float64) - tf.cast(due, tf.float64) * ratio, scale)


def _weights(time: tf.Tensor, scale: float | tf.Tensor) -> tf.Tensor:
    """Computes the filter at times from its centre in input frames, float64; `scale` is its cutoff as a fraction of half the input's rate.
    Rounded to float32."""
    crossings = time * scale
    angle = math.pi * crossings
    sinc = tf.math.divide_no_nan(tf.sin(angle), angle) + tf.cast(tf.equal(angle, 0.0), tf.float64)
    root = tf.sqrt(tf.maximum(1.0 - tf.square(crossings / CROSSINGS), 0.0))
    # The Bessel function is scaled by exp(-x), so that it cannot overflow.
    window = tf.math.bessel_i0e(BETA * root) / tf.math.bessel_i0e(tf.constant(BETA, tf.float64)) * tf.exp(BETA * (root - 1.0))
    weights = tf.where(tf.abs(crossings) < CROSSINGS, scale * sinc * window, tf.zeros_like(angle))
    return tf.cast(weights, tf.float32)


def _by_blocks(
    sounds: tf.Tensor, kernel: tf.Tensor, step: int | tf.Tensor, made: int | tf.Tensor, reach: int | tf.Tensor, length: int | tf.Tensor
) -> tf.Tensor:
    """Resamples by one matrix product. An output frame depends on no more than two blocks of `step` input frames."""
    n, channels = (sounds.shape[axis] if sounds.shape[axis] is not None else tf.shape(sounds, tf.int64)[axis] for axis in (0, 2))
    frames = sounds.shape[1] if sounds.shape[1] is not None else tf.shape(sounds, tf.int64)[1]
    blocks = -(-length // made)
    x = tf.pad(tf.transpose(sounds, [0, 2, 1]), [[0, 0], [0, 0], [reach, (blocks + 1) * step - reach - frames]])
    both = tf.reshape(tf.matmul(tf.reshape(x, [-1, step]), kernel), [n, channels, blocks + 1, 2, made])
    y = tf.reshape(both[:, :, :-1, 0] + both[:, :, 1:, 1], [n, channels, blocks * made])
    return tf.transpose(y[..., :length], [0, 2, 1])


def _by_phases(sounds: tf.Tensor, from_rate: tf.Tensor, to_rate: int) -> tf.Tensor:
    """Resamples by weights that are interpolated in a table of the filter, some output frames at a time.

    The weights of an output frame depend on its place between two input frames alone, its phase. The phases of the rates' reduced ratio
    follow each other again and again. (Smith's algorithm, with linear interpolation of the filter.)
    """
    n, frames, channels = tf.unstack(tf.shape(sounds, tf.int64))
    length = -(-frames * to_rate // from_rate)
    common, _ = tf.while_loop(lambda _, rest: rest > 0, lambda a, rest: (rest, a % rest), (from_rate, tf.constant(to_rate, tf.int64)))
    phases = tf.minimum(to_rate // common, length)
    times = -(-length // phases)
    scale = ROLLOFF * tf.minimum(tf.constant(1.0, tf.float64), to_rate / from_rate)
    reach = tf.cast(tf.math.ceil(CROSSINGS / scale), tf.int64)
    taps = tf.range(-reach, reach + 1)
    with meanwhile(graph_around, None):  # a function that takes a tensor of that graph could not be a branch
        table = made_once("pipegen_resampling_filter", tf.float32, _filter, [2, _ENTRIES * (CROSSINGS + 2)])
    entries = tf.cast(taps, tf.float64) * scale * _ENTRIES
    # The input frames that all phases read: a row for each, with a column for each time and each sound.
    needed = (phases - 1) * from_rate // to_rate + 2 * reach + 1
    x = tf.reshape(tf.transpose(sounds, [1, 0, 2]), tf.stack([frames, n * channels]))
    x = tf.pad(x, [[reach, needed], [0, 0]])
    read = tf.range(needed)[:, None] + tf.range(times) * (from_rate // common)
    x = tf.reshape(tf.gather(x, read), tf.stack([needed, times * n * channels]))
    parts = -(-phases * times * n * channels * tf.size(taps, tf.int64) // _AT_ONCE)
    some = -(-phases // parts)

    def part(first: tf.Tensor) -> tf.Tensor:
        place = tf.minimum(tf.range(first, first + some), phases - 1) * from_rate
        whole, rest = place // to_rate, tf.cast(place % to_rate, tf.float64) / to_rate
        entry = tf.abs(entries - (rest * scale * _ENTRIES)[:, None])
        number = tf.cast(entry, tf.int32)
        weights = tf.gather(table[1], number) * tf.cast(entry - tf.cast(number, tf.float64), tf.float32) + tf.gather(table[0], number)
        held = tf.gather(x, tf.cast(whole, tf.int32)[:, None] + tf.cast(taps + reach, tf.int32))
        return tf.matmul(weights[:, None], held)[:, 0]

    firsts = tf.range(tf.constant(0, tf.int64), phases, some)
    made = tf.map_fn(part, firsts, fn_output_signature=tf.float32, parallel_iterations=1) * tf.cast(scale, tf.float32)
    each = tf.reshape(made, tf.stack([-1, times, n, channels]))[:phases]
    y = tf.reshape(tf.transpose(each, [2, 1, 0, 3]), tf.stack([n, times * phases, channels]))
    return y[:, :length]


def _filter() -> tf.Tensor:
    """Computes the filter of a scale of 1 at `_ENTRIES` places between two zero crossings, and its differences: float32 `(2, entries)`.

    Between two entries the interpolated filter is off by at most max |h''| / (8 _ENTRIES²), 2.5e-8.
    """
    values = _weights(tf.range(_ENTRIES * (CROSSINGS + 2) + 1, dtype=tf.float64) / _ENTRIES, 1.0)
    return tf.stack([values[:-1], values[1:] - values[:-1]])
