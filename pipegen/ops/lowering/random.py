"""Random numbers: Threefry-2x32, distributions, and smooth fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.filters import gaussian_radius
from pipegen.ops.lowering.graphs import call
from pipegen.ops.lowering.linear import product
from pipegen.ops.lowering.windows import Whole

Word: TypeAlias = "tf.Tensor"  # a uint32 tensor

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tuple[Word, Word]:
    """Encrypts a counter: two uint32 words of random bits for each pair of key and counter words (broadcast together)."""
    shape = tf.TensorShape([])
    for word in (*key, *counter):
        shape = tf.broadcast_static_shape(shape, word.shape)
    x0, x1 = call(_cipher(), *key, *counter)
    for word in (x0, x1) if not tf.executing_eagerly() else ():
        word.set_shape(shape)
    return x0, x1


@cache
def _cipher() -> Callable[..., tuple[Word, Word]]:
    """Makes a function of the rounds, more than a hundred operations, for words of any shape, traced once a process."""
    return tf.function(_rounds, autograph=False, input_signature=[tf.TensorSpec(None, tf.uint32)] * 4)


def _rounds(key0: Word, key1: Word, counter0: Word, counter1: Word) -> tuple[Word, Word]:
    key, counter = (key0, key1), (counter0, counter1)
    schedule = (*key, tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(key[0], key[1]), tf.constant(_PARITY, tf.uint32)))
    # Each use of a Python number would be a node of the graph.
    amounts = {bits: tf.constant(bits, tf.uint32) for half in _ROTATIONS for one in half for bits in (one, 32 - one)}
    x0, x1 = counter[0] + schedule[0], counter[1] + schedule[1]
    for block in range(5):
        for bits in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            rotated = tf.bitwise.bitwise_or(tf.bitwise.left_shift(x1, amounts[bits]), tf.bitwise.right_shift(x1, amounts[32 - bits]))
            x1 = tf.bitwise.bitwise_xor(rotated, x0)
        x0 = x0 + schedule[(block + 1) % 3]
        x1 = x1 + schedule[(block + 2) % 3] + tf.constant(block + 1, tf.uint32)
    return x0, x1


def key_of(u: tf.Tensor) -> tf.Tensor:
    """Makes a key for each example, uint32 `(n, 2)`, from two draws: float64 `(n, 2)`, uniform in [0, 1)."""
    return tf.cast(tf.cast(tf.floor(u * 4294967296.0), tf.int64), tf.uint32)


def half_words(key: tf.Tensor, count: int | tf.Tensor) -> tf.Tensor:
    """Makes `count` random bits for each example: uint16 `(n, count)`, where number `i` of an example depends only on its key, uint32 `(n,
    2)`, and `i`."""
    pairs = (count + 1) // 2
    number = tf.cast(tf.range(pairs), tf.uint32)[None, :]
    # The second word of each pair would cost as much as another counter: XLA computes both results separately.
    words, _ = threefry2x32((key[:, :1], key[:, 1:]), (number, tf.zeros_like(number)))
    return tf.reshape(tf.bitcast(words, tf.uint16), [-1, 2 * pairs])[:, :count]


def symmetric_dirichlet(u: tf.Tensor, alpha: float) -> tf.Tensor:
    """Draws shares from Dirichlet(alpha, …, alpha), float64 `(..., k)` that sum to 1: quantiles of Gamma(alpha) at uniform numbers of that
    shape, in [0, 1), divided by their sum. `alpha` is from 0.1 to 100; with 1 all shares are equally likely."""
    u = tf.maximum(u, 2.0**-53)
    if alpha == 1:
        logs = tf.math.log(-tf.math.log1p(-u))
    else:  # the logarithms of the quantiles, to 1e-12, by bisection
        low = tf.zeros_like(u) + (math.lgamma(alpha + 1) - 38.0) / alpha  # P(x) is about x^alpha / Gamma(alpha + 1) for small x
        high = tf.zeros_like(u) + math.log(alpha + 40.0 * math.sqrt(alpha) + 40.0)
        for _ in range(48):
            middle = (low + high) / 2.0
            below = tf.math.igamma(tf.constant(alpha, tf.float64), tf.exp(middle)) < u
            low, high = tf.where(below, middle, low), tf.where(below, high, middle)
        logs = (low + high) / 2.0
    parts = tf.exp(logs - tf.reduce_max(logs, -1, keepdims=True))
    return parts / tf.reduce_sum(parts, -1, keepdims=True)


BITS = 12  # normal numbers are in 1/4096


def normal_numbers(places: tf.Tensor) -> tf.Tensor:
    """Converts 16 random bits to normal numbers in 1/4096, int32: one of 65,536 quantiles, from -4.33 to 4.33."""
    return tf.cast(tf.gather(tf.constant(quantiles(), tf.int16), tf.cast(places, tf.int32)), tf.int32)


@cache
def quantiles() -> tuple[int, ...]:
    """Computes the middle of each of 65,536 equally likely parts of the normal distribution, in 1/4096."""
    from statistics import NormalDist

    normal = NormalDist()
    upper = [round(normal.inv_cdf(0.5 + (i + 0.5) / 65536) * (1 << BITS)) for i in range(32768)]
    return tuple(-v for v in reversed(upper)) + tuple(upper)


_WEIGHT = 1 << 11  # the sum of the weights of one pixel, and the largest value between the two products
_NOISE = 1 << 8
UNIT = float(_WEIGHT * _WEIGHT)  # 1 in a field


def spacing(sigma: float) -> int:
    """Returns the spacing of the grid's points, in pixels, that a Gaussian of this sigma hides."""
    return max(1, int(sigma))


