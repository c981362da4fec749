"""Resizing of one image, like TensorFlow and like Pillow, to the bit."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.graphs import meanwhile, target

if TYPE_CHECKING:
    Side: TypeAlias = int | tf.Tensor
    Span: TypeAlias = tuple[Side, Side]
    Box: TypeAlias = tuple[Side, Side, Side, Side]

Method = Literal["nearest", "bilinear", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]
"""The weighting of pixels: `nearest` copies one (the same as Pillow), `bilinear`, `bicubic` (Keys), `area` averages the pixels covered by
an output pixel, and TensorFlow's wider filters."""

ANTIALIAS_WEIGHT = 3.5  # the cost of a resize with `antialias`, in multiples of one without
_WIDER = ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_KERNELS = {"bilinear": "triangle", "bicubic": "keyscubic", **dict(zip(_WIDER, _WIDER, strict=True))}  # TensorFlow's names of the kernels
BLURS_WITH_ANTIALIAS: frozenset[str] = frozenset(_KERNELS)  # methods that support `antialias`
_usual = ContextVar("usual", default=False)


def usual_sizes() -> AbstractContextManager[None]:
    """Marks code traced inside as resizing only images that are not much larger than the result."""
    return meanwhile(_usual, True)


def resize(image: tf.Tensor, height: Side, width: Side, method: Method, *, antialias: bool = False) -> tf.Tensor:
    """Resizes one image `(h, w, channels)`, uint8 or floating, to a height and width in pixels, ints or int32 scalars, in the same dtype;
    integers round half to even and are clipped to their range.

    With `antialias`, weights widen when shrinking, so that every input pixel counts. It costs two to three times as much.
    """
    if method == "nearest":
        rows = nearest_indices(tf.shape(image)[0], height)
        columns = nearest_indices(tf.shape(image)[1], width)
        return _sized(tf.gather(tf.gather(image, rows, axis=0), columns, axis=1), image, height, width)
    size = tf.stack([tf.cast(height, tf.int32), tf.cast(width, tf.int32)])
    if method in _WIDER or (antialias and method in BLURS_WITH_ANTIALIAS):
        return _sized(_separable(image, size, _KERNELS[method], antialias=antialias), image, height, width)
    # Other runtimes resize only floats; TensorFlow converts bytes in the same way.
    given = tf.cast(image, tf.float32) if target() == "converter" else image
    x = _bilinear(image, height, width) if method == "bilinear" else tf.image.resize(given, size, method=method)
    return to_dtype(_sized(x, image, height, width), image.dtype)


