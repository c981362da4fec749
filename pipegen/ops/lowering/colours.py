"""Matrices on the channels, by what happens to the colours: what the colour steps are made of.

Every function takes float64 tensors of the batch's shape `(...)` and gives `A (..., out, in)`, `b (..., out)` and `m (..., out)` of
`y = A x + b + m * mean`, in float64, where `mean` is the mean luma of the image that enters the run of colour steps. Luma is
0.299 R + 0.587 G + 0.114 B (ITU-R BT.601); of one channel it is the channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.linear import LUMA, diagonal, stack, vector, zeros

ColourMatrix: TypeAlias = "tuple[tf.Tensor, tf.Tensor, tf.Tensor]"

U_SCALE, V_SCALE = 0.492111, 0.877283
"""The scales of the colour differences blue minus luma and red minus luma in YUV."""


ORDERS = tuple(permutations(range(3)))
"""The orders of three channels: which one each comes from. The first changes nothing."""

_SEPIA = ((0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131))


def brightness(factor: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = factor · x`; the fourth of four channels is transparency, and stays as it is."""
    scales = [factor] * channels if channels != 4 else [factor, factor, factor, 1.0]
    return diagonal(scales, factor), zeros(channels, factor), zeros(channels, factor)


def contrast(factor: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = factor · x + (1 - factor) · mean`."""
    return diagonal([factor] * channels, factor), zeros(channels, factor), vector([1.0 - factor] * channels, factor)


def saturation(factor: tf.Tensor) -> ColourMatrix:
    """`y = factor · x + (1 - factor) · luma(x)`, on three channels."""
    rows = [[(1.0 - factor) * weight + (factor if i == j else 0.0) for j, weight in enumerate(LUMA)] for i in range(3)]
    return stack(rows, factor), zeros(3, factor), zeros(3, factor)


def hue(angle: tf.Tensor) -> ColourMatrix:
    """The chroma (U, V) turned by an angle in radians, on three channels; see `random_hue`."""
    cos, sin = tf.cos(angle), tf.sin(angle)
    quarter = quarter_turn()
    rows = [[weight + ((1.0 if i == j else 0.0) - weight) * cos + quarter[i][j] * sin for j, weight in enumerate(LUMA)] for i in range(3)]
    return stack(rows, angle), zeros(3, angle), zeros(3, angle)


def quarter_turn() -> tuple[tuple[float, float, float], ...]:
    """The 3x3 matrix on RGB that turns the chroma by 90 degrees and drops luma: U' = -V, V' = U."""
    red_y = [(1.0 if j == 0 else 0.0) - weight for j, weight in enumerate(LUMA)]
    blue_y = [(1.0 if j == 2 else 0.0) - weight for j, weight in enumerate(LUMA)]
    ratio = V_SCALE / U_SCALE
    red = [b / ratio for b in blue_y]
    blue = [-r * ratio for r in red_y]
    green = [-(LUMA[0] * r + LUMA[2] * b) / LUMA[1] for r, b in zip(red, blue, strict=True)]
    return (red[0], red[1], red[2]), (green[0], green[1], green[2]), (blue[0], blue[1], blue[2])


def gray(like: tf.Tensor, channels: int, out: int) -> ColourMatrix:
    """Each of `out` channels is the luma of `channels`, for every example of the batch's shape."""
    weights = LUMA if channels == 3 else (1.0,)
    return stack([weights] * out, like), zeros(out, like), zeros(out, like)


def shift(deltas: Sequence[tf.Tensor]) -> ColourMatrix:
    """`y = x + delta`, with a delta for each channel."""
    channels = len(deltas)
    one = deltas[0] * 0.0 + 1.0
    return diagonal([one] * channels, one), vector(deltas, one), zeros(channels, one)


def offset(delta: tf.Tensor, channels: int) -> ColourMatrix:
    """`y = x + delta`; the fourth of four channels is transparency, and stays as it is."""
    return shift([delta] * channels if channels != 4 else [delta, delta, delta, delta * 0.0])


def gains(factors: Sequence[tf.Tensor]) -> ColourMatrix:
    """`y = factor · x`, with a factor for each channel."""
    channels, like = len(factors), factors[0]
    return diagonal(factors, like), zeros(channels, like), zeros(channels, like)


def sepia(like: tf.Tensor) -> ColourMatrix:
    """The brown tones of old photographs, on three channels, for every example of the batch's shape."""
    return stack(_SEPIA, like), zeros(3, like), zeros(3, like)


def reorder(number: tf.Tensor) -> ColourMatrix:
    """Three channels in one of `ORDERS`, by its number, int32 `(...)`."""
    like = tf.zeros_like(number, dtype=tf.float64)
    rows = [[[1.0 if source == column else 0.0 for column in range(3)] for source in order] for order in ORDERS]
    return tf.gather(tf.constant(rows, tf.float64), number), zeros(3, like), zeros(3, like)


def blend(chosen: tf.Tensor, one: ColourMatrix, other: ColourMatrix) -> ColourMatrix:
    """`one` where `chosen`, bool `(...)`, and `other` elsewhere; both have as many channels."""
    b, m = (tf.where(chosen[..., None], x, y) for x, y in zip(one[1:], other[1:], strict=True))
    return tf.where(chosen[..., None, None], one[0], other[0]), b, m


def compose(first: ColourMatrix, second: ColourMatrix) -> ColourMatrix:
    """`second` after `first`; the mean stays that of the image that enters `first`."""
    a1, b1, m1 = first
    a2, b2, m2 = second

    def through(v: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(a2 * v[..., None, :], -1)

    product = tf.reduce_sum(a2[..., :, :, None] * a1[..., None, :, :], -2)
    return product, through(b1) + b2, through(m1) + m2
