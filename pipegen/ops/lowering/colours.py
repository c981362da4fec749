"""Colours: matrices on the channels, hue and saturation, and blending."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TypeAlias

from pipegen.lazy import np, tf
from pipegen.ops.lowering.filters import rounded_shift
from pipegen.ops.lowering.linear import LUMA, diagonal, multiply, stack, vector, zeros
from pipegen.ops.lowering.random import UNIT, deviation, smooth_field
from pipegen.ops.lowering.windows import Whole

ColourMatrix: TypeAlias = "tuple[tf.Tensor, tf.Tensor, tf.Tensor]"

U_SCALE, V_SCALE = 0.492111, 0.877283
"""The scales of the colour differences blue minus luma and red minus luma in YUV."""


ORDERS = tuple(permutations(range(3)))  # the orders of three channels, as source channels. The first is the identity.

_SEPIA = ((0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131))


def brightness(factor: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = factor · x`; the fourth of four channels is transparency and stays."""
    return gains([factor] * channels if channels != 4 else [factor, factor, factor, 1.0])


def contrast(factor: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = factor · x + (1 - factor) · mean`."""
    return diagonal([factor] * channels, factor), zeros(channels, factor), vector([1.0 - factor] * channels, factor)


def contrast_by_channel(factor: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = factor · x + (1 - factor) · mean`, with the mean of each channel."""
    return diagonal([factor] * channels, factor), zeros(channels, factor), diagonal([1.0 - factor] * channels, factor)


def saturation(factor: tf.Tensor) -> ColourMatrix:
    """`y = factor · x + (1 - factor) · luma(x)`, on three channels."""
    rows = [[(1.0 - factor) * weight + (factor if i == j else 0.0) for j, weight in enumerate(LUMA)] for i in range(3)]
    return stack(rows, factor), zeros(3, factor), zeros(3, factor)


def hue(angle: tf.Tensor) -> ColourMatrix:
    """Rotates the chroma (U, V) by an angle in radians, on three channels; see `random_hue`."""
    cos, sin = tf.cos(angle), tf.sin(angle)
    # The matrix on RGB that rotates the chroma by 90 degrees and drops luma: U' = -V, V' = U.
    red_y, blue_y = ([(1.0 if j == own else 0.0) - weight for j, weight in enumerate(LUMA)] for own in (0, 2))
    red, blue = [b / (V_SCALE / U_SCALE) for b in blue_y], [-r * (V_SCALE / U_SCALE) for r in red_y]
    green = [-(LUMA[0] * r + LUMA[2] * b) / LUMA[1] for r, b in zip(red, blue, strict=True)]
    quarter = red, green, blue
    rows = [[weight + ((1.0 if i == j else 0.0) - weight) * cos + quarter[i][j] * sin for j, weight in enumerate(LUMA)] for i in range(3)]
    return stack(rows, angle), zeros(3, angle), zeros(3, angle)


def gray(like: tf.Tensor, channels: int, out: int) -> ColourMatrix:
    """Sets each of `out` channels to the luma of `channels`, for every example of the batch's shape."""
    weights = LUMA if channels == 3 else (1.0,)
    return stack([weights] * out, like), zeros(out, like), zeros(out, like)


def shift(deltas: Sequence[tf.Tensor]) -> ColourMatrix:
    """`y = x + delta`, with a delta for each channel."""
    channels = len(deltas)
    one = deltas[0] * 0.0 + 1.0
    return diagonal([one] * channels, one), vector(deltas, one), zeros(channels, one)


def offset(delta: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = x + delta`; the fourth of four channels is transparency and stays."""
    return shift([delta] * channels if channels != 4 else [delta, delta, delta, delta * 0.0])


def gains(factors: Sequence[tf.Tensor]) -> ColourMatrix:
    """`y = factor · x`, with a factor for each channel."""
    channels, like = len(factors), factors[0]
    return diagonal(factors, like), zeros(channels, like), zeros(channels, like)


def sepia(like: tf.Tensor) -> ColourMatrix:
    """The brown tones of old photographs, on three channels, for every example of the batch's shape."""
    return stack(_SEPIA, like), zeros(3, like), zeros(3, like)


def reorder(number: tf.Tensor) -> ColourMatrix:
    """Reorders three channels by the number of one of `ORDERS`, int32 `(...)`."""
    like = tf.zeros_like(number, dtype=tf.float64)
    rows = [[[1.0 if source == column else 0.0 for column in range(3)] for source in order] for order in ORDERS]
    return tf.gather(tf.constant(rows, tf.float64), number), zeros(3, like), zeros(3, like)


def blend(chosen: tf.Tensor, one: ColourMatrix, other: ColourMatrix) -> ColourMatrix:
    """Selects `one` where `chosen`, bool `(...)`, else `other`; both have the same channels."""
    b, m = (tf.where(chosen[..., None], x, y) for x, y in zip(one[1:], other[1:], strict=True))
    return tf.where(chosen[..., None, None], one[0], other[0]), b, m


def compose(first: ColourMatrix, second: ColourMatrix) -> ColourMatrix:
    """Composes matrices, `second` after `first`; the mean is that of the input of `first`, except for a `second` that counts the means of
    channels: those are of its own input, before clipping."""
    a1, b1, m1 = first
    a2, b2, m2 = second

    def through(v: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(a2 * v[..., None, :], -1)

    a, b = multiply(a2, a1), through(b1) + b2
    if not (counts_channels(first) or counts_channels(second)):
        return a, b, through(m1) + m2
    m1, m2 = (m if counts_channels(one) else _of_luma(m, int(a1.shape[-1])) for one, m in ((first, m1), (second, m2)))
    if not counts_channels(second):
        return a, b, multiply(a2, m1) + m2
    return a, b + tf.reduce_sum(m2 * b1[..., None, :], -1), multiply(a2, m1) + multiply(m2, a1 + m1)


def counts_channels(matrix: ColourMatrix) -> bool:
    """Whether the mean is that of each channel, so that `m` is `(..., out, in)`, or the mean luma, so that it is `(..., out)`."""
    return bool(matrix[2].shape.rank == matrix[0].shape.rank)


def _of_luma(m: tf.Tensor, channels: int) -> tf.Tensor:
    """Weights of the mean luma as weights of the means of channels."""
    return m[..., None] * tf.constant(LUMA if channels == 3 else (1.0,), m.dtype)


HSV_BITS = 14
HSV_ONE = 1 << HSV_BITS  # one sextant of hue, and full saturation
TURN = 6 * HSV_ONE
VALUE_BITS = 6
_RECIPROCAL_BITS = 22


def whole_shifts(degrees: tf.Tensor, saturation: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Rounds shifts from float64, in degrees and twice in levels of 255, to the integers of `shifted`."""
    hue = tf.math.floormod(tf.cast(tf.round(degrees * (HSV_ONE / 60.0)), tf.int32), TURN)
    return hue, tf.cast(tf.round(saturation * (HSV_ONE / 255.0)), tf.int32), tf.cast(tf.round(value * float(1 << VALUE_BITS)), tf.int32)


def shifted(images: tf.Tensor, hue: tf.Tensor, saturation: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Shifts hue, saturation and value of bytes `(n, height, width, 3)`, to int32 `(n, height, width)` each; grays have no hue and stay
    gray.

    The shifts are int32 `(n, 1, 1)` or one for each pixel, of the hue from 0 to below a turn. Saturation is clipped to 0 to 1, and the
    value to 0 to 255.
    """
    red, green, blue = tf.unstack(tf.cast(images, tf.int32), num=3, axis=-1)
    most = tf.maximum(tf.maximum(red, green), blue)
    chroma = most - tf.minimum(tf.minimum(red, green), blue)
    reciprocals = tf.constant([0, *np.rint((1 << _RECIPROCAL_BITS) / np.arange(1, 256)).astype(int)], tf.int32)
    shift = _RECIPROCAL_BITS - HSV_BITS
    # The largest channel decides the sextant from which the difference of the other two counts.
    is_red, is_green = red == most, green == most
    difference = tf.where(is_red, green - blue, tf.where(is_green, blue - red, red - green))
    start = tf.where(is_red, 0, tf.where(is_green, 2 * HSV_ONE, 4 * HSV_ONE))
    place = start + rounded_shift(difference * tf.gather(reciprocals, chroma), shift) + hue
    place = tf.where(place < 0, place + TURN, place)
    full = rounded_shift(chroma * tf.gather(reciprocals, most), shift)
    moved = tf.where(chroma == 0, 0, tf.clip_by_value(full + saturation, 0, HSV_ONE))
    bright = tf.clip_by_value(tf.bitwise.left_shift(most, VALUE_BITS) + value, 0, 255 << VALUE_BITS)
    return tf.where(place >= TURN, place - TURN, place), moved, bright


def channels(hue: tf.Tensor, saturation: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """Converts the result of `shifted` to red, green and blue: int32 `(n, height, width, 3)` from 0 to 255, rounded half to even."""
    found = []
    for first in (5, 3, 1):  # offsets of the channels' curves in sextants
        place = hue + first * HSV_ONE
        place = tf.where(place >= TURN, place - TURN, place)
        less = tf.clip_by_value(tf.minimum(place, 4 * HSV_ONE - place), 0, HSV_ONE)
        rest = HSV_ONE - rounded_shift(saturation * less, HSV_BITS)
        found.append(rounded_shift(value * rest, HSV_BITS + VALUE_BITS))
    return tf.stack(found, -1)


BITS = 12
ONE = 1 << BITS  # a share of 1


def over(images: tf.Tensor, share: tf.Tensor, colour: Sequence[int]) -> tf.Tensor:
    """Blends a colour into images: y = x + share · (colour - x), rounded half to even. Images are int32 `(n, height, width, channels)` from
    0 to 255, shares int32 `(n, height, width)` from 0 to `ONE`. If the number of channels is not that of the colour, its mean counts."""
    channels = int(images.shape[-1])
    levels = colour if channels == len(colour) else [sum(colour) // len(colour)] * channels
    towards = (tf.constant(levels, tf.int32) - images) * share[..., None]
    return images + rounded_shift(towards, BITS)


def shares(values: tf.Tensor) -> tf.Tensor:
    """Rounds shares from float64 to the integers of `over`."""
    return tf.cast(tf.round(tf.clip_by_value(values, 0.0, 1.0) * float(ONE)), tf.int32)


def squares(length: Whole, centre: tf.Tensor, radius: tf.Tensor) -> tf.Tensor:
    """Computes squared distances of `length` rows or columns from centres, in radii, both float64 `(...)` in pixels: int32 `(..., length)`
    in 1/`ONE`, at most 2."""
    away = (tf.range(tf.cast(length, tf.float64), dtype=tf.float64) - centre[..., None]) / tf.maximum(radius, 1.0)[..., None]
    return tf.cast(tf.round(tf.minimum(tf.square(away), 2.0) * float(ONE)), tf.int32)


def clouds(key: tf.Tensor, height: Whole, width: Whole, sigma: float) -> tf.Tensor:
    """Makes smooth, nearly normal noise of mean 0 and deviation 1: int32 `(n, height, width)` in 1/`ONE`, the same on all hardware."""
    field = smooth_field(key, height, width, sigma)
    total = field[:, 0] + field[:, 1]  # integers below 2^24, so the sum is exact
    return tf.cast(tf.round(total * (ONE / (UNIT * deviation(sigma) * 2.0**0.5))), tf.int32)


def plasma(key: tf.Tensor, height: Whole, width: Whole, sigma: float) -> tf.Tensor:
    """Makes noise of three octaves, clipped at two deviations: int32 `(n, height, width)` in 1/`ONE`, from -1 to 1. It depends only on the
    key, uint32 `(n, 2)`; the largest octave is `sigma` pixels wide, at least 4."""
    total = tf.constant(0)
    for octave, weight in enumerate((4, 2, 1)):
        own = tf.bitwise.bitwise_xor(key, tf.constant([0, octave], tf.uint32))
        total += clouds(own, height, width, sigma / (1 << octave)) * weight
    return tf.clip_by_value(total * 100 // 917, -ONE, ONE)  # of 2 deviations: 2 · sqrt(4² + 2² + 1²) = 9.17


def as_bytes(image: tf.Tensor) -> tf.Tensor:
    """Converts to uint8: floats are rounded half to even and clipped."""
    if image.dtype == tf.uint8:
        return image
    return tf.cast(tf.clip_by_value(tf.round(image), 0.0, 255.0), tf.uint8)


def repeated(values: list[int], u: tf.Tensor) -> tf.Tensor:
    """Repeats a table for every example; `u` is `(n, num_draws)`."""
    return tf.tile(tf.constant([[values]], tf.int32), [tf.shape(u)[0], 1, 1])


def solarized(threshold: tf.Tensor) -> tf.Tensor:
    """Maps x to 255 - x if it is at or above the threshold, float64 `(n,)`; Pillow's `solarize`."""
    values = tf.range(256)
    return tf.where(tf.cast(values, tf.float64) < threshold[:, None, None], values, 255 - values)


def posterized(bits: tf.Tensor) -> tf.Tensor:
    """Keeps only the highest bits of x, their number being int32 `(n,)`; Pillow's `posterize`."""
    dropped = tf.bitwise.left_shift(tf.ones_like(bits), 8 - bits)[:, None, None]
    return tf.range(256) // dropped * dropped


def gamma_corrected(gamma: tf.Tensor) -> tf.Tensor:
    """Maps x to 255 · (x / 255) ^ gamma, for exponents float64 `(n,)`, rounded half to even."""
    shares = tf.range(256, dtype=tf.float64) / 255.0
    return tf.cast(tf.round(255.0 * shares ** gamma[:, None, None]), tf.int32)


def auto_contrasted(histogram: tf.Tensor) -> tf.Tensor:
    """Stretches the range of each channel linearly to 0 to 255, rounded down; Pillow's `autocontrast` to the bit. `histogram` is int32
    `(n, channels, 256)`.

    Pillow computes int(x * (255.0 / width) - least * (255.0 / width)) in float64, which is sometimes 1 below the exact quotient. The
    products come from a table, since a compiler may fuse a product and a difference, which rounds differently.
    """
    values = tf.range(256)
    least = tf.reduce_min(tf.where(histogram > 0, values, 255), -1)
    most = tf.reduce_max(tf.where(histogram > 0, values, 0), -1)
    width = most - least
    scales = 255.0 / np.maximum(np.arange(256), 1)
    products = tf.gather(tf.constant(np.arange(256) * scales[:, None], tf.float64), tf.maximum(width, 0))
    line = products - tf.gather(products, least[..., None], batch_dims=2)
    stretched = tf.clip_by_value(tf.cast(line, tf.int32), 0, 255)  # the cast drops the fraction
    return tf.where(width[..., None] > 0, stretched, values)


def equalized(histogram: tf.Tensor) -> tf.Tensor:
    """Equalises the histogram of each channel; Pillow's `equalize` to the bit. With s = (pixels - pixels of the largest value) // 255, x
    becomes (s // 2 + pixels below x) // s, at most 255; a channel with s = 0 stays. `histogram` is int32 `(n, channels, 256)`."""
    values = tf.range(256)
    most = tf.reduce_max(tf.where(histogram > 0, values, 0), -1)
    last = tf.gather(histogram, most[..., None], batch_dims=2)
    step = (tf.reduce_sum(histogram, -1, keepdims=True) - last) // 255
    below = tf.cumsum(histogram, -1, exclusive=True)
    spread = tf.minimum((step // 2 + below) // tf.maximum(step, 1), 255)
    return tf.where(step > 0, spread, values)
