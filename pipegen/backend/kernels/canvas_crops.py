"""Crop and resize, for a whole batch, of images of several sizes on canvases of one size.

The bits are those of TensorFlow's `ResizeBilinear` on the cropped window: the same float32 products and sums in the same order, columns
before rows. Positions are computed in float64 and rounded to float32 where that kernel rounds.
"""

from __future__ import annotations

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.index.draws import own_draws, step_of
from pipegen.backend.kernels.geometry_kernels import product
from pipegen.backend.kernels.reuse import finished
from pipegen.ops.families.crops import CanvasCrop, place_name, size_name, store_name
from pipegen.ops.lowering.linear import as_float32, nearest_float32

BYTES = 8  # bytes of a word


def as_words(values: tf.Tensor) -> tf.Tensor:
    """Casts bytes to little-endian words: uint8 `(...)` to uint64 `(m,)`; the last word is padded with zeros.

    Outside XLA nothing is copied if the bytes fill whole words.
    """
    flat = tf.reshape(values, [-1])
    if values.shape.num_elements() is None or values.shape.num_elements() % BYTES:
        flat = tf.pad(flat, [[0, -tf.size(flat) % BYTES]])
    return tf.bitcast(tf.reshape(flat, [-1, BYTES]), tf.uint64)


def read_words(words: tf.Tensor, start: tf.Tensor, behind: tf.Tensor) -> tf.Tensor:
    """Reads eight bytes at any offset as a word, uint64 `(n, k)`; bytes after the last word are undefined.

    Args:
        words: uint64 `(m,)`.
        start: Byte offsets, int64 `(n, 1)`.
        behind: Byte offsets from those, int32 `(n, k)`.
    """
    at = tf.cast(tf.bitwise.bitwise_and(start, BYTES - 1), tf.int32) + behind
    index = tf.bitwise.right_shift(start, 3) + tf.cast(tf.bitwise.right_shift(at, 3), tf.int64)
    shift = tf.cast(tf.bitwise.bitwise_and(at, BYTES - 1) * 8, tf.uint64)
    last = tf.shape(words, tf.int64)[0] - 1
    low, high = (tf.gather(words, tf.minimum(i, last)) for i in (index, index + 1))
    # Two shifts: an aligned word would need one by 64 bits, which is undefined.
    one, most = tf.constant(1, tf.uint64), tf.constant(63, tf.uint64)
    above = tf.bitwise.left_shift(tf.bitwise.left_shift(high, one), most - shift)
    return tf.bitwise.bitwise_or(tf.bitwise.right_shift(low, shift), above)


def planes(word: tf.Tensor, count: int) -> tf.Tensor:
    """Splits the first bytes of words into planes: uint64 `(n, k)` to uint8 `(n, count, k)`."""
    shifts = tf.range(count, dtype=tf.int32) * 8
    shifted = tf.bitwise.right_shift(word[:, None], tf.cast(shifts, tf.uint64)[:, None])
    return tf.cast(tf.bitwise.bitwise_and(shifted, tf.constant(255, tf.uint64)), tf.uint8)


_AT_ONCE = 1 << 20  # bytes read at a time: they stay in the processor's cache until they are unpacked
_WHOLE = 12582912.0  # 1.5 · 2^23: added to a number below 2^22, it leaves the number, rounded half to even, in the last bits of the sum


def canvas_crop_params(stage: CanvasCrop, features: Features) -> Params:
    """Computes the byte offset of each image, int64 `(n,)`; the two rows, int32, and the position between them, float32, of each output row
    `(n, height)`; the first of two columns and the position between them of each output column `(n, width)`; and zeros, int32 `(n,)`."""
    draws = features["@draws"]
    n = tf.shape(draws)[0]
    at = features.get(place_name(stage.feature))
    if at is None:
        at = tf.range(tf.cast(n, tf.int64)) * (stage.canvas[0] * stage.canvas[1] * stage.channels)
    given = features.get(size_name(stage.feature))
    size = tf.tile(tf.constant([stage.canvas]), [n, 1]) if given is None else tf.cast(given, tf.int32)
    window = step_of(stage.ref, draws).window(own_draws(stage.ref, draws), size[:, 0], size[:, 1])
    top, left, height, width = tf.unstack(tf.broadcast_to(window, [n, 4]), axis=-1)
    down, across = _line(top, height, stage.size[0]), _line(left, width, stage.size[1])
    if stage.mirrors:
        matrix = product(stage.mirrors, draws, *(tf.constant(float(side), tf.float64) for side in stage.size))
        flip = matrix[:, 1, 1] < 0, matrix[:, 0, 0] < 0
        down, across = (tuple(tf.where(f[:, None], t[:, ::-1], t) for t in axis) for axis, f in zip((down, across), flip, strict=True))
    left, right, between = across
    # If both columns are the same one, its neighbour must get no weight.
    return (at, *down, left, tf.where(left == right, 0.0, between), tf.zeros_like(top))


