"""Crop windows: int32 `(top, left, height, width)` inside an image, over any leading batch axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pipegen.lazy import tf
from pipegen.ops.lowering.linear import Scalar, stack

if TYPE_CHECKING:
    from pipegen.ops.arguments.geometry import Fill

Whole: TypeAlias = "int | tf.Tensor"
Box: TypeAlias = "tuple[float | tf.Tensor, float | tf.Tensor, float | tf.Tensor, float | tf.Tensor]"
"""Top, left, height and width, in pixels."""
Sides: TypeAlias = "tuple[Whole, Whole]"  # height and width, in pixels


def pick(u: tf.Tensor, most: Scalar) -> tf.Tensor:
    """Draws an integer from 0 to `most`, uniformly: ⌊u (most + 1)⌋ for `u` in [0, 1), in float64."""
    places = tf.cast(most, tf.float64) + 1.0
    return tf.clip_by_value(tf.cast(tf.floor(u * places), tf.int32), 0, tf.maximum(most, 0))


def whole_between(u: tf.Tensor, bounds: tuple[Scalar, Scalar]) -> tf.Tensor:
    """Draws an integer between bounds, both included, uniformly; float bounds from a schedule are rounded, half to even."""
    low, high = (tf.cast(tf.round(bound), tf.int32) if tf.is_tensor(bound) else bound for bound in bounds)
    return low + pick(u, high - low)


def place(top: Whole, left: Whole, height: Whole, width: Whole, u: tf.Tensor) -> tf.Tensor:
    """Stacks a window as int32 `(..., 4)`, broadcast to the batch's shape of `u` `(..., num_draws)`."""
    zero = tf.zeros(tf.shape(u)[:-1], tf.int32)
    return tf.stack([zero + part for part in (top, left, height, width)], axis=-1)


def reflect(i: tf.Tensor, length: Whole) -> tf.Tensor:
    """Reflects lines into 0..length-1 (abc|cba, the edge repeated)."""
    i = tf.math.floormod(i, 2 * length)
    return tf.minimum(i, 2 * length - 1 - i)


_SHOWN: dict[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "reflect": reflect,
    "nearest": lambda i, length: tf.clip_by_value(i, 0, length - 1),
    "wrap": lambda i, length: i % length,
}
"""For each fill, the line of an image that shows in place of each line of a window."""


def cut(image: tf.Tensor, window: tf.Tensor, fill: Fill | None = None) -> tf.Tensor:
    """Copies a window, int32 `(4,)`, of one image `(height, width, channels)`. Without a fill for what is outside the image, the window
    must be inside."""
    top, left, height, width = tf.unstack(window)
    starts, counts = (top, left), (height, width)
    if fill is None:
        found = tf.slice(image, [*starts, 0], [*counts, -1])
    elif isinstance(fill, str):
        found = image
        for axis, (first, count) in enumerate(zip(starts, counts, strict=True)):
            found = tf.gather(found, _SHOWN[fill](tf.range(first, first + count), tf.shape(image)[axis]), axis=axis)
    else:
        part, margins = image, []
        for axis, (first, count) in enumerate(zip(starts, counts, strict=True)):
            side = tf.shape(image)[axis]
            begin, end = tf.clip_by_value(first, 0, side), tf.clip_by_value(first + count, 0, side)
            before = tf.clip_by_value(-first, 0, count)
            part = part[begin:end] if axis == 0 else part[:, begin:end]
            margins.append([before, count - before - (end - begin)])
        found = tf.pad(part, [*margins, [0, 0]], constant_values=tf.cast(fill.constant, image.dtype))
    found.set_shape([None, None, image.shape[-1]])
    return found


def inside(size: tuple[int, int], height: tf.Tensor, width: tf.Tensor, padding: tuple[int, int] = (0, 0)) -> None:
    """Fails if an image is smaller than the window, even with `padding` above and below it, and on its left and on its right."""
    padded = f" with a padding of {padding[0]}x{padding[1]}" if any(padding) else ""
    message = f"the crop of {size[0]}x{size[1]} exceeds the image{padded}, whose height and width are"
    _require(message, height, width, lambda: (height + 2 * padding[0] >= size[0], width + 2 * padding[1] >= size[1]))


def holds(size: tuple[int, int], height: tf.Tensor, width: tf.Tensor) -> None:
    """Fails if an image is larger than the canvas that it is padded to."""
    message = f"the canvas of {size[0]}x{size[1]} has no room for the image, whose height and width are"
    _require(message, height, width, lambda: (height <= size[0], width <= size[1]))


def _require(message: str, height: tf.Tensor, width: tf.Tensor, fits: Callable[[], tuple[tf.Tensor, tf.Tensor]]) -> None:
    if tf.get_static_value(height) is not None and tf.get_static_value(width) is not None and not tf.executing_eagerly():
        return  # `infer` has checked static sizes
    # The raw op: `tf.debugging.Assert` wraps it in a branch, which costs more than the crop.
    tf.raw_ops.Assert(condition=tf.reduce_all(tf.logical_and(*fits())), data=[message, height, width])


def onto(box: Box, size: Sides, like: tf.Tensor) -> tf.Tensor:
    """Returns the matrix from pixels of an output to those of the part of an image that it shows: float64 `(..., 3, 3)`, batched like
    `like`."""
    top, left, height, width = (tf.cast(side, tf.float64) for side in box)
    down, across = height / tf.cast(size[0], tf.float64), width / tf.cast(size[1], tf.float64)
    rows = [[across, 0.0, left + (across - 1.0) / 2.0], [0.0, down, top + (down - 1.0) / 2.0], [0.0, 0.0, 1.0]]
    return stack(rows, like)
