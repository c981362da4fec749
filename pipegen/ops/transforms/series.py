"""Steps on the values of time series: noise, scales, gaps, differences."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Factor, Magnitude, Number, amount_within
from pipegen.ops.families.series import WINDOW, SeriesTransform, TimeTransform, extent
from pipegen.ops.lowering.filters import Phase
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.random import BITS, half_words, key_of, normal_numbers
from pipegen.ops.step_bases import UniformTransform, UnsignedTransform
from pipegen.ops.traits import Example, same_type
from pipegen.types import FeatureType


class RandomJitter(UnsignedTransform, SeriesTransform):
    """Adds normal noise of mean 0, independent for each value (Um 2017).

    The standard deviation is drawn uniformly for each window. The noise of a value depends only on the window's draws and on its place.
    """

    op = "random_jitter"
    cost = 1.2
    draws = 3
    examples = same_type("random_jitter: {std: 0.03}", "random_jitter: {std: [0.01, 0.05], probability: 0.5}", given=WINDOW)

    std: Annotated[Magnitude, amount_within(0)]
    """The standard deviation, in the units of the incoming values: 0.03 means from 0 to 0.03, a pair is the range."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), tf.cast(self.drawn(u)["std"] * 2.0**-BITS, tf.float32)

    def phase(self, images: tf.Tensor, key: tf.Tensor, std: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Draws 16 random bits for each value: uint16 `(n, values)`."""
        length, channels = extent(images)
        return half_words(key, length * channels), std

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, std = given
        noise = tf.cast(normal_numbers(places), images.dtype) * tf.cast(std, images.dtype)[:, None]
        return images + tf.reshape(noise, tf.shape(images))


class RandomScale(UniformTransform, SeriesTransform):
    """Multiplies a window by a factor that is drawn uniformly, or each of its channels by one of its own (Um 2017)."""

    op = "random_scale"
    cost = 0.3
    draws = 3
    factors = frozenset({"factor"})
    examples = same_type("random_scale: {factor: 0.1}", "random_scale: {factor: [0.8, 1.2], each: channel}", given=WINDOW)

    factor: Factor
    """The factor: 0.1 means from 0.9 to 1.1, a pair is the range."""
    each: Literal["series", "channel"] = "series"
    """What gets a factor of its own: each `series`, or each `channel` of it."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.cast(self.drawn(u)["factor"][:, None] if self.each == "series" else self._of_channels(u, width), tf.float32),)

    def _of_channels(self, u: tf.Tensor, channels: int | tf.Tensor) -> tf.Tensor:
        """The factors of the channels: float64 `(n, channels)`."""
        places = (tf.cast(half_words(key_of(u[:, 1:3]), channels), tf.float64) + 0.5) / 65536.0
        return uniform(places, self.ranges()["factor"])

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        if self.each == "series":
            return super().drawn_on(u, shape)
        factors = self._of_channels(tf.reshape(u, [-1, u.shape[-1]]), shape[1])
        return {"factor": tf.reshape(factors, [*u.shape[:-1], -1])}

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        (factors,) = given
        return images * tf.cast(factors, images.dtype)[:, None, :]


class RandomMask(UnsignedTransform, SeriesTransform):
    """Replaces stretches of time by a value, in all channels: as if a sensor had failed.

    Each stretch has a length and a place of its own; stretches may overlap.
    """

    op = "random_mask"
    cost = 0.3
    examples = same_type("random_mask: {fraction: 0.1}", "random_mask: {fraction: [0.05, 0.2], spans: 3, value: -1}", given=WINDOW)

    fraction: Annotated[Magnitude, amount_within(0, 1)]
    """The length of a stretch as a fraction of the window, drawn uniformly: 0.1 means from 0 to 0.1, a pair is the range."""
    spans: Annotated[int, Field(ge=1, le=64)] = 1
    """The number of stretches."""
    value: Number = 0.0
    """The value that replaces others, such as the mean of standardized values, 0."""

    def num_draws(self) -> int:
        return 2 * self.spans

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        total = tf.cast(height, tf.float64)
        lengths = tf.round(tf.abs(uniform(u[:, : self.spans], self.ranges()["fraction"])) * total)
        starts = tf.floor(u[:, self.spans :] * (total - lengths + 1))
        return tf.cast(starts, tf.int32), tf.cast(starts + lengths, tf.int32)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        starts, ends = given
        time = tf.range(tf.shape(images)[1])[None, :, None]
        inside = tf.reduce_any((time >= starts[:, None, :]) & (time < ends[:, None, :]), -1)
        return tf.where(inside[..., None], tf.constant(self.value, images.dtype), images)


class Difference(TimeTransform):
    """Subtracts from each value the one `lag` before it: y[t] = x[t + lag] - x[t]. The window gets shorter by the lag.

    What lies on the same time steps follows: a difference counts as observed if both values were, and has the time and the class of the
    later one.
    """

    op = "difference"
    cost = 0.2
    examples = (
        Example("difference", WINDOW, "float32[95×2]"),
        Example("difference: {lag: 24}", WINDOW, "float32[72×2]"),
    )

    lag: Annotated[int, Field(ge=1)] = 1
    """The distance of the two values in time, such as 24 for the same hour of the day before."""

    def infer(self, x: FeatureType) -> FeatureType:
        x = super().infer(x)
        length = x.shape[0]
        if length is not None and length <= self.lag:
            message = f"`{self.op}` with `lag: {self.lag}` leaves nothing of a window of {length}"
            raise OpError("PG206", message, field="lag", help="use a longer window, or a smaller lag")
        return x.with_(shape=(None if length is None else length - self.lag, *x.shape[1:]))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return ()

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        later, earlier = images[:, self.lag :], images[:, : -self.lag]
        if self._holds in ("times", "classes"):
            return later
        return tf.minimum(later, earlier) if self._holds == "observed" else later - earlier


class FillMissing(SeriesTransform):
    """Replaces missing values, NaN, by others of their channel in the window.

    Nothing outside of the window is read, so that no later value is known early. A channel without any value gets `value`.
    """

    op = "fill_missing"
    starts_kernel = True
    cost = 0.6
    examples = same_type("fill_missing", "fill_missing: {method: linear}", "fill_missing: {method: value, value: -1}", given=WINDOW)

    method: Literal["forward", "linear", "value"] = "forward"
    """The new value: `forward`, the last one before, or the first one of the window where there is none; `linear`, between the values
    before and after, or the nearest at an end; or `value`."""
    value: Number = 0.0
    """The value where there is no other."""

    def infer(self, x: FeatureType) -> FeatureType:
        super().infer(x)
        return x if self.idle() or self.probability != 1 else x.with_(missing=())

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return ()

    def phases(self) -> tuple[Phase, ...]:
        return () if self.method == "value" else (_neighbours,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        missing = tf.math.is_nan(images)
        constant = tf.constant(self.value, images.dtype)
        if self.method == "value":
            return tf.where(missing, constant, images)
        before, after = given
        length = tf.shape(images)[1]
        nearest_before, nearest_after = tf.where(before >= 0, before, after), tf.where(after < length, after, before)
        low, high = (_at(images, places) for places in (nearest_before, nearest_after))
        found = low
        if self.method == "linear":
            time = tf.range(length)[None, :, None]
            room = tf.cast(tf.maximum(nearest_after - nearest_before, 1), images.dtype)
            weight = tf.clip_by_value(tf.cast(time - nearest_before, images.dtype) / room, 0, 1)
            found = low * (1 - weight) + high * weight
        empty = (before < 0) & (after >= length)
        return tf.where(missing, tf.where(empty, constant, found), images)


def _neighbours(images: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Finds the last time up to each one at which a channel has a value, -1 for none, and the first from it on, the length for none: int32
    `(n, length, channels)` each."""
    length, channels = extent(images)
    known = ~tf.math.is_nan(images)
    time = tf.range(length)[None, :, None] + tf.zeros([1, 1, channels], tf.int32)
    before, after = tf.where(known, time, -1), tf.where(known, time, length)
    step = 1
    while step < (length if isinstance(length, int) else 1 << 24):  # each turn looks twice as far
        pad = min(step, length) if isinstance(length, int) else step
        before = tf.maximum(before, tf.pad(before[:, :-pad], [[0, 0], [pad, 0], [0, 0]], constant_values=-1))
        after = tf.minimum(after, tf.pad(after[:, pad:], [[0, 0], [0, pad], [0, 0]], constant_values=length))
        step *= 2
    return before, after


def _at(images: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Reads each channel at times of its own, clipped to the window: `(n, length, channels)`."""
    places = tf.clip_by_value(places, 0, tf.shape(images)[1] - 1)
    turned = tf.gather(tf.transpose(images, [0, 2, 1]), tf.transpose(places, [0, 2, 1]), batch_dims=2)
    return tf.transpose(turned, [0, 2, 1])
