"""Resizing one image, shared by `resize` and `random_resized_crop`: keeps the dtype and rounds half to even."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from pipegen.ops.lowering.target import meanwhile, target

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    import tensorflow as tf

    Side: TypeAlias = int | tf.Tensor

Method = Literal["nearest", "bilinear", "bicubic", "area", "lanczos3"]
"""How pixels are weighted: `nearest` copies one (as Pillow chooses it), `bilinear`, `bicubic` (Keys), `area` averages
what each output pixel covers, `lanczos3`."""

OVERSHOOTS: frozenset[str] = frozenset({"bicubic", "lanczos3"})
"""Methods with negative weights, whose results can lie outside the values that enter."""
BLURS_WITH_ANTIALIAS: frozenset[str] = frozenset({"bilinear", "bicubic", "lanczos3"})
"""Methods that know `antialias`."""
ANTIALIAS_WEIGHT = 3.5
"""What a resize with `antialias` costs, of one without."""
_KERNELS = {"bilinear": "triangle", "bicubic": "keyscubic", "lanczos3": "lanczos3"}
"""What TensorFlow calls their weights."""
_READ_OF = 8
"""Up to how many pixels for one of the output converting them all pays."""
_usual = ContextVar("usual", default=False)


def usual_sizes() -> AbstractContextManager[None]:
    """Lets what is traced meanwhile take for granted that no image is much larger than what it is resized to."""
    return meanwhile(_usual, True)


def resize(image: tf.Tensor, height: Side, width: Side, method: Method, *, antialias: bool = False) -> tf.Tensor:
    """Resize one image.

    Args:
        image: `(h, w, channels)`, uint8 or floating.
        height: The output's height in pixels: an int, or an int32 scalar.
        width: The output's width likewise.
        method: How pixels are weighted.
        antialias: Widen the weights when shrinking, so that every input pixel counts. Costs two to three times the resize.

    Returns:
        `(height, width, channels)` of the same dtype; an integer rounds half to even and clips to its range.
    """
    import tensorflow as tf

    if method == "nearest":
        rows = nearest_indices(tf.shape(image)[0], height)
        columns = nearest_indices(tf.shape(image)[1], width)
        return _sized(tf.gather(tf.gather(image, rows, axis=0), columns, axis=1), image, height, width)
    size = tf.stack([tf.cast(height, tf.int32), tf.cast(width, tf.int32)])
    if method == "lanczos3" or (antialias and method in BLURS_WITH_ANTIALIAS):
        return _sized(_separable(image, size, _KERNELS[method], antialias=antialias), image, height, width)
    # Other runtimes resize floats alone; TensorFlow converts bytes in the same way.
    given = tf.cast(image, tf.float32) if target() == "converter" else image
    x = _bilinear(image, height, width) if method == "bilinear" else tf.image.resize(given, size, method=method)
    return to_dtype(_sized(x, image, height, width), image.dtype)


def _bilinear(image: tf.Tensor, height: Side, width: Side) -> tf.Tensor:
    """Resizes as `tf.image.resize`, bit by bit, in two thirds of its time for an image of bytes that shrinks little.

    TensorFlow's kernel has vector instructions for floats alone. Converting every pixel is worth it as long as most of them are read.
    """
    import tensorflow as tf

    # Every node of a graph takes a microsecond, be it a constant in the branch that is not taken. So there are few.
    given = tf.expand_dims(image, 0)

    def of(x: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.ResizeBilinear(images=x, size=[height, width], half_pixel_centers=True)

    def as_floats() -> tf.Tensor:
        return of(tf.cast(given, tf.float32))

    if image.dtype != tf.uint8 or _usual.get() or target() == "converter":
        return tf.squeeze(as_floats(), 0)
    channels = image.shape[-1] or tf.shape(image, tf.int64)[-1]
    few = tf.size(image, tf.int64) <= _READ_OF * channels * tf.cast(height, tf.int64) * tf.cast(width, tf.int64)
    return tf.squeeze(tf.cond(few, as_floats, lambda: of(given)), 0)


def _separable(image: tf.Tensor, size: tf.Tensor, kernel: str, *, antialias: bool) -> tf.Tensor:
    """Resizes as `tf.image.resize`, bit by bit, in about half of its time.

    TensorFlow's kernel weighs rows first and then columns. Of rows it adds up whole memory, with vector instructions; of columns it
    takes one pixel's channels at a time. So the image is turned between the two, and rows are weighed twice: an image whose pixels
    are all channels of one column leaves the kernel no columns to weigh.

    Returns:
        `(size[0], size[1], channels)` of the image's dtype.
    """
    import tensorflow as tf

    def weigh_rows(x: tf.Tensor, before: tf.Tensor, after: tf.Tensor) -> tf.Tensor:
        scale = tf.stack([tf.cast(after, tf.float32) / tf.cast(before, tf.float32), 1.0])
        to = tf.stack([after, 1])
        x = tf.reshape(x, [1, before, 1, -1])
        return tf.raw_ops.ScaleAndTranslate(images=x, size=to, scale=scale, translation=[0.0, 0.0], kernel_type=kernel, antialias=antialias)

    height, width, channels = tf.unstack(tf.shape(image))
    rows, columns = tf.unstack(size)
    down = tf.transpose(tf.reshape(weigh_rows(image, height, rows), [rows, width * channels]))
    across = tf.reshape(weigh_rows(down, width, columns), [columns * channels, rows])
    # Turned back as floats: where TensorFlow's oneDNN transposes, it logs an error about bytes, though it goes on without.
    return to_dtype(tf.reshape(tf.transpose(across), [rows, columns, channels]), image.dtype)


def to_dtype(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Float32 values as `dtype`; integers round half to even, and clip to their range."""
    import tensorflow as tf

    if dtype.is_floating:
        return tf.cast(x, dtype)
    if dtype == tf.uint8 and target() == "converter":  # the operation below has no equal elsewhere; this gives the same bytes, slower
        return tf.cast(tf.clip_by_value(tf.round(x), 0.0, 255.0), tf.uint8)
    if dtype == tf.uint8:
        # Clipped, rounded and converted in one pass over the memory. As one slice along an axis, since oneDNN's form of the operation,
        # which TensorFlow puts in its place on some processors, knows no axes: it takes longer, and refuses an image of one value.
        flat = tf.reshape(x, [1, -1])
        limits = {"min_range": [0.0], "max_range": [255.0], "mode": "SCALED", "round_mode": "HALF_TO_EVEN", "axis": 0}
        return tf.reshape(tf.bitcast(tf.raw_ops.QuantizeV2(input=flat, T=tf.quint8, **limits).output, tf.uint8), tf.shape(x))
    return tf.saturate_cast(tf.round(x), dtype)


