"""The strength of a step: numbers, ranges and schedules, their meaning and their checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, Field, ValidationInfo, create_model, field_validator, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError, PartError
from pipegen.lazy import tf
from pipegen.ops.model import Model
from pipegen.types import BYTE_RANGE, FeatureType, Interval

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


Number = Annotated[float, Field(allow_inf_nan=False)]
Range = tuple[Number, Number]
Strength = Number | Range  # a number, or a pair, which is a range of draws

Epoch = Annotated[int, Field(ge=0, le=9999)]  # the number of an epoch, from 0

Pair = tuple[float, float]
Meant = Callable[[Any], Pair]  # the range that a strength means: `symmetric_range` or `factor_range`


class Schedule(Model):
    """A strength as a function of the epoch. The first epoch is 0; before the first and after the last change it stays."""

    def given(self) -> tuple[float | Pair, ...]:
        """The strengths in the spec; all others lie between them."""
        raise NotImplementedError

    def ranges(self, meant: Meant) -> tuple[Pair, ...]:
        """The range of draws in each epoch, up to the one after which it does not change."""
        raise NotImplementedError

    def envelope(self, meant: Meant) -> Pair:
        """The least and the greatest value that can be drawn in any epoch."""
        ranges = [meant(v) for v in self.given()]
        return min(r[0] for r in ranges), max(r[1] for r in ranges)

    def meaning(self, canonical: Callable[[Pair], Any], meant: Meant) -> Any:
        """A canonical form: the strength if it never changes, else every epoch at which it changes."""
        values = list(map(canonical, self.ranges(meant)))
        changes = [[epoch, value] for epoch, value in enumerate(values) if not epoch or value != values[epoch - 1]]
        return changes[0][1] if len(changes) == 1 else {"epochs": changes}

    def at(self, epoch: tf.Tensor, meant: Meant) -> tuple[tf.Tensor, tf.Tensor]:
        """The range of draws in an epoch, an integer scalar, as float64 scalars: TensorFlow looks it up and computes nothing."""
        ranges = self.ranges(meant)
        pair = tf.gather(tf.constant(ranges, tf.float64), tf.minimum(tf.cast(epoch, tf.int32), len(ranges) - 1))
        return pair[0], pair[1]

    def level(self, epoch: tf.Tensor) -> tf.Tensor:
        """The plain number of an epoch."""
        return self.at(epoch, level_range)[0]


class _Ramp(Model):
    """A change from one strength to another."""

    def way(self, meant: Meant, progress: Callable[[float], float]) -> tuple[Pair, ...]:
        """The range of each epoch up to the last one; `progress` maps the share of the epochs to that of the change."""
        (first, last), start, end = getattr(self, "epochs"), meant(getattr(self, "from")), meant(getattr(self, "to"))  # noqa: B009
        shares = (progress(min(max((epoch - first) / (last - first), 0.0), 1.0)) for epoch in range(last + 1))
        return tuple((start[0] * (1 - t) + end[0] * t, start[1] * (1 - t) + end[1] * t) for t in shares)

    def ends(self) -> tuple[float | Pair, ...]:
        """The first and the last strength."""
        return getattr(self, "from"), getattr(self, "to")  # noqa: B009

    @model_validator(mode="after")
    def _forward(self) -> _Ramp:
        first, last = getattr(self, "epochs")  # noqa: B009
        if first >= last:
            raise ValueError(f"`epochs` is [first, last] with the first before the last, got [{first}, {last}]")
        return self


# `from` is a keyword of Python, so a call makes the class with this field.
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
            raise ValueError(f"`step` starts at epoch {min(value)}: add a strength for epoch 0")
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


class Odd(partial[tuple[OpError, ...]]):
    """A function that finds legal but unwise values, from the names of the op and of the argument, its value and the input's type."""


