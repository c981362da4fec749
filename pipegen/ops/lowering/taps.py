"""Linear filters of any shape on batches of images: weighted sums of the same lines at several offsets, exact on bytes.

Weights of bytes are whole numbers whose sum is 2 to the power of `BITS`, as in `filters.py`, and are kept as float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.filters import BITS, reflect, rounded_shift, sides
from pipegen.ops.lowering.floats import working

Offset: TypeAlias = "tuple[int, int]"
"""Rows down and columns to the right."""


def with_border(images: tf.Tensor, radius: int, edge: Literal["reflect", "nearest"]) -> tf.Tensor:
    """Images as lines of values, with `radius` more pixels on every side, reflected (abc|cba) or repeating the edge."""
    height, width, channels = sides(images)
    lines = tf.reshape(images, [-1, height, width * channels])
    if edge == "nearest":
        left, right = lines[:, :, :channels], lines[:, :, (width - 1) * channels :]
        wide = tf.concat([*[left] * radius, lines, *[right] * radius], 2)
        return tf.concat([*[wide[:, :1]] * radius, wide, *[wide[:, height - 1 :]] * radius], 1)

    def beyond(values: tf.Tensor, first: int | tf.Tensor, length: int | tf.Tensor, axis: int) -> tf.Tensor:
        repeat = channels if axis == 2 else 1
        places = reflect(tf.range(radius) + first, length)[:, None] * repeat + tf.range(repeat)
        return tf.gather(values, tf.reshape(places, [-1]), axis=axis)

    wide = tf.concat([beyond(lines, -radius, width, 2), lines, beyond(lines, width, width, 2)], 2)
    return tf.concat([beyond(wide, -radius, height, 1), wide, beyond(wide, height, height, 1)], 1)


def whole_weights(weights: tf.Tensor, middle: int = 0, counts: Sequence[int] | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """The weights for bytes and for floats, float32 `(n, taps)`.

    Args:
        weights: float64 `(n, taps)` that sum to 1.
        middle: The tap that takes what rounding to whole numbers leaves of their sum, 2 to the power of `BITS`.
        counts: How often each tap counts in the sum; by default once, as `middle` does in any case.
    """
    whole = tf.round(weights * float(1 << BITS))
    total = tf.reduce_sum(whole if counts is None else whole * tf.constant(counts, tf.float64), -1, keepdims=True)
    whole += (float(1 << BITS) - total) * tf.one_hot(middle, int(weights.shape[-1]), dtype=tf.float64)
    return tf.cast(whole, tf.float32), tf.cast(weights, tf.float32)


def spread(
    images: tf.Tensor, wide: tf.Tensor, whole: tf.Tensor, real: tf.Tensor, groups: Sequence[Sequence[Offset]], radius: int
) -> tf.Tensor:
    """Sums lines at the same offsets for all examples.

    Args:
        images: `(n, height, width, channels)`, uint8 or floats.
        wide: From `with_border`.
        whole: The weight of each group for bytes, from `whole_weights`; it counts once for each offset of its group.
        real: Those for floats.
        groups: Offsets that weigh the same.
        radius: How far `wide` goes beyond the images.

    Returns:
        Lines `(n, height, width · channels)` of the images' dtype; bytes round half to even, and are clipped.
    """
    height, width, channels = sides(images)
    integer = images.dtype.is_integer
    dtype = tf.int32 if integer else working(images)
    weights = tf.cast(whole if integer else real, dtype)

    def read(offset: Offset) -> tf.Tensor:
        top, left = offset[0] + radius, (offset[1] + radius) * channels
        return tf.cast(wide[:, top : top + height, left : left + width * channels], tf.uint16 if integer else dtype)

    total = None
    for weight, group in zip(tf.unstack(tf.reshape(weights, [-1, len(groups), 1, 1]), axis=1), groups, strict=True):
        if dtype == tf.float64:  # a sum of several would not be exact
            parts = [read(offset) * weight for offset in group]
        else:
            values = read(group[0])
            for offset in group[1:]:
                values = values + read(offset)
            parts = [tf.cast(values, dtype) * weight]
        for part in parts:
            total = part if total is None else total + part
    return _finished(total, images)


def along(images: tf.Tensor, wide: tf.Tensor, places: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """Sums lines at offsets of each example's own, one example after another. Where no weight is negative, sums for bytes stay below 2^24,
    which float32 holds: as fast as floats, and the same bits in any order.

    Args:
        images: `(n, height, width, channels)`, uint8 or floats.
        wide: From `with_border`.
        places: The row and the column of `wide` at which each tap begins, int32 `(n, taps, 2)`.
        whole: The weight of each tap for bytes, from `whole_weights`.
        real: Those for floats.

    Returns:
        Lines `(n, height, width · channels)` of the images' dtype; bytes round half to even.
    """
    height, width, channels = sides(images)
    integer = images.dtype.is_integer
    dtype = tf.float32 if integer else working(images)

    def one(given: tuple[tf.Tensor, ...]) -> tf.Tensor:
        lines, place, weights = given
        total = None
        for tap in range(int(place.shape[0])):
            part = tf.slice(lines, [place[tap, 0], place[tap, 1] * channels], [height, width * channels])
            part = tf.cast(part, dtype) * weights[tap]
            total = part if total is None else total + part
        return total

    weights = tf.cast(whole if integer else real, dtype)
    total = tf.map_fn(one, (wide, places, weights), fn_output_signature=tf.TensorSpec([None, None], dtype))
    return _finished(tf.reshape(total, [-1, height, width * channels]), images)


def _finished(total: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
    if not images.dtype.is_integer:
        return tf.cast(total, images.dtype)
    return tf.cast(tf.clip_by_value(rounded_shift(tf.cast(total, tf.int32), BITS), 0, 255), images.dtype)
