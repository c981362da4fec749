"""Lowers the segments of geometry: the matrices of steps, their product, and one resampling."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.uses import acts, own_draws, step_of
from pipegen.backend.kernels.positions import Size, around, fits_int32, fixed_homography, fixed_matrix, locate, project
from pipegen.backend.kernels.warp import mirror, read
from pipegen.ops.base import ConstantFill, CropTransform, GeometricTransform
from pipegen.ops.lowering.linear import multiply

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params, Phase
    from pipegen.plan import stages as s


def geometric_matrix(
    ref: s.StepRef[GeometricTransform | CropTransform], draws: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
    """One step's output-to-input matrix, float64 `(n, 3, 3)`."""
    u = own_draws(ref, draws)
    if isinstance(ref.step, CropTransform):
        window = ref.step.window(u, tf.cast(height, tf.int32), tf.cast(width, tf.int32))
        window = tf.cast(tf.broadcast_to(window, [tf.shape(draws)[0], 4]), tf.float64)
        one, zero = tf.ones_like(window[:, 0]), tf.zeros_like(window[:, 0])
        return tf.stack(
            [tf.stack([one, zero, window[:, 1]], -1), tf.stack([zero, one, window[:, 0]], -1), tf.stack([zero, zero, one], -1)], -2
        )
    matrix = step_of(ref.of(GeometricTransform), draws).matrix(u, height, width)
    eye = tf.eye(3, batch_shape=[tf.shape(draws)[0]], dtype=tf.float64)
    matrix = tf.broadcast_to(matrix, tf.shape(eye))
    return tf.where(acts(ref, draws)[:, None, None], matrix, eye) if ref.conditional else matrix


def _canvas(stage: s.Compose | s.Warp, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    height, width = stage.canvas
    shape = tf.shape(image)
    return (
        tf.constant(height, tf.float64) if height is not None else tf.cast(shape[1], tf.float64),
        tf.constant(width, tf.float64) if width is not None else tf.cast(shape[2], tf.float64),
    )


def _product(stage: s.Warp, image: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    height, width = _canvas(stage, image)
    matrix = geometric_matrix(stage.refs[0], draws, height, width)
    for ref in stage.refs[1:]:
        matrix = multiply(matrix, geometric_matrix(ref, draws, height, width))
    return matrix


def warp_params(stage: s.Warp, features: Features) -> Params:
    """Multiplies the matrices of a segment, in fixed point unless they only mirror."""
    image = features[stage.feature]
    matrix = _product(stage, image, features["@draws"])
    return (matrix,) if stage.mirrors else (_fixed(matrix, image, stage),)


def warp_phases(stage: s.Warp) -> tuple[Phase, ...]:
    """Returns the functions that find where each pixel is read, apart from the reading."""
    if stage.mirrors:
        return ()
    if stage.projective:
        return partial(_project, stage), partial(_around, stage)
    return (lambda value, params: _locate(value, params[0], stage),)


def warp(stage: s.Warp, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Reads the images once."""
    return mirror(value, params[0]) if stage.mirrors else _read(value, params, stage)


def compose_matrix(stage: s.Compose, features: Features) -> None:
    """Multiplies a step's matrix into the pending one, `@matrix/FEATURE`."""
    name = stage.feature
    matrix = geometric_matrix(stage.ref, features["@draws"], *_canvas(stage, features[name]))
    features[f"@matrix/{name}"] = matrix if stage.opens else multiply(features[f"@matrix/{name}"], matrix)


def resample(stage: s.Resample, features: Features) -> None:
    """Reads the image through the pending matrix."""
    name = stage.feature
    fixed = _fixed(features.pop(f"@matrix/{name}"), features[name], stage)
    features[name] = _read(features[name], _locate(features[name], fixed, stage), stage)


def _size(image: tf.Tensor, stage: s.Warp | s.Resample) -> Size:
    """Height and width of the output, in pixels."""
    shape = tf.shape(image)
    height, width = stage.size
    return height if height is not None else shape[1], width if width is not None else shape[2]


def _fixed(matrix: tf.Tensor, image: tf.Tensor, stage: s.Warp | s.Resample) -> tf.Tensor:
    """The matrices in fixed point."""
    if stage.projective:
        return fixed_homography(matrix, _size(image, stage))
    return fixed_matrix(matrix, stage.interpolation)


def _locate(image: tf.Tensor, fixed: tf.Tensor, stage: s.Warp | s.Resample) -> Params:
    return locate(
        fixed,
        canvas=_canvas_of(image),
        size=_size(image, stage),
        fill=_fill(stage),
        interpolation=stage.interpolation,
        narrow=fits_int32((image.shape[1], image.shape[2]), stage.size),
    )


def _read(image: tf.Tensor, located: Params, stage: s.Warp | s.Resample) -> tf.Tensor:
    return read(image, located, fill=_fill(stage), constant=_constant(stage), exact=stage.exact)


def _project(stage: s.Warp, image: tf.Tensor, params: Params) -> Params:
    return project(params[0], size=_size(image, stage), fill=_fill(stage), interpolation=stage.interpolation)


def _around(stage: s.Warp, image: tf.Tensor, params: Params) -> Params:
    index = tf.int16 if fits_int32((image.shape[1], image.shape[2]), stage.size) else tf.int32
    return around(params[0], params[1], _canvas_of(image), _fill(stage), stage.interpolation, index)


def _canvas_of(image: tf.Tensor) -> Size:
    """Height and width of what is read, in pixels."""
    shape = tf.shape(image)
    height, width = (image.shape[a] if image.shape[a] is not None else shape[a] for a in (1, 2))
    return height, width


def _fill(stage: s.Warp | s.Resample) -> str:
    return stage.fill if isinstance(stage.fill, str) else "constant"


def _constant(stage: s.Warp | s.Resample) -> float:
    return stage.fill.constant if isinstance(stage.fill, ConstantFill) else 0.0
