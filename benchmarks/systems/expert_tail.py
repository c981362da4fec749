"""The expert's work on a batch: one resampling, then one XLA kernel for all that is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks import steps as s

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf

    from benchmarks.recipes import Recipe

    Augment = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

LUMA = (0.299, 0.587, 0.114)


def augment(recipe: Recipe, classes: int) -> Augment:
    """From a batch of uint8 images and class indices to what the model takes."""
    import tensorflow as tf

    affine = recipe.find(s.Affine)
    shape = recipe.shape

    @tf.function(jit_compile=True, autograph=False)
    def tail(x: tf.Tensor, y: tf.Tensor, u: tf.Tensor, shares: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x = tf.cast(tf.reshape(x, shape), tf.float32)
        y = tf.one_hot(y, classes) if recipe.combines else y
        for step in recipe.steps:
            if isinstance(step, s.Flip) and affine is None:
                x = tf.where(u[:, 0, None, None, None] < 0.5, x[:, :, ::-1], x)
            elif isinstance(step, s.Brightness):
                x = tf.minimum(x * _around(u[:, 1], step.amount), 255.0)
            elif isinstance(step, s.ColorJitter):
                x = _jitter(x, u, step)
            elif isinstance(step, s.Blur):
                x = _blur(x, u, step)
            elif isinstance(step, s.MixUp):
                share = shares[:, 0]
                x = _blend(x, share[:, None, None, None])
                y = _blend(y, share[:, None])
            elif isinstance(step, s.CutMix):
                inside = _rectangle(shares[:, 1], u, recipe.size)
                x = tf.where(inside[..., None], tf.roll(x, 1, 0), x)
                y = _blend(y, 1.0 - tf.reduce_mean(tf.cast(inside, tf.float32), [1, 2])[:, None])
            elif isinstance(step, s.Normalise):
                x = (x - [255 * m for m in step.mean]) * [1 / (255 * d) for d in step.std]
        return x, y

    def run(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        u = tf.random.uniform([recipe.batch, 8])
        if affine is not None:
            x = _warp(x, affine, recipe)
        return tail(x, y, u, _shares(recipe))

    return run


def _around(u: tf.Tensor, amount: float) -> tf.Tensor:
    """Factors around 1, for images."""
    return (1 + amount * (2 * u - 1))[:, None, None, None]


def _warp(x: tf.Tensor, step: s.Affine, recipe: Recipe) -> tf.Tensor:
    """The affine map and, where the recipe has it, the flip: one product of matrices, read once."""
    import tensorflow as tf

    n, side = recipe.batch, recipe.size
    u = tf.random.uniform([7, n], -1.0, 1.0)
    angle, shear = u[0] * math.radians(step.rotation), u[1] * math.radians(step.shear)
    zx, zy = 1 + step.zoom * u[2], 1 + step.zoom * u[3]
    flip = tf.where((u[6] < 0) & (recipe.find(s.Flip) is not None), -1.0, 1.0)
    c, sn = tf.cos(angle), tf.sin(angle)
    a0, a1 = flip * c * zx, (c * tf.tan(shear) - sn) * zy
    b0, b1 = flip * sn * zx, (sn * tf.tan(shear) + c) * zy
    centre, zero = (side - 1) / 2, tf.zeros([n])
    tx, ty = (step.translation * side * u[i] for i in (4, 5))
    matrix = [a0, a1, centre - (a0 + a1) * centre + tx, b0, b1, centre - (b0 + b1) * centre + ty, zero, zero]
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=x,
        transforms=tf.stack(matrix, -1),
        output_shape=[side, side],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )


def _jitter(x: tf.Tensor, u: tf.Tensor, step: s.ColorJitter) -> tf.Tensor:
    """Brightness, contrast and saturation as blends, hue as a turn of the chroma in YIQ."""
    import tensorflow as tf

    x = tf.clip_by_value(x * _around(u[:, 1], step.brightness), 0.0, 255.0)
    contrast = _around(u[:, 2], step.contrast)
    mean = tf.reduce_mean(tf.reduce_sum(x * LUMA, -1, keepdims=True), [1, 2], keepdims=True)
    x = tf.clip_by_value(mean + (x - mean) * contrast, 0.0, 255.0)
    grey = tf.reduce_sum(x * LUMA, -1, keepdims=True)
    x = grey + (x - grey) * _around(u[:, 3], step.saturation)
    to_yiq = tf.constant([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    angle = (2 * u[:, 4] - 1) * math.radians(step.hue)
    c, sn, one, zero = tf.cos(angle), tf.sin(angle), tf.ones_like(angle), tf.zeros_like(angle)
    turn = tf.reshape(tf.stack([one, zero, zero, zero, c, -sn, zero, sn, c], -1), [-1, 3, 3])
    matrix = tf.linalg.inv(to_yiq) @ turn @ to_yiq
    return tf.clip_by_value(tf.einsum("bhwc,boc->bhwo", x, matrix), 0.0, 255.0)


def _blur(x: tf.Tensor, u: tf.Tensor, step: s.Blur) -> tf.Tensor:
    """Two passes of shifted sums, with each image's own weights."""
    import tensorflow as tf

    radius, side = step.kernel // 2, int(x.shape[1])
    sigma = step.sigma[0] + (step.sigma[1] - step.sigma[0]) * u[:, 5]
    weights = tf.exp(-0.5 * (tf.range(-radius, radius + 1, dtype=tf.float32) / sigma[:, None]) ** 2)
    weights /= tf.reduce_sum(weights, -1, keepdims=True)
    padded = tf.pad(x, [[0, 0], [radius, radius], [radius, radius], [0, 0]], "REFLECT")
    rows = sum(weights[:, i, None, None, None] * padded[:, i : i + side] for i in range(step.kernel))
    done = sum(weights[:, i, None, None, None] * rows[:, :, i : i + side] for i in range(step.kernel))
    return tf.where(u[:, 6, None, None, None] < step.probability, done, x)


def _shares(recipe: Recipe) -> tf.Tensor:
    """What each example keeps of itself in MixUp and in CutMix: beta variates, which XLA has no op for."""
    import tensorflow as tf

    columns = []
    for kind in s.COMBINING:
        step = recipe.find(kind)
        if step is None:
            columns.append(tf.ones([recipe.batch]))
            continue
        a, b = tf.unstack(tf.random.gamma([2, recipe.batch], step.alpha))
        columns.append(a / tf.maximum(a + b, 1e-12))
    return tf.stack(columns, -1)


def _blend(x: tf.Tensor, share: tf.Tensor) -> tf.Tensor:
    """With the next example of the batch."""
    import tensorflow as tf

    return share * x + (1 - share) * tf.roll(x, 1, 0)


def _rectangle(share: tf.Tensor, u: tf.Tensor, side: int) -> tf.Tensor:
    """Where the other image shows: bool `(n, side, side)`."""
    import tensorflow as tf

    half = tf.sqrt(1 - share)[:, None, None] * side / 2
    rows, columns = tf.range(side, dtype=tf.float32)[None, :, None], tf.range(side, dtype=tf.float32)[None, None, :]
    top, left = u[:, 6, None, None] * side, u[:, 7, None, None] * side
    return (tf.abs(rows - top) < half) & (tf.abs(columns - left) < half)
