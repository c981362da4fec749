"""Strengths that change over the epochs: a schedule stands wherever a magnitude does, and changes numbers, never shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, create_model, field_validator, model_validator

from pipegen.lazy import tf
from pipegen.ops.model import Model

Number = Annotated[float, Field(allow_inf_nan=False)]
Range = tuple[Number, Number]
Strength = Number | Range
"""A number, or a pair, which is a range of draws."""

Epoch = Annotated[int, Field(ge=0, le=9999)]
"""The number of an epoch, from 0."""

Pair = tuple[float, float]
Meant = Callable[[Any], Pair]
"""The range that a strength means: `symmetric_range` or `factor_range`."""


class Schedule(Model):
    """A strength as a function of the epoch. The first epoch is 0; before the first and after the last change it stays."""

    def given(self) -> tuple[float | Pair, ...]:
        """The strengths that the spec names; those in between lie between them."""
        raise NotImplementedError

    def ranges(self, meant: Meant) -> tuple[Pair, ...]:
        """The range of draws in each epoch, from 0 up to the one from which on nothing changes."""
        raise NotImplementedError

    def envelope(self, meant: Meant) -> Pair:
        """The least and the greatest that is drawn in any epoch."""
        ranges = [meant(v) for v in self.given()]
        return min(r[0] for r in ranges), max(r[1] for r in ranges)

    def meaning(self, canonical: Callable[[Pair], Any], meant: Meant) -> Any:
        """One form for each meaning: the strength where it never changes, else every epoch at which it does."""
        values = list(map(canonical, self.ranges(meant)))
        changes = [[epoch, value] for epoch, value in enumerate(values) if not epoch or value != values[epoch - 1]]
        return changes[0][1] if len(changes) == 1 else {"epochs": changes}

    def at(self, epoch: tf.Tensor, meant: Meant) -> tuple[tf.Tensor, tf.Tensor]:
        """The range of draws in an epoch, an integer scalar: float64 scalars, looked up and never computed in TensorFlow."""
        ranges = self.ranges(meant)
        pair = tf.gather(tf.constant(ranges, tf.float64), tf.minimum(tf.cast(epoch, tf.int32), len(ranges) - 1))
        return pair[0], pair[1]


class _Ramp(Model):
    """A way from one strength to another."""

    def way(self, meant: Meant, progress: Callable[[float], float]) -> tuple[Pair, ...]:
        """The ranges up to the last epoch of the ramp, where `progress` goes from 0 to 1 as the epochs do."""
        (first, last), start, end = getattr(self, "epochs"), meant(getattr(self, "from")), meant(getattr(self, "to"))  # noqa: B009
        found = []
        for epoch in range(last + 1):
            t = progress(min(max((epoch - first) / (last - first), 0.0), 1.0))
            found.append((start[0] * (1 - t) + end[0] * t, start[1] * (1 - t) + end[1] * t))
        return tuple(found)

    def ends(self) -> tuple[float | Pair, ...]:
        """Both strengths."""
        return getattr(self, "from"), getattr(self, "to")  # noqa: B009

    @model_validator(mode="after")
    def _forward(self) -> _Ramp:
        first, last = getattr(self, "epochs")  # noqa: B009
        if first >= last:
            raise ValueError(f"`epochs` is [first, last] with the first before the last, got [{first}, {last}]")
        return self


# `from` is a word of Python, so the class that has a field of this name is made by a call.
Ramp: Any = create_model(
    "Ramp",
    __base__=_Ramp,
    __module__=__name__,
    **{
        "from": (Strength, Field(description="The strength up to the first of the epochs.")),
        "to": (Strength, Field(description="The strength from the last of the epochs on.")),
        "epochs": (tuple[Epoch, Epoch], Field(description="The first and the last epoch of the change; an epoch is counted from 0.")),
    },
)  # type: ignore[call-overload]
Ramp.__doc__ = "A change over a range of epochs."


class LinearSchedule(Schedule):
    """A straight line from one strength to another."""

    linear: Ramp
    """`from` one strength `to` another, evenly over `epochs: [first, last]`."""

    def given(self) -> tuple[float | Pair, ...]:
        return self.linear.ends()

    def ranges(self, meant: Meant) -> tuple[Pair, ...]:
        return self.linear.way(meant, lambda t: t)


class CosineSchedule(Schedule):
    """Half a period of a cosine from one strength to another: it starts and ends gently."""

    cosine: Ramp
    """`from` one strength `to` another, along half a period of a cosine over `epochs: [first, last]`."""

    def given(self) -> tuple[float | Pair, ...]:
        return self.cosine.ends()

    def ranges(self, meant: Meant) -> tuple[Pair, ...]:
        return self.cosine.way(meant, lambda t: (1 - math.cos(math.pi * t)) / 2)


class StepSchedule(Schedule):
    """A strength that jumps at given epochs."""

    step: Annotated[dict[Epoch, Strength], Field(min_length=1)]
    """The strength from each of these epochs on, such as `{0: 5, 30: 9}`; the first of them is 0."""

    def __hash__(self) -> int:
        return hash(tuple(self.step.items()))

    @field_validator("step")
    @classmethod
    def _from_the_start(cls, value: dict[int, float | Pair]) -> dict[int, float | Pair]:
        if 0 not in value:
            raise ValueError(f"`step` says what holds from epoch {min(value)} on, and not what holds before: add epoch 0")
        return dict(sorted(value.items()))

    def given(self) -> tuple[float | Pair, ...]:
        return tuple(self.step.values())

    def ranges(self, meant: Meant) -> tuple[Pair, ...]:
        found: list[Pair] = []
        for epoch in range(max(self.step) + 1):
            found.append(meant(self.step[epoch]) if epoch in self.step else found[-1])
        return tuple(found)


class TableSchedule(Schedule):
    """A strength for each epoch."""

    table: Annotated[tuple[Strength, ...], Field(min_length=1, max_length=10_000)]
    """The strength of each epoch from 0 on; the last one stays."""

    def given(self) -> tuple[float | Pair, ...]:
        return self.table

    def ranges(self, meant: Meant) -> tuple[Pair, ...]:
        return tuple(meant(v) for v in self.table)


AnySchedule = LinearSchedule | CosineSchedule | StepSchedule | TableSchedule
