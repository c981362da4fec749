"""Look-up tables of 256 values.

Every function returns int32 `(n, 1, 256)`, or `(n, channels, 256)` if it depends on the histogram, from 0 to 255. Arithmetic is in
integers, or in float64 rounded once.
"""

from __future__ import annotations

from pipegen.lazy import np, tf


def as_bytes(image: tf.Tensor) -> tf.Tensor:
    """Converts to uint8: floats are rounded half to even and clipped."""
    if image.dtype == tf.uint8:
        return image
    return tf.cast(tf.clip_by_value(tf.round(image), 0.0, 255.0), tf.uint8)


def repeated(values: list[int], u: tf.Tensor) -> tf.Tensor:
    """Repeats a table for every example; `u` is `(n, num_draws)`."""
    return tf.tile(tf.constant([[values]], tf.int32), [tf.shape(u)[0], 1, 1])


def solarized(threshold: tf.Tensor) -> tf.Tensor:
    """Maps x to 255 - x if it is at or above the threshold, float64 `(n,)`; Pillow's `solarize`."""
    values = tf.range(256)
    return tf.where(tf.cast(values, tf.float64) < threshold[:, None, None], values, 255 - values)


def posterized(bits: tf.Tensor) -> tf.Tensor:
    """Keeps only the highest bits of x, their number being int32 `(n,)`; Pillow's `posterize`."""
    dropped = tf.bitwise.left_shift(tf.ones_like(bits), 8 - bits)[:, None, None]
    return tf.range(256) // dropped * dropped


def gamma_corrected(gamma: tf.Tensor) -> tf.Tensor:
    """Maps x to 255 · (x / 255) ^ gamma, for exponents float64 `(n,)`, rounded half to even."""
    shares = tf.range(256, dtype=tf.float64) / 255.0
    return tf.cast(tf.round(255.0 * shares ** gamma[:, None, None]), tf.int32)


def auto_contrasted(histogram: tf.Tensor) -> tf.Tensor:
    """Stretches the range of each channel linearly to 0 to 255, rounded down; Pillow's `autocontrast` to the bit. `histogram` is int32
    `(n, channels, 256)`.

    Pillow computes int(x * (255.0 / width) - least * (255.0 / width)) in float64, which is sometimes 1 below the exact quotient. The
    products come from a table, since a compiler may fuse a product and a difference, which rounds differently.
    """
    values = tf.range(256)
    least = tf.reduce_min(tf.where(histogram > 0, values, 255), -1)
    most = tf.reduce_max(tf.where(histogram > 0, values, 0), -1)
    width = most - least
    scales = 255.0 / np.maximum(np.arange(256), 1)
    products = tf.gather(tf.constant(np.arange(256) * scales[:, None], tf.float64), tf.maximum(width, 0))
    line = products - tf.gather(products, least[..., None], batch_dims=2)
    stretched = tf.clip_by_value(tf.cast(line, tf.int32), 0, 255)  # the cast drops the fraction
    return tf.where(width[..., None] > 0, stretched, values)


def equalized(histogram: tf.Tensor) -> tf.Tensor:
    """Equalises the histogram of each channel; Pillow's `equalize` to the bit.

    With s = (pixels - pixels of the largest value) // 255, x becomes (s // 2 + pixels below x) // s, at most 255; a channel with s = 0
    stays. `histogram` is int32 `(n, channels, 256)`.
    """
    values = tf.range(256)
    most = tf.reduce_max(tf.where(histogram > 0, values, 0), -1)
    last = tf.gather(histogram, most[..., None], batch_dims=2)
    step = (tf.reduce_sum(histogram, -1, keepdims=True) - last) // 255
    below = tf.cumsum(histogram, -1, exclusive=True)
    spread = tf.minimum((step // 2 + below) // tf.maximum(step, 1), 255)
    return tf.where(step > 0, spread, values)