def _line(start: tf.Tensor, extent: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds the positions that `count` pixels read in a window, as TensorFlow's resize does with half pixel centres."""
    scale = nearest_float32(tf.cast(extent, tf.float64) / tf.constant(float(count), tf.float64))
    centre = tf.range(count, dtype=tf.float64) + 0.5
    at = nearest_float32(nearest_float32(centre[None] * scale[:, None]) - 0.5)
    below = tf.floor(at)
    first = tf.maximum(tf.cast(below, tf.int32), 0)
    second = tf.minimum(tf.cast(tf.math.ceil(at), tf.int32), extent[:, None] - 1)
    return start[:, None] + first, start[:, None] + second, as_float32(at - below)


def canvas_words(stage: CanvasCrop, features: Features) -> tf.Tensor:
    """Returns the memory of the images as 64-bit words `(m,)`: the store, or their canvases."""
    stored = features.get(store_name(stage.feature))
    return as_words(features[stage.feature]) if stored is None else stored


def canvas_crop(stage: CanvasCrop, words: tf.Tensor, params: Params) -> tf.Tensor:
    """Interpolates columns, then rows, and rounds half to even."""
    at, top, bottom, down, first, across, zero = params
    listed = _Listed(stage, at, top, bottom)
    pairs = _pairs(stage, words, listed, first)
    zero = zero[:, None, None, None]

    def row(place: tf.Tensor) -> tf.Tensor:
        sides = tf.cast(tf.gather(pairs, place), tf.float32)
        return _between(sides[:, :, : stage.channels], sides[:, :, stage.channels :], across[:, None, None], zero)

    mixed = _between(row(listed.top), row(listed.bottom), down[:, :, None, None], zero)
    whole = tf.bitwise.bitwise_and(tf.bitcast(mixed + _WHOLE, tf.int32), 255)
    return tf.cast(tf.transpose(whole, [0, 1, 3, 2]), tf.uint8)


class _Listed:
    """The rows of the store that a batch needs, image by image, each once: an enlarged window has few.

    Attributes:
        most: The largest possible number of rows, int or int32 scalar.
        total: The number of rows, int32 scalar.
        top: The index in the list of the first of two rows for each row of the output, int32 `(n, height)`.
        bottom: That of the second row.
    """

    def __init__(self, stage: CanvasCrop, at: tf.Tensor, top: tf.Tensor, bottom: tf.Tensor) -> None:
        n, height = at.shape[0] or tf.shape(at)[0], stage.size[0]
        self._stage, self._at = stage, at
        self._rows = tf.reshape(tf.stack([top, bottom], -1), [-1])
        self._low = tf.reduce_min(top, 1)
        span = tf.reduce_max(bottom, 1) - self._low + 1
        self._apart = span > 2 * height  # the rows between them are not needed
        count = tf.minimum(span, 2 * height)
        self._start = tf.cumsum(count, exclusive=True)
        self.most, self.total = n * min(stage.canvas[0], 2 * height), tf.reduce_sum(count)
        places = (tf.where(self._apart[:, None], 2 * tf.range(height) + i, y - self._low[:, None]) for i, y in enumerate((top, bottom)))
        self.top, self.bottom = (self._start[:, None] + place for place in places)

    def part(self, begin: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the image of each of `count` listed rows, int32 `(count,)`, and the byte offset of the row, int64 `(count, 1)`."""
        place = begin + tf.range(count)
        image = tf.reduce_sum(tf.cast(place[:, None] >= self._start, tf.int32), 1) - 1
        within = place - tf.gather(self._start, image)
        alone = tf.gather(self._rows, tf.minimum(image * 2 * self._stage.size[0] + within, tf.size(self._rows) - 1))
        row = tf.where(tf.gather(self._apart, image), alone, tf.gather(self._low, image) + within)
        row = tf.minimum(row, self._stage.canvas[0] - 1)
        stride = self._stage.canvas[1] * self._stage.channels
        return image, (tf.gather(self._at, image) + tf.cast(row, tf.int64) * stride)[:, None]


def _pairs(stage: CanvasCrop, words: tf.Tensor, listed: _Listed, first: tf.Tensor) -> tf.Tensor:
    """Reads two neighbouring columns for each column of the output, in all listed rows: uint8 `(rows, 2 · channels, width)`, first the
    planes of the left columns, then those of the right ones."""
    width, channels = stage.size[1], stage.channels
    behind = first * channels
    at_once = max(1, _AT_ONCE // (width * BYTES))
    count = -(-listed.most // at_once)

    def step(i: tf.Tensor, found: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        image, start = listed.part(i * at_once, at_once)

        def read(further: int) -> tf.Tensor:
            # Fused with the unpacking of bytes, XLA would read each word again for every byte.
            return finished(listed.total > 0, lambda: read_words(words, start, tf.gather(behind, image) + further))

        if 2 * channels <= BYTES:
            return i + 1, found.write(i, planes(read(0), 2 * channels))
        parts = [planes(read(at), min(BYTES, 2 * channels - at)) for at in range(0, 2 * channels, BYTES)]
        return i + 1, found.write(i, tf.concat(parts, 1))

    found = tf.TensorArray(tf.uint8, count, element_shape=[at_once, 2 * channels, width])
    _, found = tf.while_loop(lambda i, _: i * at_once < listed.total, step, (tf.constant(0), found), maximum_iterations=count)
    return tf.reshape(found.stack(), [-1, 2 * channels, width])


def _between(a: tf.Tensor, b: tf.Tensor, weight: tf.Tensor, zero: tf.Tensor) -> tf.Tensor:
    """`a` + (`b` - `a`) · `weight` with three roundings: an exclusive or with zeros, unknown to the compiler, prevents a fused
    multiply-add, which rounds once."""
    product = tf.bitcast(tf.bitwise.bitwise_xor(tf.bitcast((b - a) * weight, tf.int32), zero), tf.float32)
    return a + product
