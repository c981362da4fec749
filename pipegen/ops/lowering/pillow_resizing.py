"""Resizing as Pillow does it, bit for bit: two passes of filters in fixed point, with whole values in between.

The filters, how far they reach, how they are rounded and which pass comes first are those of `Image.resize` (Pillow's
`Resample.c`); weights of bytes are whole numbers in 2^-22, those of other values float64. Each pass is a product with a sparse
matrix, which adds up whole lines of memory.

From version 10 to 13 bytes and floats changed in one thing alone, which pass comes first. Values of 16 bits are those of Pillow 12.3
and newer: 10 cannot resize them, and from 11 to 12.2 overshoot by `bicubic` and `lanczos` is not clipped, but wraps around within a byte.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.resizing import nearest_indices

if TYPE_CHECKING:
    from typing import TypeAlias

    from pipegen.ops.lowering.resizing import Side

    Span: TypeAlias = tuple[Side, Side]
    Box: TypeAlias = tuple[Side, Side, Side, Side]

Weighting = Literal["box", "bilinear", "hamming", "bicubic", "lanczos"]
"""Pillow's filters of several pixels, by its own names."""
Filter = Literal["nearest", Weighting]
"""All of Pillow's filters."""
CHOOSES_PASS = 13
"""The version of Pillow since which an image that loses many more rows than columns is resized along its columns first."""

WEIGHT = 25.0
"""What such a resize costs, of a bilinear one; `nearest` costs what it costs elsewhere."""
OVERSHOOTS: frozenset[str] = frozenset({"bicubic", "lanczos"})
"""Filters with negative weights."""
_REACH = {"box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos": 3.0}
"""How far a filter reaches, in pixels of the output where that is smaller, else of the input."""
_BITS = 22
_OPAQUE = 255


def resize_as_pillow(
    image: tf.Tensor, height: Side, width: Side, name: Filter, *, box: Box | None = None, chooses_pass: bool = True
) -> tf.Tensor:
    """Resizes one image, or a part of it.

    Args:
        image: `(h, w, channels)`, uint8, uint16 or floating. Of four channels of bytes the last is transparency: what cannot be seen
            has no share in the colours, but for `nearest`.
        height: The output's height in pixels: an int, or an int32 scalar.
        width: The output's width likewise.
        name: The filter.
        box: Top, left, height and width in whole pixels of the part that is shown, all by default. A filter reads beyond it.
        chooses_pass: Whether the sizes decide which pass comes first, as since Pillow 13. Before, the one along rows always did.

    Returns:
        `(height, width, channels)` of the same dtype.
    """
    given = tf.unstack(tf.shape(image)[:2])
    box = box or (0, 0, *given)
    as_it_is = tf.reduce_all(tf.stack([height, width, box[2], box[3]]) == tf.stack([*given, *given]))
    y = tf.cond(as_it_is, lambda: image, lambda: _resized(image, height, width, name, box, chooses_pass))
    y.set_shape([*(d if isinstance(d, int) else None for d in (height, width)), image.shape[-1]])
    return y


