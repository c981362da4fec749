"""Lowering of geometric stages: the matrices of steps, their product, and one resampling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
import tensorflow as tf

from pipegen.backend.features import Features, Params, Phase
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels import warp as w
from pipegen.ops.lowering.linear import multiply, stack
from pipegen.ops.stage import StepRef
from pipegen.ops.step_bases import CropTransform, GeometricTransform
from pipegen.plan import stages as s


def geometric_matrix(ref: StepRef[GeometricTransform | CropTransform], draws: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Computes one step's output-to-input matrix, float64 `(n, 3, 3)`."""
    matrix = _own_matrix(ref, draws, height, width)
    return tf.where(acts(ref, draws)[:, None, None], matrix, tf.eye(3, dtype=tf.float64)) if ref.conditional else matrix


def _own_matrix(ref: StepRef[GeometricTransform | CropTransform], draws: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """The matrix of a step that acts on all examples."""
    u = own_draws(ref, draws)
    if isinstance(ref.step, CropTransform):
        window = step_of(ref.of(CropTransform), draws).window(u, tf.cast(height, tf.int32), tf.cast(width, tf.int32))
        window = tf.cast(tf.broadcast_to(window, [tf.shape(draws)[0], 4]), tf.float64)
        return stack([[1.0, 0.0, window[:, 1]], [0.0, 1.0, window[:, 0]], [0.0, 0.0, 1.0]], window[:, 0])
    matrix = step_of(ref.of(GeometricTransform), draws).matrix(u, height, width)
    if matrix.shape[:1] != draws.shape[:1] or matrix.shape[0] is None:
        matrix = tf.broadcast_to(matrix, [tf.shape(draws)[0], 3, 3])
    return matrix


def _canvas(stage: s.Compose | s.Warp, image: tf.Tensor) -> tuple[tf.Tensor, ...]:
    shape, known = tf.shape(image), enumerate(stage.canvas, 1)
    return tuple(np.float64(side) if side is not None else tf.cast(shape[axis], tf.float64) for axis, side in known)


def product(
    refs: Sequence[StepRef[GeometricTransform | CropTransform]], draws: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
    """Multiplies the matrices of steps, float64 `(n, 3, 3)`."""
    return reduce(multiply, (geometric_matrix(ref, draws, height, width) for ref in refs))


def warp_params(stage: s.Warp, features: Features) -> Params:
    """Multiplies the matrices of steps; the result is in fixed point unless they only mirror and turn."""
    image = features[stage.feature]
    matrix = product(stage.refs, features["@draws"], *_canvas(stage, image))
    return (matrix,) if stage.copies() else (_fixed(matrix, image, stage),)


def warp_phases(stage: s.Warp) -> tuple[Phase, ...]:
    """Lists the functions that find the positions to read."""
    fill, interpolation = w.outside(stage.fill), stage.interpolation
    if stage.copies():
        return ()
    if stage.projective:

        def around(image: tf.Tensor, params: Params) -> Params:
            index = tf.int16 if _narrow(stage, image) else tf.int32
            return w.around(params[0], params[1], w.sides(image), fill[0], interpolation, index)

        return lambda image, params: w.project(params[0], size=_size(image, stage), fill=fill[0], interpolation=interpolation), around
    if not stage.keeps_lines():
        return (partial(_locate, stage, near=w.stays_near([ref.step.reach() for ref in stage.refs])),)

    def lines(image: tf.Tensor, params: Params) -> Params:
        return w.locate_lines(params[0], w.sides(image), _size(image, stage), fill[0]) if _in_lines(stage, image) else params

    def rows(image: tf.Tensor, params: Params) -> Params:
        if not _in_lines(stage, image):
            return _locate(stage, image, params)
        row, down, column, across = params
        return w.weigh_rows(image, row, down, *fill), column, across

    return lines, rows


def warp(stage: s.Warp, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Reads the images once."""
    if _in_lines(stage, value):
        return w.weigh_columns(*params)
    if stage.turns:
        return w.turn(value, params[0], always=stage.size != stage.canvas)
    return w.mirror(value, params[0]) if stage.mirrors else w.read(value, params, stage.fill, exact=stage.exact)


def moves(stage: s.Warp, image: tf.Tensor, params: Params) -> tf.Tensor | None:
    """Tests which images a warp changes, bool `(n, ...)`; `None` if it may change all, in perspective or to another size."""
    if stage.size != stage.canvas or stage.projective or None in image.shape[1:3]:
        return None
    still = tf.eye(3, batch_shape=[1], dtype=tf.float64)
    return params[0] != (still if stage.copies() else w.fixed_matrix(still, stage.interpolation))


def compose_matrix(stage: s.Compose, features: Features) -> None:
    """Multiplies a step's matrix into the pending one, `@matrix/FEATURE`."""
    name = stage.feature
    matrix = geometric_matrix(stage.ref, features["@draws"], *_canvas(stage, features[name]))
    features[f"@matrix/{name}"] = matrix if stage.opens else multiply(features[f"@matrix/{name}"], matrix)


def resample(stage: s.Resample, features: Features) -> None:
    """Reads the image through the pending matrix."""
    name = stage.feature
    fixed = _fixed(features.pop(f"@matrix/{name}"), features[name], stage)
    features[name] = w.read(features[name], _locate(stage, features[name], (fixed,)), stage.fill, exact=stage.exact)


def _size(image: tf.Tensor, stage: s.Warp | s.Resample) -> w.Size:
    shape = tf.shape(image)
    height, width = stage.size
    return height if height is not None else shape[1], width if width is not None else shape[2]


def _fixed(matrix: tf.Tensor, image: tf.Tensor, stage: s.Warp | s.Resample) -> tf.Tensor:
    if stage.projective:
        return w.fixed_homography(matrix, _size(image, stage))
    return w.fixed_matrix(matrix, stage.interpolation)


def _locate(stage: s.Warp | s.Resample, image: tf.Tensor, params: Params, *, near: bool = False) -> Params:
    size, (fill, _) = _size(image, stage), w.outside(stage.fill)
    narrow = _narrow(stage, image)
    return w.locate(params[0], w.sides(image), size, fill=fill, interpolation=stage.interpolation, narrow=narrow, near=near)


def _in_lines(stage: s.Warp, image: tf.Tensor) -> bool:
    """Chooses reading by rows and then by columns, which gives the same bits for integers."""
    return stage.keeps_lines() and image.dtype == tf.uint8


def _narrow(stage: s.Warp | s.Resample, image: tf.Tensor) -> bool:
    return w.fits_int32((image.shape[1], image.shape[2]), stage.size)
