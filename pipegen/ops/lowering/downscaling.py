"""Images made smaller and large again, each by a factor of its own: every line is a sum of at most four, down and then across.

Weights of bytes are whole numbers, as in `filters.py`.
"""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.lowering.filters import BITS, Whole, rounded_shift
from pipegen.ops.lowering.floats import nearest_float32, working
from pipegen.ops.lowering.taps import whole_weights


def through(factor: tf.Tensor, length: Whole, method: str) -> tuple[tf.Tensor, ...]:
    """Gives the lines that make each line, int32 `(n, length, taps)`, and their weights for bytes and for floats, float32 likewise.

    Args:
        factor: float64 `(n,)`.
        length: How many lines there are.
        method: `nearest` or `bilinear`.
    """
    side = tf.cast(length, tf.float64)
    small = tf.maximum(tf.round(factor * side), 1.0)[:, None]
    line = tf.range(length, dtype=tf.int32)
    if method == "nearest":
        few = tf.cast(small, tf.int32)
        first = (2 * line + 1)[None, :] * few // (2 * length)
        places = ((2 * first + 1) * length // (2 * few))[..., None]
        weights = tf.ones_like(places, tf.float64)
    else:
        middle = (tf.cast(line, tf.float64)[None, :] + 0.5) * small / side
        found: list[tuple[tf.Tensor, tf.Tensor]] = []
        for at, share in _between(middle, small):
            found += [(place, share * part) for place, part in _between((at + 0.5) * side / small, side)]
        places, weights = (tf.stack(parts, -1) for parts in zip(*found, strict=True))
    taps = int(places.shape[-1])
    own = tf.reshape(weights, [-1, taps])
    whole, real = (tf.reshape(w, tf.shape(places)) for w in whole_weights(own))
    shape = [None, length if isinstance(length, int) else None, taps]
    done = tf.cast(places, tf.int32), whole, real
    for part in done:
        part.set_shape(shape)
    return done


def _between(middle: tf.Tensor, length: tf.Tensor) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """The two lines that a position lies between, and their shares; beyond the edge, the last one."""
    first = tf.floor(middle - 0.5)
    share = middle - 0.5 - first
    return [(tf.clip_by_value(first + i, 0.0, length - 1.0), share if i else 1.0 - share) for i in (0, 1)]


def rows_of(images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The images whose rows are sums of others: `(n, height, width, channels)`, uint16 in 1/256 of a level for bytes, else floats; and what
    `through` gave of the columns."""
    total = _sum(images, images, given[:3], 1)
    if not images.dtype.is_integer:
        return nearest_float32(total), *given[3:]
    shift = BITS - 8
    return tf.cast(tf.bitwise.right_shift(total + (1 << (shift - 1)), shift), tf.uint16), *given[3:]


def columns_of(images: tf.Tensor, between: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The images whose columns are sums of others, from what `rows_of` gives, in the images' dtype; bytes round half to even."""
    total = _sum(images, between, given, 2)
    return (tf.cast(rounded_shift(total, BITS + 8) if images.dtype.is_integer else total, images.dtype),)


def _sum(images: tf.Tensor, values: tf.Tensor, given: tuple[tf.Tensor, ...], axis: int) -> tf.Tensor:
    """The weighted sums of lines along an axis, int32 for bytes, else floats."""
    places, whole, real = given
    integer = images.dtype.is_integer
    dtype = tf.int32 if integer else working(images)
    weights = tf.cast(whole if integer else real, dtype)
    total = None
    for tap in range(int(places.shape[-1])):
        weight = weights[:, :, tap]
        weight = weight[:, :, None, None] if axis == 1 else weight[:, None, :, None]
        part = tf.cast(tf.gather(values, places[:, :, tap], axis=axis, batch_dims=1), dtype) * weight
        total = part if total is None else total + part
    return total