def nearest_indices(size: tf.Tensor, count: Side, part: tuple[Side, Side] | None = None) -> tf.Tensor:
    """Returns which input row (or column) each output row shows, as Pillow chooses it.

    The centre of output pixel i lies at (i + 1/2) size / count. Pillow reaches it by adding size / count in float64
    again and again, and so does this, since exact ties fall on either side according to that rounding.

    Args:
        size: int32 scalar: input pixels.
        count: Output pixels.
        part: The first of the input pixels that are shown, and their number; all by default.

    Returns:
        int32 `(count,)`.
    """
    import tensorflow as tf

    count = tf.cast(count, tf.int32)
    step = tf.cast(size if part is None else part[1], tf.float64) / tf.cast(count, tf.float64)
    start = step * 0.5 if part is None else tf.cast(part[0], tf.float64) + step * 0.5
    steps = tf.concat([[start], tf.fill([count - 1], step)], axis=0)
    return tf.minimum(tf.cast(tf.cumsum(steps), tf.int32), size - 1)


def shorter_side_size(height: Side, width: Side, side: int) -> tuple[Side, Side]:
    """The size that makes the shorter side `side` pixels and keeps the proportions."""
    return side_size(height, width, side, None)


def side_size(height: Side, width: Side, shorter: Side | None, longer: int | None) -> tuple[Side, Side]:
    """The size that makes the shorter side `shorter` pixels and keeps the proportions, or where that is less, the longer one `longer`.

    The other side is rounded half up, in whole numbers: the same for ints and for int32 tensors.
    """
    if longer is None or shorter is None:
        side = shorter if longer is None else longer
        assert side is not None  # noqa: S101 - one of them is given
        return _with_side(height, width, side, shorter=longer is None)
    first, second = _with_side(height, width, shorter, shorter=True), _with_side(height, width, longer, shorter=False)
    if isinstance(height, int) and isinstance(width, int) and isinstance(shorter, int):
        return first if max(height, width) * shorter <= longer * min(height, width) else second
    import tensorflow as tf

    # int64: a panorama's side times the wanted one does not fit into 32 bits.
    most, least, wanted = (tf.cast(side, tf.int64) for side in (tf.maximum(height, width), tf.minimum(height, width), shorter))
    fits = most * wanted <= longer * least
    return tf.where(fits, first[0], second[0]), tf.where(fits, first[1], second[1])


