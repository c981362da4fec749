"""Mean and spread of single images, in TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def sample_moments(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean and the standard deviation of each image over all its pixels and channels, float64 `(n,)`.

    Sums of bytes and of their squares are whole numbers, and exact in whatever order; floats are summed in float64, the
    distances from the mean in a second pass.

    Args:
        images: `(n, height, width, channels)`.
    """
    import tensorflow as tf

    x = tf.cast(images, tf.float64)
    count = tf.cast(tf.reduce_prod(tf.shape(images)[1:]), tf.float64)
    mean = tf.reduce_sum(x, [1, 2, 3]) / count
    if images.dtype.is_integer:
        variance = tf.maximum(tf.reduce_sum(x * x, [1, 2, 3]) / count - mean * mean, 0.0)
    else:
        variance = tf.reduce_sum(tf.square(x - mean[:, None, None, None]), [1, 2, 3]) / count
    return mean, tf.sqrt(variance)


def channel_moments(image: tf.Tensor) -> tf.Tensor:
    """Count, mean and sum of squared distances from it of each channel of one image, float64 `(3, 1, channels)`.

    Args:
        image: `(height, width, channels)`.
    """
    import tensorflow as tf

    x = tf.cast(image, tf.float64)
    count = tf.cast(tf.shape(image)[0] * tf.shape(image)[1], tf.float64)
    mean = tf.reduce_sum(x, [0, 1]) / count
    squares = tf.reduce_sum(tf.square(x - mean), [0, 1])
    return tf.stack([tf.fill(tf.shape(mean), count), mean, squares])[:, None, :]