def checked(check: Callable[..., None], *given: Any, **named: Any) -> AfterValidator:
    """A validator that calls `check` with the argument's value (each one of a schedule), its name, and the further arguments here. `None`
    is not checked."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        for each in value.given() if isinstance(value, Schedule) else (value,):
            if each is not None:
                check(each, info.field_name, *given, **named)
        return value

    return AfterValidator(validate)


def needs_one(*names: str, message: str | None = None) -> Any:
    """A validator of a step that needs at least one of some arguments."""
    *most, last = (f"`{name}`" for name in names)

    def validate(step: Any) -> Any:
        if step.model_fields_set.isdisjoint(names):
            raise ValueError(message or f"give at least one of {', '.join(most)} and {last}")
        return step

    return model_validator(mode="after")(validate)


_T = TypeVar("_T")


def as_pair(value: _T | tuple[_T, _T]) -> tuple[_T, _T]:
    """A pair as it is; a single value twice."""
    return value if isinstance(value, tuple) else (value, value)


Magnitude = Number | Range | AnySchedule
"""A number m, meaning [-m, m] (for a factor [1 - m, 1 + m]), or a pair, which is the range; or a schedule of either."""

Level = Number | AnySchedule  # a plain number, or a schedule of plain numbers

Share = Annotated[float, Field(ge=0, le=1)] | AnySchedule  # a plain number from 0 to 1, or a schedule of those

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)] | AnySchedule  # a plain number above 0, or a schedule of those

Span = Range | AnySchedule  # a range of draws, or a schedule of ranges


def symmetric_range(m: Magnitude) -> tuple[float, float]:
    """The range of a magnitude around 0; for a schedule, the range of all epochs."""
    if isinstance(m, Schedule):
        return m.envelope(symmetric_range)
    return (-abs(m), abs(m)) if isinstance(m, (int, float)) else (m[0], m[1])


def factor_range(m: Magnitude) -> tuple[float, float]:
    """The range of a magnitude around 1; for a schedule, the range of all epochs."""
    if isinstance(m, Schedule):
        return m.envelope(factor_range)
    return (1.0 - m, 1.0 + m) if isinstance(m, (int, float)) else (m[0], m[1])


def span_range(span: Span) -> tuple[float, float]:
    """The least and the greatest value of a range, or of all epochs of a schedule; tensors after `Transform.at`."""
    return span.envelope(tuple) if isinstance(span, Schedule) else span


def level_range(m: Level) -> tuple[float, float]:
    """A number twice; for a schedule, the least and the greatest of all epochs."""
    return m.envelope(level_range) if isinstance(m, Schedule) else (m, m)


def least(share: Share) -> float:
    """The least value of a share in any epoch; 0 for a tensor, after `Transform.at`."""
    return level_range(share)[0] if isinstance(share, (int, float, Schedule)) else 0.0


def most(share: Share) -> float:
    """The greatest value of a share in any epoch; 1 for a tensor, after `Transform.at`."""
    return level_range(share)[1] if isinstance(share, (int, float, Schedule)) else 1.0


def canonical(field: FieldInfo, value: Any, *, factor: bool) -> Any:
    """The canonical form of an argument as a plain value; the range of a `factor` lies around 1 rather than around 0."""
    if is_level(field):
        return value.meaning(lambda r: r[0], level_range) if isinstance(value, Schedule) else value
    if isinstance(value, Schedule) and not has_type(field, Magnitude):
        return value.meaning(list, tuple)
    if isinstance(value, Schedule):
        return value.meaning(lambda r: canonical_magnitude(r, factor=factor), factor_range if factor else symmetric_range)
    return canonical_magnitude(value, factor=factor)


def resolved(field: FieldInfo, value: Schedule, epoch: tf.Tensor, *, factor: bool) -> Any:
    """The value of a schedule in an epoch, in the form that an op takes: a pair of float64 scalars, for a `Level` a single one."""
    if is_level(field):
        return value.level(epoch)
    return value.at(epoch, factor_range if factor else symmetric_range)


def canonical_magnitude(m: float | Sequence[float], *, factor: bool) -> float | list[float]:
    """The canonical form of a range of draws: the single number that means exactly this range, if there is one. Equal ranges give equal
    results, however they are written, and different ranges different ones."""
    meant = factor_range if factor else symmetric_range
    low, high = (v + 0.0 for v in meant(m if isinstance(m, (int, float)) else (m[0], m[1])))  # -0.0 becomes 0.0
    # 1.2 - 1 is 0.19999999999999996; rounding to 15 digits gives the 0.2 that was written.
    short = float(f"{high - 1:.15g}") if factor else high
    return short if short >= 0 and meant(short) == (low, high) else [low, high]


def has_type(field: FieldInfo, wanted: Any) -> bool:
    """Whether an argument has a union type such as `Magnitude`, with or without `None`."""
    return set(get_args(wanted)) == set(get_args(field.annotation)) - {type(None)}


def is_level(field: FieldInfo) -> bool:
    """Whether an argument is a plain number or a schedule of plain numbers."""
    return has_type(field, Level) or has_type(field, Share) or has_type(field, Positive)


def is_amount(field: FieldInfo) -> bool:
    """Whether an argument is a magnitude, a plain number, or a schedule of these."""
    return has_type(field, Magnitude) or is_level(field)


# The checks raise a `ValueError`, which pydantic reports at the argument.


def check_number(value: Strength, name: str) -> float:
    """Rejects a range where a plain number is needed, else returns the number."""
    if isinstance(value, tuple):
        raise ValueError(f"`{name}` is a plain number in each epoch, not a range")
    return value


def check_positive(value: Strength, name: str, below: float = math.inf) -> None:
    """Rejects all but a plain number above 0, and below a limit."""
    number = check_number(value, name)
    if not 0 < number < below:
        raise ValueError(f"`{name}` must be {'above 0' if number <= 0 else f'below {below:g}'}, got {number:g}")


def check_range(value: Strength, name: str, low: float | None = None, high: float | None = None) -> None:
    """Rejects a reversed pair, and values out of bounds."""
    pair = as_pair(value)
    if pair[0] > pair[1]:
        raise ValueError(f"`{name}` is a range [low, high], but {pair[0]:g} is above {pair[1]:g}")
    for x in pair:
        if (low is not None and x < low) or (high is not None and x > high):
            bounds = f"at least {low:g}" if high is None else f"at most {high:g}" if low is None else f"between {low:g} and {high:g}"
            raise ValueError(f"`{name}` must be {bounds}, got {x:g}")


def check_span(value: Strength, name: str, low: float, high: float) -> None:
    """Rejects a single number, a reversed pair, and values out of bounds."""
    if not isinstance(value, tuple):
        raise ValueError(f"`{name}` is a range [low, high] in each epoch, got {value:g}")
    check_range(value, name, low, high)


def check_magnitude(value: Strength, name: str, low: float | None = None, high: float | None = None) -> None:
    """Rejects a magnitude around 0 that is negative or reversed, or that can give a value below `low` or above `high`."""
    if not isinstance(value, tuple) and value < 0:
        help_ = write(f"{name}: [{value:g}, {-value:g}]", "arguments", "for a range, write {}")
        raise PartError(f"`{name}` is a magnitude where it is a single number, which cannot be negative", help=help_)
    check_range(value, name, low if isinstance(value, tuple) else None, high)


def check_factor(value: Strength, name: str, *, exclusive: bool = False) -> None:
    """Rejects a factor that is reversed or can be below 0, or with `exclusive` also 0."""
    check_range(value, name)
    least, most = factor_range(value)
    if not isinstance(value, tuple) and value < 0:
        help_ = write(f"{name}: [{most:g}, {least:g}]", "arguments", "for a range, write {}")
        raise PartError(f"`{name}: m` means [1 - m, 1 + m] where m is a single number, which cannot be negative", help=help_)
    if least < 0 or (exclusive and least == 0):
        bound = "above 0" if exclusive else "at least 0"
        if isinstance(value, tuple):
            raise ValueError(f"`{name}` must be {bound}, got {least:g}")
        means = f"`{name}: {value:g}` means the range [{least:g}, {most:g}]"
        raise ValueError(f"{means}, but a factor must be {bound}; write the range you mean")


def angle_lints(op: str, field: str, degrees: Magnitude, _x: FeatureType, most: float, why: str) -> tuple[OpError, ...]:
    """Reports a range of angles that is all below 1 degree, or reaches beyond `most` degrees."""
    largest = max(abs(v) for v in symmetric_range(degrees))
    if 0 < largest < 1:
        help_ = (
            write(f"{field}: {largest * 57.29577951308232:.3g}", "arguments", "for radians write {}"),
            write(f"{field}: {largest * 360:.3g}", "arguments", "for a fraction of a turn write {}"),
        )
        return (OpError("PG503", f"`{op}` rotates by less than 1 degree; is {largest:g} in radians?", field=field, help=help_),)
    if largest > most:
        return (OpError("PG510", f"`{op}` reaches {largest:g} degrees", field=field, help=why),)
    return ()


def shift_lints(_op: str, name: str, fraction: Magnitude, _x: FeatureType) -> tuple[OpError, ...]:
    """Reports a range of distances that reaches a whole side."""
    furthest = max(abs(v) for v in symmetric_range(fraction))
    if furthest < 1:
        return ()
    message = f"`{name}` is a fraction of the side, and {furthest:g} moves the whole image out of view"
    return (OpError("PG510", message, field=name, help="for pixels, divide by the image's side"),)


def factor_lints(
    op: str, name: str, factor: Magnitude, _x: FeatureType, low: float | None, high: float, *, drawn: bool = True
) -> tuple[OpError, ...]:
    """Reports a factor, or a range of factors that are `drawn`, that reaches `low` or less, or beyond `high`."""
    least, most = factor_range(factor if drawn else (factor, factor))  # type: ignore[arg-type]
    if low is not None and least <= low:
        what = "0, where nothing of the image is left" if least == 0 else f"{least:g}"
        return (OpError("PG510", f"the `{name}` of `{op}` reaches {what}", field=name, help=f"its range is [{least:g}, {most:g}]"),)
    if most > high:
        help_ = f"its range is [{least:g}, {most:g}]; 1 changes nothing"
        return (OpError("PG510", f"the `{name}` of `{op}` reaches {most:g}", field=name, help=help_),)
    return ()


def sigma_lints(op: str, name: str, sigma: Magnitude, _x: FeatureType) -> tuple[OpError, ...]:
    """Reports a blur too weak to be seen."""
    largest = symmetric_range(sigma)[1]
    if 0 < largest < 0.3:
        message = f"`{op}` blurs by less than a third of a pixel, which cannot be seen"
        return (OpError("PG510", message, field=name, help=f"`{name}` is in pixels, and not a fraction of the image"),)
    return ()


def delta_lints(op: str, name: str, delta: Magnitude, x: FeatureType, interval: Interval | None = None) -> tuple[OpError, ...]:
    """Reports an amount added to values in an interval, by default that of `x`, that is as large as it, or too small to be seen."""
    largest, values = max(abs(v) for v in symmetric_range(delta)), interval or x.interval
    if values is None or largest == 0:
        return ()
    if largest >= values.width:
        message = f"the `{name}` of `{op}` reaches {largest:g}, but the values are in {values}"
        return (OpError("PG510", message, field=name, help=f"`{name}` is in the units of the incoming values"),)
    if largest < values.width / 200:  # about one level of 255
        message = f"the `{name}` of `{op}` is at most {largest:g}, which cannot be seen in values in {values}"
        help_ = write(f"{name}: {largest * values.width:.3g}", "arguments", "for a fraction of the range write {}")
        return (OpError("PG510", message, field=name, help=help_),)
    return ()


within = partial(checked, check_span)  # the check of a `Span` between two values
bounded = partial(checked, check_range)  # the check of a number, or of a pair in order, between two values, each of which may be `None`
amount_within = partial(checked, check_magnitude)  # the check of a magnitude around 0, whose draws lie between two values
odd_factor = partial(Odd, factor_lints)  # reports a factor that reaches `low` or less, or beyond `high`
AROUND_ZERO = checked(check_magnitude)  # the check of a magnitude around 0
AROUND_ONE = checked(check_factor)  # the check of a factor that may be 0
ABOVE_ZERO = checked(check_factor, exclusive=True)  # the check of a factor that may not be 0
SLANT = checked(check_magnitude, -89, 89)  # the check of an angle that stays below 90 degrees
TURN = Odd(angle_lints, most=360, why="a full turn is 360")
TURNS = Odd(angle_lints, most=180, why="a full turn is [-180, 180]")
STEEP = Odd(angle_lints, most=60, why="little of the picture is left beyond 60")
FAR = Odd(shift_lints)
SOFT = Odd(sigma_lints)
ADDED = Odd(delta_lints)
ADDED_LEVELS = Odd(delta_lints, interval=BYTE_RANGE)
Amount = Annotated[Magnitude, AROUND_ZERO]  # a magnitude around 0
Factor = Annotated[Magnitude, AROUND_ONE]  # a factor that may be 0
Degrees = Annotated[Amount, TURNS]  # an angle as a magnitude around 0
Alpha = Annotated[Positive, checked(check_positive)]  # a parameter of a distribution, above 0
Fraction = Annotated[Share, checked(check_positive, below=1)]  # a share between 0 and 1, both excluded
Probability = Annotated[Share, checked(check_number), checked(check_range, 0, 1)]  # the share of examples that a step changes
