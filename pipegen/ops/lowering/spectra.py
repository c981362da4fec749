"""Spectrograms of batches of sounds: frames, Fourier transforms, mel bands, logarithms and masks.

Frames are rows of `hop` samples side by side, so that they are copied in runs and never gathered value by value. Everything is a pure
function that XLA compiles; for a runtime without Fourier transforms they are matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from pipegen.lazy import np, tf
from pipegen.ops.arguments.spectra import Analysis, Filters, LogScale, Mel, Outside
from pipegen.ops.lowering.graphs import by_xla, target
from pipegen.ops.lowering.linear import product, working
from pipegen.ops.lowering.windows import Whole, reflect

Array: TypeAlias = "np.ndarray[Any, Any]"


def spectra_of(sounds: tf.Tensor, analysis: Analysis, mel: Mel | None = None) -> tf.Tensor:
    """Computes |X| or |X|² of each frame of sounds `(n, frames, channels)`, and its sums in the bands of `mel`.

    Returns float32, or float64 for sounds of float64: `(n · channels, steps, bins or bands)`. Where XLA compiles for a processor, one row
    is computed after the other: frames are several times as large as the sound, and those of a row stay in the cache (0.6 of the time).
    """

    def computed(rows: tf.Tensor) -> tf.Tensor:
        spectra = spectrogram(rows, analysis)
        return spectra if mel is None else mel_bands(spectra, mel)

    rows = by_channel(sounds)
    if not by_xla.get() or target() == "device" or None in rows.shape or rows.shape[0] == 1:
        return computed(rows)
    count, length = map(int, rows.shape)
    shape = [analysis.steps(length), analysis.bins if mel is None else mel.bands]

    def step(row: tf.Tensor, done: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        return row + 1, done.write(row, computed(tf.slice(rows, [row, 0], [1, length]))[0])

    begun = tf.TensorArray(rows.dtype, count, element_shape=shape)
    _, done = tf.while_loop(lambda row, _: row < count, step, (tf.constant(0), begun), maximum_iterations=count)
    return done.stack()


def spectrogram(rows: tf.Tensor, analysis: Analysis) -> tf.Tensor:
    """Computes |X| or |X|² of each frame of rows of samples `(n, frames)`: `(n, steps, bins)`."""
    frames = framed(rows, analysis)
    if target() == "converter":
        real, imaginary = (_times(frames, part) for part in _fourier(analysis.window, analysis.fft))
    else:
        spectra = tf.signal.rfft(frames, [analysis.fft])
        real, imaginary = tf.math.real(spectra), tf.math.imag(spectra)
    power = real * real + imaginary * imaginary
    return power if analysis.power == 2 else tf.sqrt(power)


def by_channel(sounds: tf.Tensor) -> tf.Tensor:
    """Puts each channel of sounds `(n, frames, channels)` in a row of its own: `(n · channels, frames)`, float32 or float64."""
    sounds = tf.cast(sounds, working(sounds))
    frames = tf.shape(sounds)[1] if sounds.shape[1] is None else sounds.shape[1]
    several = sounds.shape[2] > 1
    return tf.reshape(tf.transpose(sounds, [0, 2, 1]) if several else sounds, [-1, frames])


def of_channels(values: tf.Tensor, channels: int) -> tf.Tensor:
    """Puts values `(n · channels, steps, bands)` of single channels together: `(n, steps, bands, channels)`."""
    steps = tf.shape(values)[1] if values.shape[1] is None else values.shape[1]
    bands = int(values.shape[2])
    if channels == 1:
        return tf.reshape(values, [-1, steps, bands, 1])
    return tf.transpose(tf.reshape(values, [-1, channels, steps, bands]), [0, 2, 3, 1])


_MOST_BLOCKS = 64  # parts of a window that are put together; more would make a large graph


def framed(rows: tf.Tensor, analysis: Analysis) -> tf.Tensor:
    """Cuts rows of samples `(n, frames)` into windows, weighted: `(n, steps, window)`. Fails if a row of unknown length is too short for
    one step; known lengths are checked by `infer`."""
    given = rows.shape[1] if rows.shape[1] is not None else tf.shape(rows)[1]
    steps = analysis.steps(given)
    if not isinstance(given, int) or tf.executing_eagerly():  # one example by itself, whose record an error has to name
        message = f"a spectrogram needs sounds of {analysis.needed():,} samples or more, and this one has "
        said = tf.strings.join([message, tf.strings.as_string(given)])
        enough = tf.raw_ops.Assert(condition=given >= analysis.needed(), data=[said])
        with tf.control_dependencies([enough] if enough is not None else []):
            rows = tf.identity(rows)
    window, hop = analysis.window, analysis.hop
    several = -(-window // hop)  # rows of `hop` samples that a window reads
    held = surrounded(rows, analysis.before, (steps - 1) * hop + window, (steps - 1 + several) * hop, analysis.pad)
    share, starts = analysis.pre_emphasis, slice(None, (steps - 1) * hop + 1, hop)
    heard = held - share * tf.concat([held[:, :1], held[:, :-1]], 1) if share else held
    if several > _MOST_BLOCKS:
        frames = tf.signal.frame(heard, window, hop)[:, :steps]
    else:
        blocks = tf.reshape(heard, [-1, steps - 1 + several, hop])
        frames = tf.concat([blocks[:, j : j + steps, : min(hop, window - j * hop)] for j in range(several)], -1)
    own = np.array(analysis.weights()) * analysis.full_scale
    if share and own[0]:  # before the first sample of a window is the sample itself
        frames = tf.concat([held[:, starts, None] * (1 - share), frames[:, :, 1:]], -1)
    if analysis.remove_mean:  # of the samples, so that silence behind a loud sample is exactly 0
        frames = frames - (1 - share) * _means(held, steps, analysis)
    return frames * tf.constant(own, rows.dtype)


def _means(held: tf.Tensor, steps: Whole, analysis: Analysis) -> tf.Tensor:
    """The mean of each window of rows of samples: `(n, steps, 1)`, by sums of `hop` samples, which windows share."""
    window, hop = analysis.window, analysis.hop
    several = -(-window // hop)
    if several > _MOST_BLOCKS:
        return _times(tf.signal.frame(held, window, hop)[:, :steps], np.full((window, 1), 1 / window))
    last = np.arange(hop) < window - (several - 1) * hop
    sums = _times(tf.reshape(held, [-1, steps - 1 + several, hop]), np.stack([np.ones(hop), last], -1) / window)
    whole = (sums[:, j : j + steps, :1] for j in range(several - 1))
    return sum(whole, sums[:, several - 1 : several - 1 + steps, 1:])


def surrounded(rows: tf.Tensor, before: int, used: Whole, total: Whole, outside: Outside) -> tf.Tensor:
    """Returns `total` samples of each row `(n, frames)` from the sample `-before` on, of which `used` may lie outside and show what
    `outside` says; those after are not read."""
    if before < 0:
        rows, before = rows[:, -before:], 0
    length = rows.shape[1] if rows.shape[1] is not None else tf.shape(rows)[1]
    known = isinstance(length, int) and isinstance(total, int)
    after = _at_least_0(total - before - length, known=known)
    if outside == "zero":
        padded = tf.pad(rows, [[0, 0], [before, after]])
    else:
        shown = _at_least_0(used - before - length, known=known)
        head, tail = (
            tf.gather(rows, _inside(lines, length, outside), axis=1) for lines in (tf.range(-before, 0), tf.range(length, length + shown))
        )
        padded = tf.pad(tf.concat([head, rows, tail], 1), [[0, 0], [0, after - shown]])
    return padded[:, :total]


def _at_least_0(number: Whole, *, known: bool) -> Whole:
    return max(number, 0) if known else tf.maximum(number, 0)


def _inside(lines: tf.Tensor, length: Whole, outside: Outside) -> tf.Tensor:
    """Places of the samples that show at places outside: the outermost, or reflected ones, repeating it or not."""
    if outside == "edge":
        return tf.clip_by_value(lines, 0, length - 1)
    if outside == "symmetric":
        return reflect(lines, length)
    period = tf.maximum(2 * (length - 1), 1)
    lines = tf.math.floormod(lines, period)
    return tf.minimum(lines, period - lines)


def _fourier(window: int, fft: int) -> tuple[Array, Array]:
    """The real and the imaginary part of the Fourier transform of real windows as matrices `(window, bins)`."""
    turns = np.outer(np.arange(window), np.arange(fft // 2 + 1)) % fft * (2.0 * math.pi / fft)
    return np.cos(turns), -np.sin(turns)


def _times(values: tf.Tensor, matrix: Array) -> tf.Tensor:
    """Multiplies vectors `(n, steps, k)` by a float64 matrix `(k, m)`: `(n, steps, m)`, as one product of two matrices."""
    steps = tf.shape(values)[1] if values.shape[1] is None else values.shape[1]
    done = product(tf.reshape(values, [-1, matrix.shape[0]]), tf.constant(matrix, values.dtype))
    return tf.reshape(done, [-1, steps, matrix.shape[1]])


_PRODUCT = 1300  # what one more product costs, in multiplications of a step
_BAND_STEP = 8  # products have a multiple of so many bands


def mel_bands(spectra: tf.Tensor, mel: Mel) -> tf.Tensor:
    """Sums spectra `(n, steps, bins)` into bands, `(n, steps, bands)`: a few products, each of neighbouring bands and the bins that they
    use."""
    filters, parts = mel.filters(), []
    for first, last in groups(filters):
        used = [number for own in filters[first:last] for number, _ in own]
        low, high = (min(used), max(used) + 1) if used else (0, 1)
        matrix = np.zeros((high - low, last - first))
        for band in range(first, last):
            for number, weight in filters[band]:
                matrix[number - low, band - first] = weight
        parts.append(_times(spectra[:, :, low:high], matrix))
    return parts[0] if len(parts) == 1 else tf.concat(parts, -1)


@cache
def groups(filters: Filters) -> tuple[tuple[int, int], ...]:
    """Divides bands into runs, (first, last + 1), whose products with the bins that they use cost least in all: the shortest way from band
    0 to the last one, where a run costs its bands times its bins, and `_PRODUCT`."""
    count = len(filters)
    cuts = [*range(0, count, _BAND_STEP), count]
    best: dict[int, tuple[float, int]] = {0: (0.0, 0)}  # the cost up to a cut, and the cut before it
    for place, end in enumerate(cuts[1:], 1):
        ways = []
        for begin in cuts[:place]:
            used = [number for own in filters[begin:end] for number, _ in own] or [0]
            ways.append((best[begin][0] + (end - begin) * (max(used) + 1 - min(used)) + _PRODUCT, begin))
        best[end] = min(ways)
    found, end = [], count
    while end:
        begin = best[end][1]
        found.append((begin, end))
        end = begin
    return tuple(reversed(found))


def transformed(values: tf.Tensor, matrix: Sequence[Sequence[float]]) -> tf.Tensor:
    """Multiplies vectors `(n, steps, bands)` by the rows of a matrix, such as the cosines of `mfcc`: `(n, steps, rows)`."""
    return _times(values, np.array(matrix).T)


def logarithm(values: tf.Tensor, scale: LogScale, power: int) -> tf.Tensor:
    """Computes the logarithm of the values of examples `(n, ...)` as `scale` says, for |X| to a `power`. What lies `top` below the largest
    value of an example is raised before the logarithm, so that none is computed twice."""
    if scale.offset is not None:
        values = values + tf.constant(scale.offset, values.dtype)
    low = tf.constant(scale.lowest(power), values.dtype)
    if scale.top is not None:
        peak = tf.reduce_max(values, list(range(1, values.shape.rank)), keepdims=True)
        low = tf.maximum(low, peak * tf.constant(scale.share_of_top(power), values.dtype))
    found = tf.math.log(tf.maximum(values, low)) * tf.constant(scale.unit(power), values.dtype)
    return found + tf.constant(scale.shift, values.dtype) if scale.shift else found