def _bilinear(image: tf.Tensor, height: Side, width: Side) -> tf.Tensor:
    """Resizes like `tf.image.resize`, to the bit, in two thirds of its time for an image of bytes that shrinks little. TensorFlow's kernel
    uses vector instructions only for floats. Converting all pixels pays as long as most of them are read."""
    # Every node of a graph costs a microsecond, even a constant in a branch not taken. So there are few.
    given = tf.expand_dims(image, 0)

    def of(x: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.ResizeBilinear(images=x, size=[height, width], half_pixel_centers=True)

    def as_floats() -> tf.Tensor:
        return of(tf.cast(given, tf.float32))

    if image.dtype != tf.uint8 or _usual.get() or target() == "converter":
        return tf.squeeze(as_floats(), 0)
    channels = image.shape[-1] or tf.shape(image, tf.int64)[-1]
    # Converting all pays up to 8 input pixels for each output pixel.
    few = tf.size(image, tf.int64) <= 8 * channels * tf.cast(height, tf.int64) * tf.cast(width, tf.int64)
    return tf.squeeze(tf.cond(few, as_floats, lambda: of(given)), 0)


def _separable(image: tf.Tensor, size: tf.Tensor, kernel: str, *, antialias: bool) -> tf.Tensor:
    """Resizes like `tf.image.resize`, to the bit, in about half of its time.

    TensorFlow's kernel weighs rows first and then columns. Rows are contiguous memory, summed with vector instructions; columns take one
    pixel's channels at a time. So the image is transposed in between, and rows are weighed twice: an image of one column, whose pixels are
    channels, leaves the kernel no columns to weigh.
    """

    def weigh_rows(x: tf.Tensor, before: tf.Tensor, after: tf.Tensor) -> tf.Tensor:
        scale = tf.stack([tf.cast(after, tf.float32) / tf.cast(before, tf.float32), 1.0])
        to = tf.stack([after, 1])
        x = tf.reshape(x, [1, before, 1, -1])
        return tf.raw_ops.ScaleAndTranslate(images=x, size=to, scale=scale, translation=[0.0, 0.0], kernel_type=kernel, antialias=antialias)

    height, width, channels = tf.unstack(tf.shape(image))
    rows, columns = tf.unstack(size)
    down = tf.transpose(tf.reshape(weigh_rows(image, height, rows), [rows, width * channels]))
    across = tf.reshape(weigh_rows(down, width, columns), [columns * channels, rows])
    # Transposed back as floats: TensorFlow's oneDNN logs an error about bytes, though it continues without.
    return to_dtype(tf.reshape(tf.transpose(across), [rows, columns, channels]), image.dtype)


def to_dtype(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Converts float32 values to `dtype`; integers round half to even and are clipped to their range."""
    if dtype.is_floating:
        return tf.cast(x, dtype)
    if dtype == tf.uint8 and target() == "converter":  # other runtimes lack the operation below; this is slower, with the same bytes
        return tf.cast(tf.clip_by_value(tf.round(x), 0.0, 255.0), tf.uint8)
    if dtype == tf.uint8:
        # Clips, rounds and converts in one pass over the memory. One slice along an axis, since oneDNN's version of the operation, used on
        # some processors, supports no axes: it takes longer, and rejects an image of one value.
        flat = tf.reshape(x, [1, -1])
        limits = {"min_range": [0.0], "max_range": [255.0], "mode": "SCALED", "round_mode": "HALF_TO_EVEN", "axis": 0}
        return tf.reshape(tf.bitcast(tf.raw_ops.QuantizeV2(input=flat, T=tf.quint8, **limits).output, tf.uint8), tf.shape(x))
    return tf.saturate_cast(tf.round(x), dtype)


def nearest_indices(size: tf.Tensor, count: Side, part: tuple[Side, Side] | None = None) -> tf.Tensor:
    """Returns the input row (or column) of each output row, int32 `(count,)`, the same as Pillow, of `size` input pixels, an int32 scalar;
    or of a `part` of them, its first pixel and their number.

    The centre of output pixel i is at (i + 1/2) size / count. Like Pillow, this computes it by adding size / count repeatedly in float64,
    since the rounding decides exact ties.
    """
    count = tf.cast(count, tf.int32)
    step = tf.cast(size if part is None else part[1], tf.float64) / tf.cast(count, tf.float64)
    start = step * 0.5 if part is None else tf.cast(part[0], tf.float64) + step * 0.5
    steps = tf.concat([[start], tf.fill([count - 1], step)], axis=0)
    return tf.minimum(tf.cast(tf.cumsum(steps), tf.int32), size - 1)


def side_size(height: Side, width: Side, shorter: Side | None, longer: int | None = None) -> tuple[Side, Side]:
    """Returns the size with the same aspect ratio whose shorter side is `shorter` pixels, or, if smaller, whose longer side is `longer`.
    The other side is rounded half up, in integers: the same for ints and for int32 tensors."""
    if longer is None or shorter is None:
        side = shorter if longer is None else longer
        assert side is not None  # noqa: S101 - one of them is given
        return _with_side(height, width, side, shorter=longer is None)
    first, second = _with_side(height, width, shorter, shorter=True), _with_side(height, width, longer, shorter=False)
    rows, columns, wanted = _wide(height), _wide(width), _wide(shorter)
    fits = (rows * wanted <= longer * columns) & (columns * wanted <= longer * rows)
    return _either(fits, first[0], second[0]), _either(fits, first[1], second[1])


def _with_side(height: Side, width: Side, side: Side, *, shorter: bool) -> tuple[Side, Side]:
    rows, columns = _share(height, side, width), _share(width, side, height)
    by_width = height > width if shorter else height < width
    return _either(by_width, rows, side), _either(by_width, side, columns)


def proportional_size(height: Side, width: Side, size: tuple[int, int], *, covers: bool) -> tuple[Side, Side]:
    """Returns the size with the image's aspect ratio that fits inside `size`, or the least one that `covers` it."""
    h, w = size
    rows, columns = _share(height, w, width), _share(width, h, height)
    ahead = operator.ge if covers else operator.lt
    by_height = ahead(h * _wide(width), w * _wide(height))
    rows, columns = _either(ahead(rows, h), rows, h), _either(ahead(columns, w), columns, w)
    return _either(by_height, h, rows), _either(by_height, columns, w)


def _share(length: Side, side: Side, other: Side) -> Side:
    """`length * side / other` rounded half up, at least 1."""
    length, side, other = _wide(length), _wide(side), _wide(other)
    share = (2 * length * side + other) // (2 * other)
    return max(1, share) if isinstance(share, int) else tf.cast(tf.maximum(share, 1), tf.int32)


def _wide(side: Side) -> Side:
    """A tensor as int64, since a panorama's side times the wanted one does not fit in 32 bits."""
    return side if isinstance(side, int) else tf.cast(side, tf.int64)


def _either(first: bool | tf.Tensor, yes: Side, no: Side) -> Side:
    return (yes if first else no) if isinstance(first, bool) else tf.where(first, yes, no)


def _sized(y: tf.Tensor, image: tf.Tensor, height: Side, width: Side) -> tf.Tensor:
    known = [d if isinstance(d, int) else None for d in (height, width)]
    y.set_shape([*known, image.shape[-1]])
    return y


Weighting = Literal["box", "bilinear", "hamming", "bicubic", "lanczos"]  # pillow's filters of several pixels, by its own names
Filter = Literal["nearest", Weighting]  # all of Pillow's filters
CHOOSES_PASS = 13  # the first version of Pillow that resizes columns first if an image loses many more rows than columns

WEIGHT = 25.0  # the cost of such a resize in multiples of a bilinear one; `nearest` costs the usual
_REACH = {"box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos": 3.0}
"""The radius of a filter, in pixels of the smaller of input and output."""
_BITS = 22


def resize_as_pillow(
    image: tf.Tensor, height: Side, width: Side, name: Filter, *, box: Box | None = None, chooses_pass: bool = True
) -> tf.Tensor:
    """Resizes one image `(h, w, channels)`, uint8, uint16 or floating, to a height and width in pixels, ints or int32 scalars, in the same
    dtype.

    The last of four channels of bytes is transparency: except with `nearest`, transparent pixels have no weight in colours. `box` is top,
    left, height and width in whole pixels of the part that is shown, by default all; a filter reads beyond it. With `chooses_pass` the
    sizes decide which pass comes first, as since Pillow 13; before, rows always came first.
    """
    given = tf.unstack(tf.shape(image)[:2])
    box = box or (0, 0, *given)
    as_it_is = tf.reduce_all(tf.stack([height, width, box[2], box[3]]) == tf.stack([*given, *given]))
    return _sized(tf.cond(as_it_is, lambda: image, lambda: _resized(image, height, width, name, box, chooses_pass)), image, height, width)


def centred_box(height: Side, width: Side, size: tuple[int, int]) -> Box:
    """Returns the largest centred part of an image with the aspect ratio of `size`: top, left, height and width, whole pixels, rounded
    down."""
    rows, columns = tf.minimum(height, width * size[0] // size[1]), tf.minimum(width, height * size[1] // size[0])
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _resized(image: tf.Tensor, height: Side, width: Side, name: Filter, box: Box, chooses_pass: bool) -> tf.Tensor:
    top, left, rows, columns = box
    if name == "nearest":
        shown = nearest_indices(tf.shape(image)[0], height, (top, rows)), nearest_indices(tf.shape(image)[1], width, (left, columns))
        return tf.gather(tf.gather(image, shown[0], axis=0), shown[1], axis=1)
    has_alpha = image.shape[-1] == 4 and image.dtype == tf.uint8
    x = _premultiplied(image) if has_alpha else tf.cast(image, tf.int32 if image.dtype == tf.uint8 else tf.float64)
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
    if has_alpha:  # colours again as before; transparent and opaque pixels stay
        colour, opacity = x[..., :3], x[..., 3:]
        shown = tf.minimum(255 * colour // tf.maximum(opacity, 1), 255)
        x = tf.concat([tf.where((opacity == 0) | (opacity == 255), colour, shown), opacity], -1)
    return tf.cast(x, image.dtype)


def _weighted(image: tf.Tensor, span: Span, count: Side, name: str, dtype: tf.DType) -> tf.Tensor:
    """Weighs rows, from `(h, w, channels)` to `(count, w, channels)`, and rounds and clips to `dtype`."""
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
    """Returns the input pixels of each output pixel, int32 `(count, n)` within `limit`, and their weights, float64, which sum to 1."""
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


def _hamming(x: tf.Tensor) -> tf.Tensor:
    x = tf.abs(x)
    return tf.where(x < 1.0, _sinc(x) * (0.54 + 0.46 * tf.cos(x * math.pi)), tf.zeros_like(x))


def _bicubic(x: tf.Tensor) -> tf.Tensor:
    x = tf.abs(x)
    near, far = (1.5 * x - 2.5) * x * x + 1.0, (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    return tf.where(x < 1.0, near, tf.where(x < 2.0, far, tf.zeros_like(x)))


def _lanczos(x: tf.Tensor) -> tf.Tensor:
    return tf.where((x >= -3.0) & (x < 3.0), _sinc(x) * _sinc(x / 3.0), tf.zeros_like(x))


def _sinc(x: tf.Tensor) -> tf.Tensor:
    turned = x * math.pi
    return tf.where(x == 0, tf.ones_like(x), tf.math.divide_no_nan(tf.sin(turned), turned))


_FILTERS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "box": lambda x: tf.cast((x > -0.5) & (x <= 0.5), tf.float64),
    "bilinear": lambda x: tf.maximum(1.0 - tf.abs(x), 0.0),
    "hamming": _hamming,
    "bicubic": _bicubic,
    "lanczos": _lanczos,
}


def _premultiplied(image: tf.Tensor) -> tf.Tensor:
    """Multiplies colours by opacity, rounded like Pillow: int32 `(h, w, 4)`."""
    x = tf.cast(image, tf.int32)
    product = x[..., :3] * x[..., 3:] + 128
    return tf.concat([tf.bitwise.right_shift(tf.bitwise.right_shift(product, 8) + product, 8), x[..., 3:]], -1)
