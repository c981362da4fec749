"""Lowering of colour stages: the matrices of steps, their product, and its application to batches of images."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import TypeAlias

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.lowering.colours import compose, counts_channels
from pipegen.ops.lowering.graphs import by_xla
from pipegen.ops.lowering.linear import as_float32
from pipegen.ops.stage import StepRef
from pipegen.ops.step_bases import ColourTransform
from pipegen.plan import stages as s
from pipegen.types import Interval

ColourMatrix: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]
"""`A (..., out, in)`, `b (..., out)` and `m` of `y = A x + b + m * mean`: `(..., out)` for the mean luma, `(..., out, in)` for the means of
channels."""


def apply_colour(
    image: tf.Tensor, matrix: ColourMatrix, clip: Interval | None, *, uses_mean: bool, mixes_channels: bool = True, exact: bool = False
) -> tf.Tensor:
    """Applies a float32 matrix to each image `(n, height, width, in)` and clips once: float32 `(n, height, width, out)`.

    `m` differs from zero only if it `uses_mean`, and `A` has entries off its diagonal only if it `mixes_channels`. If `exact`, every bit
    counts; see `ops/lowering/linear.py`.
    """
    dtype = tf.float64 if exact else tf.float32
    a, b, m = (tf.cast(part, dtype) for part in matrix)
    if uses_mean and counts_channels(matrix):
        b += tf.reduce_sum(m * tf.cast(channel_means(image), dtype)[:, None, :], -1)
    elif uses_mean:
        b += m * tf.cast(mean_luma(image), dtype)[:, None]
    x = tf.cast(image, dtype)
    y = _mixed(x, a, b) if mixes_channels else x * tf.linalg.diag_part(a)[:, None, None] + b[:, None, None]
    return as_float32(y if clip is None else tf.clip_by_value(y, clip.low, clip.high))


def _mixed(x: tf.Tensor, a: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
    """`A x + offset` of floats `(n, height, width, in)`."""
    sources = tf.unstack(x, axis=-1)
    count = int(a.shape[-2])
    factors, shifts = (
        tf.unstack(tf.reshape(part, [-1, size, 1, 1]), axis=1) for part, size in ((a, count * len(sources)), (offset, count))
    )
    rows = (factors[o * len(sources) : (o + 1) * len(sources)] for o in range(count))
    return tf.stack([reduce(add, map(mul, row, sources)) + shift for row, shift in zip(rows, shifts, strict=True)], -1)


def mean_luma(image: tf.Tensor) -> tf.Tensor:
    """Computes the mean luma (0.299 R + 0.587 G + 0.114 B) of each image, float32 `(n,)`.

    Bytes are summed as integers, exactly, row by row: that costs XLA a fifth of a sum over pixels. Floats are summed in float64, so the
    order of the sum does not matter. With weights in 1/1000, all but the division is exact. The division is a product with the
    reciprocal, as XLA computes it for static sizes.
    """
    weights = [1000.0] if image.shape[-1] == 1 else [299.0, 587.0, 114.0]
    return as_float32(tf.reduce_sum(_sums(image) * tf.constant(weights, tf.float64), -1) * (1.0 / (1000.0 * _pixels(image))))


def channel_means(image: tf.Tensor) -> tf.Tensor:
    """Computes the mean of each channel of each image, float32 `(n, channels)`; sums are those of `mean_luma`."""
    return as_float32(_sums(image) * (1.0 / _pixels(image)))


def _pixels(image: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.shape(image)[1] * tf.shape(image)[2], tf.float64)


def _sums(image: tf.Tensor) -> tf.Tensor:
    """Adds the values of each channel: float64 `(n, channels)`."""
    if not image.dtype.is_integer:
        return tf.reduce_sum(tf.cast(image, tf.float64), [1, 2])
    height, width, channels = (tf.shape(image)[a] if image.shape[a] is None else image.shape[a] for a in (1, 2, 3))
    rows = tf.reshape(image, [-1, height, width * channels])
    columns = _added(rows, height) if by_xla.get() and isinstance(height, int) else tf.reduce_sum(tf.cast(rows, tf.int32), 1)
    return tf.reduce_sum(tf.cast(tf.reshape(columns, [-1, width, channels]), tf.float64), 1)


def _added(rows: tf.Tensor, height: int) -> tf.Tensor:
    """Adds lines of bytes `(n, height, ...)`: int32 `(n, ...)`. Up to 64 blocks of lines are added in 16 bits, then the lines of their
    sum: in XLA that takes a sixth of the time of a reduction."""
    size = max(8, -(-height // 64)) if height >= 8 else height
    blocks, rest = divmod(height, size)
    total = tf.cast(reduce(add, (tf.cast(rows[:, i * size : (i + 1) * size], tf.uint16) for i in range(blocks))), tf.int32)
    lines = [*tf.unstack(total, axis=1), *(tf.cast(rows[:, height - 1 - i], tf.int32) for i in range(rest))]
    return reduce(add, lines)


def pointwise(image: tf.Tensor, arithmetic: Arithmetic, *, exact: bool = False) -> tf.Tensor:
    """Scales, shifts and casts values along the last axis, or the last two, in float32, or in float64 if every bit counts."""
    dtype = tf.as_dtype(arithmetic.dtype)
    x = tf.gather(image, list(arithmetic.order), axis=-1) if arithmetic.order else image
    plain = all(v == 1 for v in arithmetic.scale) and all(v == 0 for v in arithmetic.offset)
    if plain and (dtype == x.dtype or (dtype.is_floating and x.dtype.is_integer)):
        return tf.cast(x, dtype)
    working = tf.float64 if exact else tf.float32
    x = tf.cast(x, working)
    if not plain:
        constants = (tf.constant(part, tf.float32) for part in (arithmetic.scale, arithmetic.offset))
        own = (tf.reshape(part, [arithmetic.bands, -1]) if arithmetic.bands > 1 else part for part in constants)
        scale, offset = (tf.cast(part, working) for part in own)
        x = as_float32(x * scale + offset)
    if dtype.is_integer:
        x = tf.clip_by_value(tf.round(x), float(dtype.min), float(dtype.max))
    return tf.cast(x, dtype)


def colour_matrix(ref: StepRef[ColourTransform], draws: tf.Tensor, channels: int) -> ColourMatrix:
    """Computes one step's colour matrix, float64."""
    n = tf.shape(draws)[0]
    a, b, m = step_of(ref, draws).matrix(own_draws(ref, draws), channels)
    out = a.shape[-2]
    means = [n, out, channels] if counts_channels((a, b, m)) else [n, out]
    a, b, m = tf.broadcast_to(a, [n, out, channels]), tf.broadcast_to(b, [n, out]), tf.broadcast_to(m, means)
    if not ref.conditional:
        return a, b, m
    when, eye = acts(ref, draws), tf.eye(channels, batch_shape=[n], dtype=tf.float64)
    m = tf.where(when[:, None, None] if len(means) == 3 else when[:, None], m, tf.zeros_like(m))
    return tf.where(when[:, None, None], a, eye), tf.where(when[:, None], b, tf.zeros_like(b)), m