def _with_side(height: Side, width: Side, side: Side, *, shorter: bool) -> tuple[Side, Side]:
    if isinstance(height, int) and isinstance(width, int) and isinstance(side, int):
        by_height = (height <= width) is shorter or height == width
        return (side, _share(width, side, height)) if by_height else (_share(height, side, width), side)
    import tensorflow as tf

    rows, columns = _share(height, side, width), _share(width, side, height)
    by_width = height > width if shorter else height < width
    return tf.where(by_width, rows, side), tf.where(by_width, side, columns)


def cover_size(height: Side, width: Side, size: tuple[int, int]) -> tuple[Side, Side]:
    """The least size with the image's proportions that covers `size`."""
    return _proportional(height, width, size, covers=True)


def fit_size(height: Side, width: Side, size: tuple[int, int]) -> tuple[Side, Side]:
    """The greatest size with the image's proportions that fits inside `size`."""
    return _proportional(height, width, size, covers=False)


def _proportional(height: Side, width: Side, size: tuple[int, int], *, covers: bool) -> tuple[Side, Side]:
    h, w = size
    rows, columns = _share(height, w, width), _share(width, h, height)
    if isinstance(height, int) and isinstance(width, int):
        limit = max if covers else min
        by_height = (h * width >= w * height) is covers
        return (h, limit(columns, w)) if by_height else (limit(rows, h), w)
    import tensorflow as tf

    bound = tf.maximum if covers else tf.minimum
    wide, high = tf.cast(width, tf.int64) * h, tf.cast(height, tf.int64) * w
    by_height = tf.equal(wide >= high, covers)
    return tf.where(by_height, h, bound(rows, h)), tf.where(by_height, bound(columns, w), w)


def _share(length: Side, side: Side, other: Side) -> Side:
    """`length * side / other` rounded half up, at least 1."""
    if isinstance(length, int) and isinstance(other, int) and isinstance(side, int):
        return max(1, (2 * length * side + other) // (2 * other))
    import tensorflow as tf

    # int64: a panorama's side times the wanted one does not fit into 32 bits.
    length, side, other = (tf.cast(n, tf.int64) for n in (length, side, other))
    return tf.cast(tf.maximum((2 * length * side + other) // (2 * other), 1), tf.int32)


def _sized(y: tf.Tensor, image: tf.Tensor, height: Side, width: Side) -> tf.Tensor:
    """Tell the static shape what is known."""
    known = [d if isinstance(d, int) else None for d in (height, width)]
    y.set_shape([*known, image.shape[-1]])
    return y
