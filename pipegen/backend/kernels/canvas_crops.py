"""Crops and resizes images of several sizes that lie on canvases of one size, for a whole batch.

The bits are those of a window that is cut out and resized by TensorFlow's `ResizeBilinear`: the same products and sums of float32 in
the same order, columns first and then rows. Positions are computed in float64 and rounded to float32 where that kernel rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.uses import own_draws
from pipegen.backend.kernels.geometry import geometric_matrix
from pipegen.ops.families.canvas_crops import size_name
from pipegen.ops.lowering.floats import as_float32, nearest_float32
from pipegen.ops.lowering.linear import multiply

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params, Phase
    from pipegen.ops.families.canvas_crops import CanvasCrop

_WHOLE = 12582912.0
"""1.5 · 2^23: added to a number below 2^22 it leaves that rounded half to even in the last bits of the sum."""


def canvas_crop_params(stage: CanvasCrop, features: Features) -> Params:
    """Finds where each row and each column of the output is read: for each of the two axes the first and the second pixel, int32, and
    the position between them, float32 `(n, size)`; and zeros."""
    draws = features["@draws"]
    n = tf.shape(draws)[0]
    given = features.get(size_name(stage.feature))
    size = tf.tile(tf.constant([stage.canvas]), [n, 1]) if given is None else tf.cast(given, tf.int32)
    window = stage.ref.step.window(own_draws(stage.ref, draws), size[:, 0], size[:, 1])
    top, left, height, width = tf.unstack(tf.broadcast_to(window, [n, 4]), axis=-1)
    down, across = _line(top, height, stage.size[0]), _line(left, width, stage.size[1])
    if stage.mirrors:
        flip = _flips(stage, draws)
        down, across = (tuple(tf.where(f[:, None], t[:, ::-1], t) for t in axis) for axis, f in zip((down, across), flip, strict=True))
    return (*down, *across, tf.zeros_like(top))


def _line(start: tf.Tensor, extent: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds where `count` pixels read a window's `extent` from `start` on, as TensorFlow's resize has it, with pixel centres at halves."""
    scale = nearest_float32(tf.cast(extent, tf.float64) / tf.constant(float(count), tf.float64))
    centre = tf.range(count, dtype=tf.float64) + 0.5
    at = nearest_float32(nearest_float32(centre[None] * scale[:, None]) - 0.5)
    below = tf.floor(at)
    first = tf.maximum(tf.cast(below, tf.int32), 0)
    second = tf.minimum(tf.cast(tf.math.ceil(at), tf.int32), extent[:, None] - 1)
    return start[:, None] + first, start[:, None] + second, as_float32(at - below)


def _flips(stage: CanvasCrop, draws: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Tells which outputs are turned upside down, and which are mirrored left to right."""
    height, width = (tf.constant(float(side), tf.float64) for side in stage.size)
    matrix = geometric_matrix(stage.mirrors[0], draws, height, width)
    for ref in stage.mirrors[1:]:
        matrix = multiply(matrix, geometric_matrix(ref, draws, height, width))
    return matrix[:, 1, 1] < 0, matrix[:, 0, 0] < 0


def canvas_crop_phases(_stage: CanvasCrop) -> tuple[Phase, ...]:
    """Returns the function that reads the two columns of each output column, at every row of the canvas."""
    return (_columns,)


def _columns(value: tf.Tensor, params: Params) -> Params:
    *down, first, second, between, zero = params
    shape = [value.shape[0] or tf.shape(value)[0], value.shape[1], first.shape[1]]

    def read(column: tf.Tensor) -> tf.Tensor:
        return tf.gather(value, tf.broadcast_to(column[:, None], shape), batch_dims=2)

    return (*down, read(first), read(second), tf.repeat(between, value.shape[3], axis=1), zero)


def canvas_crop(stage: CanvasCrop, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Weighs columns, then rows, and rounds half to even."""
    first, second, down, left, right, across, zero = params
    zero = zero[:, None, None]
    # Behind the gather of single pixels: in one program with it, XLA would work out a place anew for each of their bytes.
    flat = [tf.reshape(side, [-1, side.shape[1], side.shape[2] * side.shape[3]]) for side in (left, right)]

    def row(at: tf.Tensor) -> tf.Tensor:
        a, b = (tf.cast(tf.gather(side, at, batch_dims=1), tf.float32) for side in flat)
        return _between(a, b, across[:, None], zero)

    mixed = _between(row(first), row(second), down[:, :, None], zero)
    whole = tf.bitwise.bitwise_and(tf.bitcast(mixed + _WHOLE, tf.int32), 255)
    return tf.reshape(tf.cast(whole, tf.uint8), [-1, *stage.size, value.shape[3]])


def _between(a: tf.Tensor, b: tf.Tensor, weight: tf.Tensor, zero: tf.Tensor) -> tf.Tensor:
    """`a` + (`b` - `a`) · `weight` with three roundings: an exclusive or with zeros that a compiler does not know of keeps it from
    joining the product and the sum into one operation, which would round once."""
    product = tf.bitcast(tf.bitwise.bitwise_xor(tf.bitcast((b - a) * weight, tf.int32), zero), tf.float32)
    return a + product
