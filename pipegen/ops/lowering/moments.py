"""Mean and spread of single images, in TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipegen.lazy import np, tf
from pipegen.ops.arguments.moments import Moments


def sample_moments(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean and the standard deviation of each image over all its pixels and channels, float64 `(n,)`.

    Sums of whole numbers and of their squares are exact in whatever order; floats are summed in float64, the distances from
    the mean in a second pass. Line is added to line first, which costs XLA a fraction of adding one value to the next.

    Args:
        images: `(n, height, width, channels)`; a side is below 2^15, so that the squares of a column of bytes fit 32 bits.
    """
    height, width, channels = (tf.shape(images)[a] if images.shape[a] is None else images.shape[a] for a in (1, 2, 3))
    lines = tf.reshape(images, [-1, height, width * channels])
    exact = tf.int32 if images.dtype == tf.uint8 else tf.float64
    count = tf.cast(height * width * channels, tf.float64)

    def mean_of(values: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(tf.reduce_sum(values, 1), tf.float64), 1) / count

    x = tf.cast(lines, exact)
    mean = mean_of(x)
    if images.dtype.is_integer:
        return mean, tf.sqrt(tf.maximum(mean_of(x * x) - mean * mean, 0.0))
    return mean, tf.sqrt(mean_of(tf.square(x - mean[:, None, None])))


def channel_moments(image: tf.Tensor) -> tf.Tensor:
    """Count, mean and sum of squared distances from it of each channel of one image, float64 `(3, 1, channels)`.

    Args:
        image: `(height, width, channels)`.
    """
    x = tf.cast(image, tf.float64)
    count = tf.cast(tf.shape(image)[0] * tf.shape(image)[1], tf.float64)
    mean = tf.reduce_sum(x, [0, 1]) / count
    squares = tf.reduce_sum(tf.square(x - mean), [0, 1])
    return tf.stack([tf.fill(tf.shape(mean), count), mean, squares])[:, None, :]


def gathered(batches: Iterable[np.ndarray[Any, Any]]) -> Moments:
    """All moments together.

    Args:
        batches: What `channel_moments` gives of images, stacked: float64 `(n, 3, 1, channels)` each.

    Raises:
        ValueError: When there is no image.
    """
    from pipegen.ops.arguments.moments import Moments

    total: Moments | None = None
    for batch in batches:
        parts = [Moments(round(count[0]), tuple(mean), tuple(squares)) for count, mean, squares in batch[:, :, 0, :].tolist()]
        total = Moments.of(parts if total is None else [total, *parts])
    return total if total is not None else Moments.of(())
