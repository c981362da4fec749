"""Moves items with their image, such as points, through the inverse of the matrix that it is read through; and shortens their batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.uses import own_draws, step_of
from pipegen.backend.kernels.geometry import geometric_matrix
from pipegen.ops.base import GeometricTransform
from pipegen.ops.kinds.registry import kind_named
from pipegen.ops.lowering.linear import multiply
from pipegen.ops.lowering.windows import onto
from pipegen.types import valid_name

if TYPE_CHECKING:
    from pipegen.backend.features import Features
    from pipegen.plan import stages as s


def measure(stage: s.Measure, features: Features) -> None:
    """Notes the size of an image, whose file is at hand: int32 `(2,)`."""
    name, decode = stage.like
    features[f"@size/{stage.feature}"] = decode.step.stored_size(features[name])


def move(stage: s.Move, features: Features) -> None:
    """Moves the items of a batch, in place. Those that are left come first, in the order that they had; zeros follow.

    Args:
        stage: The stage.
        features: A batch, `(n, ...)` each; where the size of the images is not known before, of one example.
    """
    name, valid, size = stage.feature, valid_name(stage.feature), f"@size/{stage.feature}"
    items, there, draws = features[name], features[valid], features["@draws"]
    before = _known(stage.canvas, features.get(size))
    matrix, after = _product(stage, draws, before)
    features[size] = tf.broadcast_to(tf.stack(after), [tf.shape(items)[0], 2])
    moved, inside = kind_named(stage.kind).move(items, _inverse(matrix), before, after)
    there = tf.logical_and(there, inside)
    place = tf.range(items.shape[1])
    order = tf.argsort(tf.where(there, place, place + items.shape[1]))
    there = tf.gather(there, order, batch_dims=1)
    moved = tf.gather(moved, order, batch_dims=1)
    shown = tf.reshape(there, tf.concat([tf.shape(there), [1] * (items.shape.rank - 2)], 0))
    features[name], features[valid] = tf.where(shown, moved, tf.zeros_like(moved)), there


def shorten(stage: s.Shorten, features: Features) -> None:
    """Cuts the items of a batch, of which those that are there come first, to the least length that holds them, in place."""
    lengths = tf.constant(stage.lengths)
    most = tf.reduce_max(tf.math.count_nonzero(features[valid_name(stage.feature)], axis=1, dtype=lengths.dtype))
    length = tf.gather(lengths, tf.searchsorted(lengths, most[None])[0])
    for name in stage.touches():
        features[name] = features[name][:, :length]


def _known(sides: tuple[int | None, int | None], size: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
    """Height and width, int32 scalars: as they were known before, or as they were found for the one example."""
    height, width = (side if side is not None or size is None else size[0, i] for i, side in enumerate(sides))
    return tf.convert_to_tensor(height, tf.int32), tf.convert_to_tensor(width, tf.int32)


def _product(stage: s.Move, draws: tf.Tensor, before: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """The matrix from the image that leaves to the one that enters, float64 `(n, 3, 3)`, and the size of the former."""
    real = [tf.cast(side, tf.float64) for side in before]
    whole, after = tf.eye(3, batch_shape=[tf.shape(draws)[0]], dtype=tf.float64), before
    for ref in stage.refs:
        if isinstance(ref.step, GeometricTransform):
            matrix = geometric_matrix(ref.of(GeometricTransform), draws, *real)
        else:
            box, after = step_of(ref, draws).shown(own_draws(ref, draws), *before)
            after = tf.convert_to_tensor(after[0], tf.int32), tf.convert_to_tensor(after[1], tf.int32)
            matrix = onto(box, after, draws[:, 0] if draws.shape[1] else whole[:, 0, 0])
        whole = multiply(whole, matrix)
    return whole, after


def _inverse(m: tf.Tensor) -> tf.Tensor:
    """The inverses of 3x3 matrices `(n, 3, 3)`, up to a factor, which homogeneous coordinates do not see."""
    rows = tf.unstack(m, axis=1)
    columns = [tf.linalg.cross(rows[(i + 1) % 3], rows[(i + 2) % 3]) for i in range(3)]
    return tf.stack(columns, axis=-1)
