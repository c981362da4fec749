"""Means and standard deviations of images and sounds, and ZCA whitening."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from pipegen.errors import DataError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.learned import Moments, Whitening
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.linear import as_float32, product, working
from pipegen.ops.lowering.windows import Whole

Per = Literal["channel", "band"] | None
"""What has a mean of its own: each channel, each channel of each band of spectra, or the whole example."""


def sample_moments(images: tf.Tensor, per: Per = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the mean and the standard deviation of each image over all its pixels and channels, of images `(n, height, width,
    channels)`, or of samples and spectra of sound: float64 `(n,)`, `(n, channels)` or `(n, bands, channels)`.

    Sums of integers and of their squares are exact in any order: a side is below 2^15, so that the squares of a column of bytes fit 32
    bits. Floats are summed in float64, and the distances from the mean in a second pass. Rows are added first, which costs XLA a fraction
    of adding single values.
    """
    height, width, channels = sides(_in_lines(images))
    lines = tf.reshape(images, [-1, height, width * channels])
    exact = tf.int32 if images.dtype == tf.uint8 else tf.float64
    own = {None: 1, "channel": channels, "band": width * channels}[per]
    count = tf.cast(height * width * channels // own, tf.float64)

    def mean_of(values: tf.Tensor) -> tf.Tensor:
        columns = tf.cast(tf.reduce_sum(values, 1), tf.float64)
        if per is not None:
            columns = tf.reshape(columns, [-1, width * channels // own, own])
        return tf.reduce_sum(columns, 1) / count

    x = tf.cast(lines, exact)
    mean = mean_of(x)
    if images.dtype.is_integer:
        std = tf.sqrt(tf.maximum(mean_of(x * x) - mean * mean, 0.0))
    else:
        std = tf.sqrt(mean_of(tf.square(x - _spread(mean, width, per))))
    return (mean, std) if per != "band" else tuple(tf.reshape(part, [-1, width, channels]) for part in (mean, std))


def _spread(mean: tf.Tensor, width: Whole, per: Per) -> tf.Tensor:
    """Repeats the means for the columns of lines `(n, height, width · channels)`."""
    if per is None:
        return mean[:, None, None]
    return mean[:, None, :] if per == "band" else tf.tile(mean, [1, width])[:, None, :]


_COLUMNS = 1024  # samples that are added side by side, at most


def _in_lines(values: tf.Tensor) -> tf.Tensor:
    """Reshapes samples of sound `(n, frames, channels)` to lines, as images have them, so that sums run side by side: `(n, lines, samples,
    channels)`; lines of one sample if the frames are unknown. Others stay."""
    if values.shape.rank == 4:
        return values
    frames, channels = values.shape[1:]
    width = math.gcd(frames, _COLUMNS) if frames is not None else 1
    return tf.reshape(values, [-1, tf.shape(values)[1] // width if frames is None else frames // width, width, channels])


def own_moments(values: tf.Tensor, per: Per = None) -> tf.Tensor:
    """Computes count, mean and sum of squared distances from it, for each channel of one image `(height, width, channels)` or sound, or
    for each channel of each band of spectra `(steps, bands, channels)`: float64 `(3, 1, channels)` or `(3, 1, bands · channels)`."""
    x = tf.cast(values, tf.float64)
    axes = [0] if per == "band" else list(range(values.shape.rank - 1))
    count = tf.cast(tf.reduce_prod(tf.shape(values)[: len(axes)]), tf.float64)
    mean = tf.reduce_sum(x, axes) / count
    squares = tf.reduce_sum(tf.square(x - mean), axes)
    return tf.reshape(tf.stack([tf.fill(tf.shape(mean), count), mean, squares]), [3, 1, math.prod(mean.shape)])


def gathered(batches: Iterable[np.ndarray[Any, Any]]) -> Moments:
    """Combines moments: stacked results of `own_moments`, float64 `(n, 3, 1, ...)` each; `ValueError` without examples."""
    total: Moments | None = None
    for batch in batches:
        parts = [Moments(round(count[0]), tuple(mean), tuple(squares)) for count, mean, squares in batch[:, :, 0, :].tolist()]
        total = Moments.of(parts if total is None else [total, *parts])
    return total if total is not None else Moments.of(())


Array: TypeAlias = "np.ndarray[Any, Any]"

_ROWS = 1024  # images whose products are summed at a time: for fewer, adding the matrices would take longer than the products


class Covariance:
    """The mean, float64 `(values,)`, and the sum of the products of distances from it, `(values, values)`, of `count` vectors, from one
    pass over blocks of them.

    A block is centred on its own mean. With n vectors seen and m in the block, whose means lie d apart, the sum of the products grows by
    those of the block and by d dᵀ · nm / (n + m) (T. Chan, G. Golub and R. LeVeque, Updating Formulae and a Pairwise Algorithm for
    Computing Sample Variances, 1979): no product of large values is ever subtracted from another.
    """

    def __init__(self, values: int) -> None:
        self.count = 0
        self.mean = np.zeros(values)
        self.products = np.zeros((values, values))

    def add(self, block: Array) -> None:
        """Adds float64 `(n, values)`; `DataError` for values that are not finite."""
        n, total = len(block), self.count + len(block)
        own = block.mean(0)
        if not np.isfinite(own).all():
            raise DataError("images of the training split hold values that are not finite, so they cannot be whitened")
        apart = own - self.mean
        rows = np.concatenate([block - own, apart[None] * np.sqrt(self.count * n / total)])
        self.products += rows.T @ rows
        self.mean += apart * (n / total)
        self.count = total


def fitted(batches: Iterable[Array], epsilon: float, *, by_channel: bool) -> Whitening:
    """Fits the transform that whitens images, from batches of float64 `(n, height, width, channels)`; see `zca`. With `by_channel`, each
    channel has one mean. Raises `ValueError` without images, and `DataError` if a value is not finite."""
    found: Covariance | None = None
    waiting: list[Array] = []
    channels = 1
    for batch in batches:
        rows, channels = batch.reshape(len(batch), -1), batch.shape[-1]
        found = found or Covariance(rows.shape[1])
        waiting.append(rows)
        if sum(map(len, waiting)) >= _ROWS:
            found.add(np.concatenate(waiting))
            waiting = []
    if found is None:
        raise ValueError("no images to compute the covariance of")
    if waiting:
        found.add(np.concatenate(waiting))
    return zca(found, epsilon, channels if by_channel else None)


def zca(found: Covariance, epsilon: float, channels: int | None = None) -> Whitening:
    """Computes the ZCA transform U · diag(1 / √(variance + epsilon)) · Uᵀ, for the covariance U · diag(variance) · Uᵀ. Given a number of
    `channels`, each value is centred on the mean of its channel, else on its own mean.

    Of all whitening transforms, it changes images least: A. Bell and T. Sejnowski, The "Independent Components" of Natural Scenes are Edge
    Filters (1997), and A. Kessy, A. Lewin and K. Strimmer, Optimal Whitening and Decorrelation (2018).
    """
    matrix, mean = found.products, found.mean  # the matrix may be large, so it is changed in place
    matrix /= found.count
    if channels is not None:
        mean = np.tile(mean.reshape(-1, channels).mean(0), len(mean) // channels)
        apart = found.mean - mean
        matrix += np.outer(apart, apart)
    variances, vectors = np.linalg.eigh(matrix)
    variances = np.maximum(variances, 0.0)  # rounding may leave the smallest just below
    np.matmul(vectors / np.sqrt(variances + epsilon), vectors.T, out=matrix)
    return Whitening.of(found.count, epsilon, mean, matrix.astype(np.float32), variances)


_TENSORS: WeakKeyDictionary[Whitening, tuple[tf.Tensor, ...]] = WeakKeyDictionary()  # a copy of each matrix for all kernels of a process


def whiten(images: tf.Tensor, numbers: Whitening | None) -> tf.Tensor:
    """Whitens images `(n, height, width, channels)` with static sides, to float32: one matrix product for a batch. Without numbers, NaN."""
    if numbers is None:
        return tf.fill(tf.shape(images), tf.constant(float("nan")))
    if numbers not in _TENSORS:  # eager tensors, which functions capture: as a constant, each program would have a copy of the matrix
        mean = np.round(numbers.mean * 256.0) / 256.0  # so that a byte's distance from it is exact; the rest corrects the rounding
        correction = (mean - numbers.mean) @ numbers.matrix
        with tf.init_scope(), tf.device("CPU:0"):
            _TENSORS[numbers] = (tf.constant(mean, tf.float32), tf.constant(numbers.matrix), tf.constant(correction, tf.float32))
    shift, matrix, rest = (tf.cast(part, working(images)) for part in _TENSORS[numbers])
    rows = tf.reshape(tf.cast(images, working(images)), [-1, len(numbers.mean)])
    return as_float32(tf.reshape(product(rows - shift, matrix) + rest, [-1, *images.shape[1:]]))


Tiles: TypeAlias = "tuple[int, int]"  # rows and columns of tiles

_LUMA = (4899, 9617, 1868)  # the weights of red, green and blue in luma (ITU-R BT.601), in 1/2^14
_BITS = 10  # bits of the weights of rows and columns of tiles, which are integers
_RUN = 16


def luma(images: tf.Tensor) -> tf.Tensor:
    """Computes the luma of RGB bytes, rounded to bytes: `(n, height, width, 1)`; gray stays."""
    if images.shape[-1] == 1:
        return images
    total = tf.reduce_sum(tf.cast(images, tf.int32) * tf.constant(_LUMA, tf.int32), -1, keepdims=True)
    return tf.cast(tf.bitwise.right_shift(total + (1 << 13), 14), tf.uint8)


def tile_counts(plane: tf.Tensor, tiles: Tiles) -> tf.Tensor:
    """Counts the pixels of each value in each tile: int32 `(n, channels, rows, columns, 256)`, from bytes `(n, height, width, channels)`.
    Image by image, so that the indices stay in the processor's cache."""
    height, width, channels = sides(plane)
    down, across = tile_sides(height, width, tiles)
    rows, columns = tf.range(down * tiles[0]), tf.range(across * tiles[1])
    tile = (rows // down)[:, None] * tiles[1] + (columns // across)[None, :]
    first = (tile[..., None] + tf.range(channels) * (tiles[0] * tiles[1])) * 256
    inside = _reflected(rows, height), _reflected(columns, width)
    whole = isinstance(height, int) and isinstance(width, int) and (down * tiles[0], across * tiles[1]) == (height, width)
    size = channels * tiles[0] * tiles[1] * 256

    def one(single: tf.Tensor) -> tf.Tensor:
        given = single if whole else tf.gather(tf.gather(single, inside[0], axis=0), inside[1], axis=1)
        places = tf.reshape(first + tf.cast(given, tf.int32), [-1, 1])
        return tf.tensor_scatter_nd_add(tf.zeros([size], tf.int32), places, tf.ones([tf.shape(places)[0]], tf.int32))

    counts = tf.map_fn(one, plane, fn_output_signature=tf.TensorSpec([size], tf.int32))
    return tf.reshape(counts, [-1, channels, *tiles, 256])


def tile_tables(counts: tf.Tensor, limit: tf.Tensor, area: Whole) -> tf.Tensor:
    """Computes the table of each tile, uint8 `(n, channels, rows, columns, 256)`, from its counts, which are int32 from `tile_counts`, and
    its `area` in pixels.

    Counts above the limit, float64 `(n,)` in multiples of the mean count (0 for none), are spread over all values evenly, and the remainder
    over evenly spaced values.
    """
    most = tf.maximum(tf.cast(tf.floor(limit * tf.cast(area, tf.float64) / 256.0), tf.int32), 1)
    most = tf.where(limit > 0, most, tf.cast(area, tf.int32))[:, None, None, None, None]
    cut = tf.reduce_sum(tf.maximum(counts - most, 0), -1, keepdims=True)
    left = cut % 256
    step = tf.maximum(256 // tf.maximum(left, 1), 1)
    value = tf.range(256)
    extra = tf.cast(tf.logical_and(value % step == 0, value // step < left), tf.int32)
    even = tf.minimum(counts, most) + cut // 256 + extra
    scale = tf.constant(255.0, tf.float32) / tf.cast(area, tf.float32)
    # Cumulative sums as products with a triangular matrix, 16 by 16: integers below 2^24, which float32 holds.
    lower = tf.linalg.band_part(tf.ones([_RUN, _RUN]), 0, -1)
    runs = tf.reshape(tf.cast(even, tf.float32), [-1, _RUN])
    own = tf.reshape(product(runs, lower), [-1, _RUN, _RUN])
    before = product(tf.reduce_sum(tf.reshape(runs, [-1, _RUN, _RUN]), -1), lower - tf.eye(_RUN))
    running = tf.reshape(own + before[..., None], tf.shape(even))
    return tf.cast(tf.clip_by_value(tf.round(running * scale), 0.0, 255.0), tf.uint8)


def corners(tables: tf.Tensor) -> tf.Tensor:
    """Packs the four tables around each corner of tiles, a byte each of an int32: `(n, channels · (rows + 1) · (columns + 1) · 256)`."""
    rows, columns = int(tables.shape[2]), int(tables.shape[3])
    across = tf.concat([tables[:, :, :, :1], tables, tables[:, :, :, -1:]], 3)
    around = tf.concat([across[:, :, :1], across, across[:, :, -1:]], 2)
    parts = [around[:, :, down : down + rows + 1, right : right + columns + 1] for down in range(2) for right in range(2)]
    found = [tf.bitwise.left_shift(tf.cast(part, tf.int32), 8 * number) for number, part in enumerate(parts)]
    return tf.reshape(reduce(tf.bitwise.bitwise_or, found), [-1, int(tables.shape[1]) * (rows + 1) * (columns + 1) * 256])


def blended(plane: tf.Tensor, quads: tf.Tensor, tiles: Tiles) -> tf.Tensor:
    """Blends the four tables around each pixel of bytes `(n, height, width, channels)`: int32 of the same shape."""
    height, width, channels = sides(plane)
    down, across = tile_sides(height, width, tiles)
    (row, below), (column, beside) = _places(height, down), _places(width, across)
    first = (row[:, None] * (tiles[1] + 1) + column[None, :])[..., None] + tf.range(channels) * ((tiles[0] + 1) * (tiles[1] + 1))
    index = first * 256 + tf.cast(plane, tf.int32)
    n = tf.shape(plane)[0] if plane.shape[0] is None else plane.shape[0]
    read = tf.reshape(tf.gather(quads, tf.reshape(index, [n, -1]), batch_dims=1), tf.shape(index))
    byte = [tf.bitwise.bitwise_and(tf.bitwise.right_shift(read, 8 * number), 255) for number in range(4)]
    one = 1 << _BITS
    below, beside = below[:, None, None], beside[None, :, None]
    upper, lower = (left * (one - beside) + right * beside for left, right in (byte[:2], byte[2:]))
    return rounded_shift(upper * (one - below) + lower * below, 2 * _BITS)


def tile_sides(height: Whole, width: Whole, tiles: Tiles) -> tuple[Whole, Whole]:
    """Returns the height and width of a tile, in pixels. An image that is not a multiple is reflected at the right and below; if only one
    side is not, the other gets one more pixel a tile, too."""
    down, across = tiles
    uneven = (height % down + width % across + down + across - 1) // (down + across)  # 1 if anything is left over, for ints and tensors
    return height // down + uneven, width // across + uneven


def _places(length: Whole, tile: Whole) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the pair of tiles around each line, counted from 0 before the first tile, and the weight of the second one."""
    from_middle = 2 * tf.range(length) + tile
    return from_middle // (2 * tile), ((from_middle % (2 * tile)) * (1 << _BITS) + tile) // (2 * tile)


def _reflected(line: tf.Tensor, length: Whole) -> tf.Tensor:
    """Reflects lines into the image (abc|b), without repeating the edge."""
    period = tf.maximum(2 * (length - 1), 1)
    line = line % period
    return tf.minimum(tf.minimum(line, period - line), length - 1)
