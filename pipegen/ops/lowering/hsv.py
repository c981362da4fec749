"""Hue, saturation and value of bytes, and back, in whole numbers: the same bits everywhere.

Hue is counted in sextants of the circle, and saturation from 0 to 1, both in 1/2^14; the value, which is the largest of the three
channels, in 1/64 of a level. Quotients are products with reciprocals from a table.
"""

from __future__ import annotations

from pipegen.lazy import np, tf
from pipegen.ops.lowering.filters import rounded_shift

BITS = 14
ONE = 1 << BITS
"""What stands for a sextant, and for full saturation."""
TURN = 6 * ONE
VALUE_BITS = 6
_RECIPROCAL_BITS = 22


def whole_shifts(degrees: tf.Tensor, saturation: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Rounds shifts from float64, of degrees and of levels of 255 twice, to the whole numbers that `shifted` takes."""
    hue = tf.math.floormod(tf.cast(tf.round(degrees * (ONE / 60.0)), tf.int32), TURN)
    return hue, tf.cast(tf.round(saturation * (ONE / 255.0)), tf.int32), tf.cast(tf.round(value * float(1 << VALUE_BITS)), tf.int32)


def shifted(images: tf.Tensor, hue: tf.Tensor, saturation: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Hue, saturation and value of bytes `(n, height, width, 3)`, shifted; grays have no hue, and stay gray.

    Args:
        images: uint8.
        hue: int32 `(n, 1, 1)` or one for each pixel, from 0 to below a turn.
        saturation: int32, likewise; what leaves 0 to 1 is clipped.
        value: int32, likewise; what leaves 0 to 255 is clipped.

    Returns:
        int32 `(n, height, width)` each.
    """
    red, green, blue = tf.unstack(tf.cast(images, tf.int32), num=3, axis=-1)
    most = tf.maximum(tf.maximum(red, green), blue)
    chroma = most - tf.minimum(tf.minimum(red, green), blue)
    reciprocals = tf.constant([0, *np.rint((1 << _RECIPROCAL_BITS) / np.arange(1, 256)).astype(int)], tf.int32)
    shift = _RECIPROCAL_BITS - BITS
    # The channel that is largest says from which sextant the difference of the other two counts.
    is_red, is_green = red == most, green == most
    difference = tf.where(is_red, green - blue, tf.where(is_green, blue - red, red - green))
    start = tf.where(is_red, 0, tf.where(is_green, 2 * ONE, 4 * ONE))
    place = start + rounded_shift(difference * tf.gather(reciprocals, chroma), shift) + hue
    place = tf.where(place < 0, place + TURN, place)
    full = rounded_shift(chroma * tf.gather(reciprocals, most), shift)
    moved = tf.where(chroma == 0, 0, tf.clip_by_value(full + saturation, 0, ONE))
    bright = tf.clip_by_value(tf.bitwise.left_shift(most, VALUE_BITS) + value, 0, 255 << VALUE_BITS)
    return tf.where(place >= TURN, place - TURN, place), moved, bright


def channels(hue: tf.Tensor, saturation: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """Red, green and blue of what `shifted` gives: int32 `(n, height, width, 3)` from 0 to 255, rounded half to even."""
    found = []
    for first in (5, 3, 1):  # the sextants by which the channels' curves are apart
        place = hue + first * ONE
        place = tf.where(place >= TURN, place - TURN, place)
        less = tf.clip_by_value(tf.minimum(place, 4 * ONE - place), 0, ONE)
        rest = ONE - rounded_shift(saturation * less, BITS)
        found.append(rounded_shift(value * rest, BITS + VALUE_BITS))
    return tf.stack(found, -1)
