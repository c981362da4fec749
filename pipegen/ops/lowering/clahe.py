"""Contrast-limited adaptive histogram equalisation of bytes, in integers, as in OpenCV's `createCLAHE`.

XLA on a CPU computes a value again for each reader, so it is a chain of functions, each compiled separately: a plane of bytes, counts of
each tile, tables, and the blend of four tables.
"""

from __future__ import annotations

from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.filters import Whole, rounded_shift, sides
from pipegen.ops.lowering.linear import product

Tiles: TypeAlias = "tuple[int, int]"
"""Rows and columns of tiles."""

_LUMA = (4899, 9617, 1868)
"""The weights of red, green and blue in luma (ITU-R BT.601), in 1/2^14."""
_BITS = 10
"""Bits of the weights of rows and columns of tiles, which are integers."""
_RUN = 16


def luma(images: tf.Tensor) -> tf.Tensor:
    """Computes the luma of RGB bytes, rounded to bytes: `(n, height, width, 1)`; gray stays."""
    if images.shape[-1] == 1:
        return images
    total = tf.reduce_sum(tf.cast(images, tf.int32) * tf.constant(_LUMA, tf.int32), -1, keepdims=True)
    return tf.cast(tf.bitwise.right_shift(total + (1 << 13), 14), tf.uint8)


def tile_counts(plane: tf.Tensor, tiles: Tiles) -> tf.Tensor:
    """Counts the pixels of each value in each tile: int32 `(n, channels, rows, columns, 256)`, from bytes `(n, height, width, channels)`.

    Image by image, so that the indices stay in the processor's cache.
    """
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
    """Computes the table of each tile, uint8 `(n, channels, rows, columns, 256)`, from its counts.

    Counts above the limit are spread over all values evenly, and the remainder over evenly spaced values.

    Args:
        counts: int32, from `tile_counts`.
        limit: float64 `(n,)`: the largest count of a value, in multiples of the mean; 0 for no limit.
        area: The pixels of a tile.
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
    return tf.cast(tf.clip_by_value(tf.round(tf.cast(_running(even), tf.float32) * scale), 0.0, 255.0), tf.uint8)


def corners(tables: tf.Tensor) -> tf.Tensor:
    """Packs the four tables around each corner of tiles, a byte each of an int32: `(n, channels · (rows + 1) · (columns + 1) · 256)`."""
    rows, columns = int(tables.shape[2]), int(tables.shape[3])
    across = tf.concat([tables[:, :, :, :1], tables, tables[:, :, :, -1:]], 3)
    around = tf.concat([across[:, :, :1], across, across[:, :, -1:]], 2)
    found = None
    for number in range(4):
        down, right = number // 2, number % 2
        part = around[:, :, down : down + rows + 1, right : right + columns + 1]
        part = tf.bitwise.left_shift(tf.cast(part, tf.int32), 8 * number)
        found = part if found is None else tf.bitwise.bitwise_or(found, part)
    return tf.reshape(found, [-1, int(tables.shape[1]) * (rows + 1) * (columns + 1) * 256])


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
    if isinstance(height, int) and isinstance(width, int):
        more = bool(height % tiles[0] or width % tiles[1])
        return height // tiles[0] + more, width // tiles[1] + more
    uneven = tf.cast(tf.logical_or(height % tiles[0] != 0, width % tiles[1] != 0), tf.int32)
    return height // tiles[0] + uneven, width // tiles[1] + uneven


def _places(length: Whole, tile: Whole) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the pair of tiles around each line, counted from 0 before the first tile, and the weight of the second one."""
    from_middle = 2 * tf.range(length) + tile
    return from_middle // (2 * tile), ((from_middle % (2 * tile)) * (1 << _BITS) + tile) // (2 * tile)


def _reflected(line: tf.Tensor, length: Whole) -> tf.Tensor:
    """Reflects lines into the image (abc|b), without repeating the edge."""
    period = tf.maximum(2 * (length - 1), 1)
    line = line % period
    return tf.minimum(tf.minimum(line, period - line), length - 1)


def _running(counts: tf.Tensor) -> tf.Tensor:
    """Cumulative sums of 256 counts, as products with a triangular matrix, 16 by 16: integers below 2^24, which float32 holds."""
    shape = tf.shape(counts)
    lower = tf.linalg.band_part(tf.ones([_RUN, _RUN]), 0, -1)
    runs = tf.reshape(tf.cast(counts, tf.float32), [-1, _RUN])
    within = tf.reshape(product(runs, lower), [-1, _RUN, _RUN])
    before = product(tf.reduce_sum(tf.reshape(runs, [-1, _RUN, _RUN]), -1), lower - tf.eye(_RUN))
    return tf.reshape(within + before[..., None], shape)
