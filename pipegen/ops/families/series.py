"""The family of time series: steps on windows of values along time."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import PrivateAttr

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.kinds.series import OnSteps
from pipegen.ops.step_bases import UnconditionalTransform, require_kind
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType

Holds = Literal["values", "observed", "times", "classes"]

WINDOW = FeatureType("series", "float32", (96, 2))  # a window of 96 values of two channels, for examples


def length_of(windows: tf.Tensor) -> int | tf.Tensor:
    """Returns the length of windows; a tensor if it is not static."""
    return tf.shape(windows)[1] if windows.shape[1] is None else int(windows.shape[1])


def extent(windows: tf.Tensor) -> tuple[int | tf.Tensor, int]:
    """Returns the length of windows, a tensor if it is not static, and their channels."""
    return length_of(windows), int(windows.shape[2])


class SeriesTransform(NeighbourhoodTransform):
    """A function of a batch of windows, `(n, length, channels)`; `parameters` gets the length and the channels."""

    kinds: ClassVar[frozenset[str]] = frozenset({"series"})

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type, of unknown range."""
        require_kind(self, x)
        return x if self.idle() else x.with_(interval=None)


class TimeTransform(SeriesTransform):
    """A step that moves values in time, or computes them of those at several times. All series of a window move alike, and what lies on the
    same time steps follows: which values were observed, the calendar, and classes."""

    kinds: ClassVar[frozenset[str]] = frozenset({"series", "timestep_label"})

    _holds: Holds = PrivateAttr(default="values")

    def reaches(self, x: FeatureType) -> bool:
        return lies_on_steps(x)

    def shares_draws(self, kind: str) -> bool:
        return kind == "series"

    def on(self, x: FeatureType) -> Transform:
        step = self.model_copy()
        step._holds = holds(x)
        return step


def lies_on_steps(x: FeatureType) -> bool:
    """Checks for a feature that lies on the time steps of a series, and follows when they move."""
    return isinstance(x.details, OnSteps) and x.details.follows


def holds(x: FeatureType) -> Holds:
    """Returns what a series or labels of time steps hold: `values`, or what they tell of time steps."""
    return x.details.tells if isinstance(x.details, OnSteps) else "values"


class TimeMap(TimeTransform):
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
        return between(low, high, weight, self._holds)


def between(low: tf.Tensor, high: tf.Tensor, weight: tf.Tensor, what: Holds) -> tf.Tensor:
    """Interpolates between two values each, `(n, length)` or `(n, length, channels)`, by the weight of the second one, float32 `(1 or n,
    length)`. Times and classes are those of the nearer one, the first of two equally near; a value counts as observed if each that it
    is made of was, as it would else be NaN."""
    weight = weight[..., None] if low.shape.rank == 3 else weight
    if what in ("times", "classes"):
        return tf.where(weight <= 0.5, low, high)
    if what == "observed":
        both = tf.minimum(low, high)
    else:
        share = tf.cast(weight, low.dtype)
        both = low * (1 - share) + high * share
    return tf.where(weight == 0, low, both)


class SeriesResample(UnconditionalTransform, TimeTransform):
    """A `resample` of series, which `owner` is.

    New value j of n in a window of m is made at the time j · (m - 1) / (n - 1) of it; or as the mean of the time steps i with
    ⌊i · n / m⌋ = j, or ⌊i / every⌋ = j, without missing values.
    """

    op = "resample"
    cost = 0.4

    owner: Transform
    length: int | None
    every: int | None
    method: Literal["linear", "mean"]

    def written(self) -> Transform:
        return self.owner

    def meaning(self) -> dict[str, Any]:
        return self.owner.meaning()

    def infer(self, x: FeatureType) -> FeatureType:
        x = super().infer(x)
        before = x.shape[0]
        if self.method == "mean" and self.length is not None and before is not None and before < self.length:
            help_ = write("method: linear", "arguments", "use {}")
            raise OpError("PG206", f"`resample` cannot make {self.length} means of {before} time steps", field="length", help=help_)
        after = self.length if self.every is None else None if before is None else -(-before // self.every)
        return x.with_(shape=(after, *x.shape[1:]))

    def is_identity(self, x: FeatureType) -> bool:
        return x.shape[0] is not None and self.infer(x).shape == x.shape

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return ()

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        before = length_of(images)
        after: int | tf.Tensor = -(-before // self.every) if self.every is not None else self.length or 1
        new = tf.range(after)
        if self.method == "mean":
            whole = before if self.every is None else after * self.every  # the last of `every` may be cut off by the end
            starts = -(-new * whole // after)
            sizes = tf.minimum(-(-(new + 1) * whole // after), before) - starts
            return _mean(images, starts, sizes, -(-whole // after), self._holds)
        number, parts = new * (before - 1), tf.maximum(after - 1, 1)
        low = number // parts
        weight = tf.cast(tf.cast(number % parts, tf.float64) / tf.cast(parts, tf.float64), tf.float32)
        high = tf.minimum(low + 1, before - 1)
        return between(tf.gather(images, low, axis=1), tf.gather(images, high, axis=1), weight[None], self._holds)


def _mean(images: tf.Tensor, starts: tf.Tensor, sizes: tf.Tensor, most: int | tf.Tensor, what: Holds) -> tf.Tensor:
    """Takes the means of stretches of time, without missing values, NaN of none. Times are the first of a stretch; classes its most
    frequent one, the first of several; a mean counts as observed if any of its values was."""
    if what == "times":
        return tf.gather(images, starts, axis=1)
    number = tf.range(most)
    there = number[None] < sizes[:, None]
    places = tf.minimum(starts[:, None] + number[None], length_of(images) - 1)
    each = tf.gather(images, places, axis=1)  # (n, after, most, ...)
    if what == "classes":
        alike = (each[..., :, None] == each[..., None, :]) & there[:, None, :]
        votes = tf.where(there, tf.reduce_sum(tf.cast(alike, tf.int32), -1), 0)
        return tf.gather(each, tf.argmax(votes, -1), batch_dims=2)
    there = there[None, ..., None]
    if what == "observed":
        return tf.reduce_max(tf.where(there, each, tf.zeros([], each.dtype)), 2)
    known = there & ~tf.math.is_nan(each)
    total = tf.reduce_sum(tf.where(known, each, tf.zeros([], each.dtype)), 2)
    return total / tf.reduce_sum(tf.cast(known, each.dtype), 2)


def along(places: tf.Tensor, values: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
    """Interpolates linearly at the times 0 to `length - 1` between points, whose places rise from 0 to `length - 1`: float64 `(n, length)`,
    from places and values, float64 `(n, points)` each."""
    time = tf.cast(tf.range(length), tf.float64)[None, :, None]
    start, end = places[:, None, :-1], places[:, None, 1:]
    share = tf.clip_by_value((time - start) / tf.maximum(end - start, 1e-9), 0.0, 1.0)
    return values[:, :1] + tf.reduce_sum(share * (values[:, None, 1:] - values[:, None, :-1]), -1)
