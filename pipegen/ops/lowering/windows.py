"""Crop windows: int32 `(top, left, height, width)` inside an image, over any leading batch axes."""

from __future__ import annotations

from typing import TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.linear import stack

Whole: TypeAlias = "int | tf.Tensor"
Box: TypeAlias = "tuple[float | tf.Tensor, float | tf.Tensor, float | tf.Tensor, float | tf.Tensor]"
"""Top, left, height and width, in pixels."""
Sides: TypeAlias = "tuple[Whole, Whole]"
"""Height and width, in pixels."""


def pick(u: tf.Tensor, most: tf.Tensor) -> tf.Tensor:
    """A whole number from 0 to `most`, each as likely: ⌊u (most + 1)⌋ for `u` in [0, 1), in float64."""
    places = tf.cast(most, tf.float64) + 1.0
    return tf.clip_by_value(tf.cast(tf.floor(u * places), tf.int32), 0, tf.maximum(most, 0))


def place(top: Whole, left: Whole, height: Whole, width: Whole, u: tf.Tensor) -> tf.Tensor:
    """The window as int32 `(..., 4)`, broadcast to the batch's shape of `u` `(..., num_draws)`."""
    zero = tf.zeros(tf.shape(u)[:-1], tf.int32)
    return tf.stack([zero + part for part in (top, left, height, width)], axis=-1)


def inside(size: tuple[int, int], height: tf.Tensor, width: tf.Tensor) -> None:
    """Stop with a clear message when an image turns out to be smaller than the window."""
    if tf.get_static_value(height) is not None and tf.get_static_value(width) is not None and not tf.executing_eagerly():
        return  # a known size has been checked by `infer`
    message = f"the crop of {size[0]}x{size[1]} exceeds the image, whose height and width are"
    # The raw op, since `tf.debugging.Assert` wraps it in a branch, which costs more than the crop.
    fits = tf.reduce_all(tf.logical_and(height >= size[0], width >= size[1]))
    tf.raw_ops.Assert(condition=fits, data=[message, height, width])


def onto(box: Box, size: Sides, like: tf.Tensor) -> tf.Tensor:
    """The matrix from pixels of an output to those of an image of which it shows a part: float64 `(..., 3, 3)`, as `like` has examples."""
    top, left, height, width = (tf.cast(side, tf.float64) for side in box)
    down, across = height / tf.cast(size[0], tf.float64), width / tf.cast(size[1], tf.float64)
    rows = [[across, 0.0, left + (across - 1.0) / 2.0], [0.0, down, top + (down - 1.0) / 2.0], [0.0, 0.0, 1.0]]
    return stack(rows, like)