def deviation(sigma: float) -> float:
    """Returns the standard deviation of a field, as a share of the range of its noise."""
    return spacing(sigma) / (math.sqrt(12.0 * math.pi) * sigma)


def smooth_field(key: tf.Tensor, height: Whole, width: Whole, sigma: float) -> tf.Tensor:
    """Makes two fields of noise for each example, uniform in [-1, 1] at the points of a grid and averaged with Gaussian weights of standard
    deviation `sigma` in pixels: float32 `(n, 2, height, width)`, integers in 1/`UNIT`. They depend only on the key, uint32 `(n, 2)`.

    The noise continues outside the image, so a field has the same deviation everywhere.
    """
    rows, columns = _points(height, sigma), _points(width, sigma)
    bytes_ = tf.bitwise.right_shift(half_words(key, 2 * rows * columns), tf.constant(8, tf.uint16))
    odd = tf.cast(2 * tf.cast(bytes_, tf.int32) - 255, tf.float32)  # from -255 to 255
    noise = tf.reshape(odd, [-1, 2, rows, columns])
    down = product(_weights(height, sigma), noise)  # (n, 2, height, columns)
    return product(tf.round(down * (1.0 / _NOISE)), tf.transpose(_weights(width, sigma)))


def _points(length: Whole, sigma: float) -> Whole:
    """Counts the points of the grid along a side: from 3 sigma before the image to 3 sigma after it."""
    return (length - 1 + 2 * gaussian_radius(sigma)) // spacing(sigma) + 2


def _weights(length: Whole, sigma: float) -> tf.Tensor:
    """Computes the weight of each point of the grid at each pixel: float32 `(length, points)`, integers that sum to `_WEIGHT`."""
    step, reach = spacing(sigma), gaussian_radius(sigma)
    points = _points(length, sigma)
    pixel = tf.cast(tf.range(length), tf.float64)[:, None]
    place = tf.cast(tf.range(points) * step - reach, tf.float64)[None, :]
    bell = tf.exp(-tf.square((pixel - place) / sigma) / 2.0)
    whole = tf.round(bell / tf.reduce_sum(bell, 1, keepdims=True) * float(_WEIGHT))
    nearest = tf.one_hot((tf.range(length) + reach + step // 2) // step, points, dtype=tf.float64)
    return tf.cast(whole + nearest * (float(_WEIGHT) - tf.reduce_sum(whole, 1, keepdims=True)), tf.float32)
