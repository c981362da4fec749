"""Windows of time series, and the arguments of their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import PartError
from pipegen.ops.fields.labels import Classes, ClassName, KnownClasses
from pipegen.ops.fields.numbers import LARGEST, NumberType
from pipegen.ops.kinds.base import ExampleClass, FeatureKind, LossWeight, Numbers, Samples, TimestepClass, kind_named, kind_of
from pipegen.ops.kinds.series import OnSteps
from pipegen.ops.model import Model

Column = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]  # its number from 0, or its name
STRETCHES = ("past", "horizon", "all")  # rows of a window, of which a feature has a value each
CALENDAR = ("minute", "hour", "weekday", "day", "day_of_year", "month")
"""What a time tells."""
if TYPE_CHECKING:
    CalendarName = str
else:
    CalendarName = Literal[CALENDAR]


class Window(Model):
    """Windows of rows."""

    length: Annotated[int, Field(ge=1)]
    """The rows of a window that a model sees."""
    stride: Annotated[int, Field(ge=1)] = 1
    """The rows from the start of a window to that of the next; with the `length`, windows do not overlap."""
    every: Annotated[int, Field(ge=1)] = 1
    """Take every so many rows, in the window and in its horizon."""
    horizon: Annotated[int, Field(ge=0)] = 0
    """The rows after a window that belong to it, to be predicted; a window is only where its horizon is, too."""

    @property
    def lead(self) -> int:
        """Rows from the first of a window to the first of its horizon."""
        return self.length * self.every

    def rows(self, at: str) -> tuple[int, ...] | int:
        """Returns the rows that a feature `at` a place takes, counted from the first of the window, or a single one."""
        single = {"first": 0, "series": 0, "last": self.lead - self.every, "next": self.lead}
        if at in single:
            return single[at]
        begin, end = self.lead if at == "horizon" else 0, self.lead if at == "past" else self.lead + self.horizon * self.every
        return (*range(begin, end, self.every),)

    @property
    def span(self) -> int:
        """Rows from the first of a window to the last that belongs to it."""
        return (self.length + self.horizon - 1) * self.every + 1


class SeriesFeature(Model):
    """A feature of a window: values of its rows, or one value. Steps act on series of past values, and on others that they name."""

    home: ClassVar[None] = None
    several: ClassVar[bool] = False
    unlabelled: ClassVar[None] = None
    ignore: ClassVar[int] = 0

    kind: Literal["series", "label", "tensor", "weight"]
    """`series`: the values of the rows of a window, float32 `(length, channels)`. The others are one value for a window, of one of its
    rows: `label`, a class; `tensor`, numbers; `weight`, a number of 0 or more that weighs it in the loss. A `label` can also be the classes
    of all rows, int64 `(length,)`."""
    column: Column | None = None
    """Name of the column or of the array, or its number from 0; by default the feature's name, or the only array."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """Several columns in place of one, the channels in this order."""
    at: Literal["past", "horizon", "all", "first", "last", "next", "series"] | None = None
    """The rows that it takes. Of a series: `past` (default), those of the window; `horizon`, those after it; `all`, both, for what is known
    in advance. Of others: `last` (default), the last one of the window; `first`; `next`, the first one of the horizon; `series` for a value
    that is the same in all rows of a series. Of a label also `past`, `horizon` and `all`: the class of each time step."""
    missing: Literal["error", "keep"] | float = "error"
    """For a series: a number that stands for missing values; or `keep`, which leaves them NaN, for the step `fill_missing`. By default they
    are an error."""
    observed: bool = False
    """For a series: 1 for each value that is there and 0 for each missing one, in place of the values."""
    calendar: Annotated[tuple[CalendarName, ...], Field(min_length=1)] | None = None
    """For a series: what the column `order` says of the time of each row, in place of columns: `minute`, `hour`, `weekday` (0 is Monday),
    `day`, `day_of_year`, `month`."""
    cyclic: bool = False
    """With `calendar`: the sine and the cosine of each, so that December is beside January; by default numbers."""
    classes: KnownClasses | None = None
    """For a label: class names in index order, in a list or in a file with one a line (`{file: classes.txt}`), or their number. By default
    those in the data."""
    offset: int = 0
    """For a label: the number subtracted from stored numbers to get class indices, such as 1 if they start at 1."""
    map: Annotated[dict[ClassName, ClassName], Field(min_length=1)] | None = None
    """For a label: the class meant by a stored one, such as `{pug: dog, chow: dog}`. Several with one name become one class."""
    dtype: NumberType | None = None
    """For a series and a tensor: `float32` (default), or for a tensor `int64`, for integers beyond 16,777,216. By default an integer that
    float32 cannot represent is an error; with an explicit `float32` it is rounded."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> SeriesFeature:
        along, kind = self.is_series, self.own_kind
        only = dict.fromkeys(("missing", "observed", "calendar", "cyclic"), along)
        only |= dict.fromkeys(("classes", "offset", "map"), self.is_label)
        only["dtype"] = along or (kind.has(Numbers) and not kind.has(LossWeight))
        odd = next((name for name, fits in only.items() if not fits and name in self.model_fields_set), None)
        if odd is not None:
            raise PartError(f"`{odd}` is not for `kind: {self.kind}`", odd)
        if along and self.dtype == "int64":
            raise PartError("a series is float32; `dtype: int64` is for `kind: tensor`", "dtype")
        single = ("first", "last", "next", "series")
        rows = STRETCHES if along else (*single, *STRETCHES) if self.row_kind.along else single
        if self.at is not None and self.at not in rows:
            listed = ", ".join(f"`{name}`" for name in rows)
            raise PartError(f"`at` of `kind: {self.kind}` is one of {listed}, got `{self.at}`", "at")
        if self.column is not None and self.columns is not None:
            raise ValueError("`column` names one column and `columns` several; leave one of them out")
        if self.columns is not None and (self.is_label or kind.has(LossWeight)):
            raise PartError(f"a {self.kind} is one `column`", "columns")
        if self.calendar is not None and (self.column is not None or self.columns is not None):
            raise PartError("`calendar` reads the column `order`; leave `column` and `columns` out", "calendar")
        if self.calendar is not None and (self.observed or self.missing != "error"):
            raise PartError("`calendar` has no missing values; leave `observed` and `missing` out", "calendar")
        if self.cyclic and self.calendar is None:
            raise PartError("`cyclic` is for features with a `calendar`", "cyclic")
        if isinstance(self.missing, float) and not abs(self.missing) <= LARGEST:
            raise PartError("a series is float32, which cannot hold this number", "missing", help="such as `missing: 0`")
        if self.observed and self.missing != "error":
            raise PartError("`observed` tells which values are missing; leave `missing` out", "missing")
        return self

    @property
    def own_kind(self) -> FeatureKind:
        """Its kind; of a value of several rows, that of one a time step."""
        kind = self.row_kind
        return kind_named(kind.along) if kind.along and self.at in STRETCHES else kind

    @property
    def row_kind(self) -> FeatureKind:
        """The kind of its value in one row."""
        return kind_of(self)

    @property
    def is_series(self) -> bool:
        """Whether it is values of several rows."""
        return self.own_kind.has(Samples)

    @property
    def is_label(self) -> bool:
        """Whether it is a class, or the class of each time step."""
        return self.own_kind.has(ExampleClass, TimestepClass)

    @property
    def is_along(self) -> bool:
        """Whether it has a value for each of several rows."""
        return self.own_kind.has(Samples, TimestepClass)

    @property
    def follows(self) -> OnSteps | None:
        """What it tells of time steps; `None` for values, and for a single value."""
        own = self.at in (None, "past")
        if self.is_along and self.is_label:
            return OnSteps("classes", own)
        return OnSteps("observed", own) if self.observed else OnSteps("times", own) if self.calendar is not None else None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if given."""
        classes: int | tuple[str, ...] | None = self.classes
        return len(classes) if isinstance(classes, tuple) else classes

    @property
    def chosen(self) -> Classes:
        """The renamed classes."""
        return Classes(self.map or {})

    def named(self, name: str) -> tuple[str | int, ...]:
        """Returns its columns, where `name` is its own."""
        return self.columns or (name if self.column is None else self.column,)