def colour_params(stage: s.Colour, features: Features) -> Params:
    """Multiplies the matrices of steps, float32."""
    draws = features["@draws"]
    matrix = colour_matrix(stage.refs[0], draws, stage.channels)
    for ref in stage.refs[1:]:
        matrix = compose(matrix, colour_matrix(ref, draws, int(matrix[0].shape[-2])))
    return tuple(tf.cast(part, tf.float32) for part in matrix)


def colour(stage: s.Colour, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Applies the matrices to the images."""
    a, b, m = params
    how = {"uses_mean": stage.uses_mean, "mixes_channels": stage.mixes_channels, "exact": stage.exact}
    return apply_colour(value, (a, b, m), stage.clip, **how)


def compose_colour(stage: s.ComposeColour, features: Features) -> None:
    """Multiplies a step's matrix into the pending one, `@colour/FEATURE/a`, `/b` and `/m`."""
    matrix = colour_matrix(stage.ref, features["@draws"], stage.channels)
    key = f"@colour/{stage.feature}"
    if not stage.opens:
        matrix = compose((features[f"{key}/a"], features[f"{key}/b"], features[f"{key}/m"]), matrix)
    features |= dict(zip((f"{key}/a", f"{key}/b", f"{key}/m"), matrix, strict=True))


def apply_pending(stage: s.ApplyColour, features: Features) -> None:
    """Applies the pending matrix."""
    name, key = stage.feature, f"@colour/{stage.feature}"
    a, b, m = (tf.cast(features.pop(f"{key}/{part}"), tf.float32) for part in "abm")
    features[name] = apply_colour(features[name], (a, b, m), stage.clip, uses_mean=stage.uses_mean, exact=stage.exact)
