"""Steps that warp the time of a series."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Factor, Fraction, Span
from pipegen.ops.families.series import WINDOW, TimeMap, along
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.step_bases import UniformTransform
from pipegen.ops.traits import same_type


class RandomTimeWarp(UniformTransform, TimeMap):
    """Speeds time up and slows it down within a window (Um 2017): between `knots` at equal distances, time runs at speeds that are drawn
    uniformly; then all is stretched to the window's length."""

    op = "random_time_warp"
    cost = 0.8
    factors = frozenset({"factor"})
    examples = same_type("random_time_warp: {factor: 0.3}", "random_time_warp: {factor: [0.5, 2], knots: 3}", given=WINDOW)

    factor: Factor
    """The speed between two knots: 0.3 means from 0.7 to 1.3, a pair is the range."""
    knots: Annotated[int, Field(ge=2, le=64)] = 4
    """The number of stretches of one speed."""

    def num_draws(self) -> int:
        return self.knots

    def times(self, u: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
        last = tf.cast(length - 1, tf.float64)
        speeds = tf.maximum(uniform(u, self.ranges()["factor"]), 1e-3)
        passed = tf.cumsum(speeds, axis=1)
        zero = tf.zeros_like(passed[:, :1])
        values = tf.concat([zero, passed / passed[:, -1:] * last], 1)
        places = tf.linspace(tf.zeros([], tf.float64), last, self.knots + 1)[None] + zero
        return along(places, values, length)


class RandomWindowWarp(UniformTransform, TimeMap):
    """Stretches or shortens one part of a window in time (Le Guennec 2016); the rest makes up for it, so that the length stays."""

    op = "random_window_warp"
    cost = 0.8
    draws = 2
    examples = same_type("random_window_warp", "random_window_warp: {fraction: 0.2, factor: [0.25, 4]}", given=WINDOW)

    fraction: Fraction = 0.1
    """The length of the part, as a fraction of the window."""
    factor: Span = (0.5, 2.0)
    """The range of its new length in multiples of its own, drawn uniformly."""

    def times(self, u: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
        last = tf.cast(length - 1, tf.float64)
        factor = tf.maximum(self.drawn(u)["factor"], 1e-3)
        width = tf.cast(self.fraction, tf.float64) * last
        begin = u[:, 1] * (last - width)
        zero = tf.zeros_like(begin)
        stored = tf.stack([zero, begin, begin + width, zero + last], 1)
        total = last - width + width * factor
        shown = tf.stack([zero, begin, begin + width * factor, total], 1) * (last / total)[:, None]
        return along(shown, stored, length)