def centred_box(height: Side, width: Side, size: tuple[int, int]) -> Box:
    """Returns the largest part in the middle of an image that has the proportions of `size`: top, left, height and width, whole
    pixels, rounded down."""
    rows, columns = tf.minimum(height, width * size[0] // size[1]), tf.minimum(width, height * size[1] // size[0])
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _resized(image: tf.Tensor, height: Side, width: Side, name: Filter, box: Box, chooses_pass: bool) -> tf.Tensor:
    top, left, rows, columns = box
    if name == "nearest":
        shown = nearest_indices(tf.shape(image)[0], height, (top, rows)), nearest_indices(tf.shape(image)[1], width, (left, columns))
        return tf.gather(tf.gather(image, shown[0], axis=0), shown[1], axis=1)
    veiled = image.shape[-1] == 4 and image.dtype == tf.uint8
    x = _premultiplied(image) if veiled else tf.cast(image, tf.int32 if image.dtype == tf.uint8 else tf.float64)
    h, w = tf.unstack(tf.shape(image)[:2])

    def down(x: tf.Tensor) -> tf.Tensor:
        return _weighted(x, (top, rows), height, name, image.dtype)

    def across(x: tf.Tensor) -> tf.Tensor:
        return tf.transpose(_weighted(tf.transpose(x, [1, 0, 2]), (left, columns), width, name, image.dtype), [1, 0, 2])

    if chooses_pass:
        loses_rows = (height < h) & (h - height > 2 * (w - width))
        x = tf.cond(loses_rows, lambda: across(down(x)), lambda: down(across(x)))
    else:
        x = down(across(x))
    return tf.cast(_unveiled(x) if veiled else x, image.dtype)


def _weighted(image: tf.Tensor, span: Span, count: Side, name: str, dtype: tf.DType) -> tf.Tensor:
    """`(h, w, channels)` as `(count, w, channels)`, weighted, and rounded and clipped to what `dtype` can hold."""
    limit, width, _ = tf.unstack(tf.shape(image))
    channels = image.shape[-1]
    x = tf.reshape(image, [limit, width * channels])
    places, weights = _filter(limit, span, count, name)
    if dtype == tf.uint8:
        weights = weights * float(1 << _BITS)
        weights = tf.cast(weights + tf.where(weights < 0, tf.constant(-0.5, tf.float64), 0.5), tf.int32)  # the cast drops the fraction
    rows = tf.broadcast_to(tf.range(tf.shape(places)[0])[:, None], tf.shape(places))
    at = tf.cast(tf.reshape(tf.stack([rows, places], -1), [-1, 2]), tf.int64)
    size = tf.cast(tf.stack([count, limit]), tf.int64)
    total = tf.raw_ops.SparseTensorDenseMatMul(a_indices=at, a_values=tf.reshape(weights, [-1]), a_shape=size, b=x)
    if dtype == tf.uint8:
        total = tf.clip_by_value(tf.bitwise.right_shift(total + (1 << (_BITS - 1)), _BITS), 0, 255)
    elif dtype.is_integer:
        total = tf.clip_by_value(tf.floor(total + 0.5), float(dtype.min), float(dtype.max))
    else:
        total = tf.cast(tf.cast(total, dtype), tf.float64)
    return tf.reshape(total, [count, width, channels])


def _filter(limit: tf.Tensor, span: Span, count: Side, name: str) -> tuple[tf.Tensor, tf.Tensor]:
    """The input pixels that each output pixel reads, int32 `(count, n)` within `limit`, and their weights, float64, which sum to 1."""
    first, size = (tf.cast(part, tf.float64) for part in span)
    scale = size / tf.cast(count, tf.float64)
    wider = tf.maximum(scale, 1.0)
    reach = _REACH[name] * wider
    taps = 2 * tf.cast(tf.math.ceil(reach), tf.int32) + 1
    centre = first + (tf.cast(tf.range(count), tf.float64) + 0.5) * scale
    low = tf.maximum(tf.cast(centre - reach + 0.5, tf.int32), 0)
    high = tf.minimum(tf.cast(centre + reach + 0.5, tf.int32), limit)
    places = low[:, None] + tf.range(taps)[None]
    weights = _FILTERS[name]((tf.cast(places, tf.float64) - centre[:, None] + 0.5) * (1.0 / wider))
    weights = tf.where(places < high[:, None], weights, tf.zeros_like(weights))
    return tf.minimum(places, limit - 1), weights / tf.reduce_sum(weights, -1, keepdims=True)


def _box(x: tf.Tensor) -> tf.Tensor:
    return tf.cast((x > -0.5) & (x <= 0.5), tf.float64)


def _bilinear(x: tf.Tensor) -> tf.Tensor:
    return tf.maximum(1.0 - tf.abs(x), 0.0)


def _hamming(x: tf.Tensor) -> tf.Tensor:
    x = tf.abs(x)
    turned = x * math.pi
    bell = tf.math.divide_no_nan(tf.sin(turned), turned) * (0.54 + 0.46 * tf.cos(turned))
    return tf.where(x == 0, tf.ones_like(x), tf.where(x < 1.0, bell, tf.zeros_like(x)))


def _bicubic(x: tf.Tensor) -> tf.Tensor:
    x = tf.abs(x)
    near, far = (1.5 * x - 2.5) * x * x + 1.0, (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    return tf.where(x < 1.0, near, tf.where(x < 2.0, far, tf.zeros_like(x)))


def _lanczos(x: tf.Tensor) -> tf.Tensor:
    def sinc(x: tf.Tensor) -> tf.Tensor:
        turned = x * math.pi
        return tf.where(x == 0, tf.ones_like(x), tf.math.divide_no_nan(tf.sin(turned), turned))

    return tf.where((x >= -3.0) & (x < 3.0), sinc(x) * sinc(x / 3.0), tf.zeros_like(x))


_FILTERS = {"box": _box, "bilinear": _bilinear, "hamming": _hamming, "bicubic": _bicubic, "lanczos": _lanczos}


def _premultiplied(image: tf.Tensor) -> tf.Tensor:
    """int32 `(h, w, 4)` with colours times opacity, rounded as Pillow does."""
    x = tf.cast(image, tf.int32)
    product = x[..., :3] * x[..., 3:] + 128
    return tf.concat([tf.bitwise.right_shift(tf.bitwise.right_shift(product, 8) + product, 8), x[..., 3:]], -1)


def _unveiled(x: tf.Tensor) -> tf.Tensor:
    """Undoes `_premultiplied`; what cannot be seen, or hides all, stays."""
    colour, opacity = x[..., :3], x[..., 3:]
    shown = tf.minimum(255 * colour // tf.maximum(opacity, 1), 255)
    return tf.concat([tf.where((opacity == 0) | (opacity == _OPAQUE), colour, shown), opacity], -1)
