"""The family of time series: steps on windows of values along time."""

from __future__ import annotations

from typing import ClassVar

from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.step_bases import require_kind
from pipegen.types import FeatureType

WINDOW = FeatureType("series", "float32", (96, 2))  # a window of 96 values of two channels, for examples


def extent(windows: tf.Tensor) -> tuple[int | tf.Tensor, int]:
    """Returns the length of windows, a tensor if it is not static, and their channels."""
    length = windows.shape[1]
    return tf.shape(windows)[1] if length is None else length, int(windows.shape[2])


class SeriesTransform(NeighbourhoodTransform):
    """A function of a batch of windows, `(n, length, channels)`; `parameters` gets the length and the channels."""

    kinds: ClassVar[frozenset[str]] = frozenset({"series"})

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type, of unknown range."""
        require_kind(self, x)
        return x if self.idle() else x.with_(interval=None)


class TimeMap(SeriesTransform):
    """Reads a window at other times, linearly between its values; its first and its last value stay."""

    def times(self, u: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
        """Returns the time that each value is read at, from 0 to `length - 1`, which does not fall: float64 `(n, length)`."""
        raise NotImplementedError

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        times = tf.clip_by_value(self.times(u, height), tf.zeros([], tf.float64), tf.cast(height - 1, tf.float64))
        before = tf.minimum(tf.floor(times), tf.maximum(tf.cast(height - 2, tf.float64), 0.0))
        return tf.cast(before, tf.int32), tf.cast(times - before, tf.float32)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        before, weight = given
        after = tf.minimum(before + 1, tf.shape(images)[1] - 1)
        low, high = (tf.gather(images, at, batch_dims=1) for at in (before, after))
        weight = tf.cast(weight, images.dtype)[..., None]
        return low * (1 - weight) + high * weight


def along(places: tf.Tensor, values: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
    """Interpolates linearly at the times 0 to `length - 1` between points, whose places rise from 0 to `length - 1`: float64 `(n, length)`,
    from places and values, float64 `(n, points)` each."""
    time = tf.cast(tf.range(length), tf.float64)[None, :, None]
    start, end = places[:, None, :-1], places[:, None, 1:]
    share = tf.clip_by_value((time - start) / tf.maximum(end - start, 1e-9), 0.0, 1.0)
    return values[:, :1] + tf.reduce_sum(share * (values[:, None, 1:] - values[:, None, :-1]), -1)
