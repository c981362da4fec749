"""The examples of an epoch, the splits and the sizes of batches: the sections `sampling`, `curriculum`, `splits` and `batch.buckets`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, PrivateAttr, create_model, field_validator, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import PartError
from pipegen.lazy import np
from pipegen.ops.arguments.geometry import BUCKET, Side, Size
from pipegen.ops.arguments.magnitudes import Level, Pair, Schedule, has_type
from pipegen.ops.fields.labels import text_of
from pipegen.ops.model import Model
from pipegen.ops.sources.features.predicate import Where
from pipegen.ops.transform import SplitName, Transform

FeatureName = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Power = Annotated[float, Field(ge=0, le=1)]


class ByColumn(Model):
    """The values of a column."""

    column: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]
    """The name of the column, or its number from 0; for records in files of many, a key."""


class RepeatFactor(Model):
    """Repeats examples of rare classes sqrt(threshold / share of the class) times, and each example at least once (Gupta 2019, LVIS)."""

    feature: FeatureName = "label"
    """The label whose classes are counted; for an example with several classes, the rarest one counts."""
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.001
    """The share of the examples below which a class is rare: 0.001 is one example in a thousand."""


class Subset(Model):
    """Trains on some of the examples: the same ones in every epoch. A larger subset contains a smaller one."""

    fraction: Share | None = None
    """The share of the training split."""
    count: Annotated[int, Field(ge=1)] | None = None
    """The number of examples of the training split."""
    where: Where | None = None
    """A condition on columns of a table, or on keys of records, such as `year >= 2015 and site in ['a', 'b']`; see `where` of the source.
    Other splits keep all their examples."""
    stratify: Literal["label"] | ByColumn | None = None
    """Keep the share of each class, or of each value of a column (`{column: NAME}`), exact to one example."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """The seed of the choice. The top-level seed does not change it."""

    @model_validator(mode="after")
    def _one_size(self) -> Subset:
        if self.fraction is not None and self.count is not None:
            raise ValueError("`fraction` and `count` both set the number of examples: leave one of them out")
        if self.fraction is None and self.count is None and self.where is None:
            raise ValueError("`subset` needs `fraction`, `count` or `where`")
        return self


class Sampling(Model):
    """The number of times that an epoch of the training split has each example."""

    repeat_factor: RepeatFactor | None = None
    """Repeat examples of rare classes, and keep all others; an epoch gets longer."""
    balance: FeatureName | dict[str, Power] | None = None
    """A label whose classes are seen equally often, or `{LABEL: POWER}` for less: 0 changes nothing, 1 makes them equal, and 0.5 samples in
    proportion to the square root of a class's size. The length of an epoch stays, unless `epoch` is `longest`."""
    epoch: Literal["same", "longest"] = "same"
    """The length of an epoch with `balance`. `same`: as many examples as the split has. `longest`: it grows until each example is seen once
    or more; classes that are seen equally often then have as many examples as the largest."""
    weights: FeatureName | None = None
    """A feature with a number for each example, which is sampled in proportion to it. The length of an epoch stays."""
    subset: Subset | None = None
    """Train on some of the examples; combines with one of the others, which then counts only these."""

    @field_validator("balance")
    @classmethod
    def _one_label(cls, value: str | dict[str, float] | None) -> str | dict[str, float] | None:
        if isinstance(value, dict) and len(value) != 1:
            raise ValueError(f"`balance` takes one label with its power, such as `{{label: 0.5}}`, got {len(value)} labels")
        return value

    @model_validator(mode="after")
    def _one_rule(self) -> Sampling:
        rules = [name for name in ("repeat_factor", "balance", "weights") if getattr(self, name) is not None]
        if len(rules) > 1:
            raise ValueError(f"`{rules[0]}` and `{rules[1]}` both set how often an example is seen: leave one of them out")
        if self.epoch == "longest" and self.balance is None:
            raise ValueError("`epoch: longest` goes with `balance`, such as `balance: label` beside it; or leave it out")
        if not rules and self.subset is None:
            raise ValueError("`sampling` needs one of `repeat_factor`, `balance`, `weights` and `subset`")
        return self

    @property
    def balanced(self) -> tuple[str, float] | None:
        """The label of `balance` and its power."""
        if isinstance(self.balance, dict):
            return next(iter(self.balance.items()))
        return None if self.balance is None else (self.balance, 1.0)

    @property
    def feature(self) -> str | None:
        """The feature that sets how often an example is seen."""
        if self.repeat_factor is not None:
            return self.repeat_factor.feature
        return self.balanced[0] if self.balanced is not None else self.weights

    def feature_path(self) -> tuple[str, ...]:
        """Returns the key path of that feature, below `sampling`."""
        if self.repeat_factor is not None:
            return ("repeat_factor", "feature") if "feature" in self.repeat_factor.model_fields_set else ("repeat_factor",)
        return ("balance",) if self.balance is not None else ("weights",)

    def meaning(self) -> dict[str, Any]:
        """Returns a canonical form, as plain values."""
        said = {
            "repeat_factor": self.repeat_factor and self.repeat_factor.model_dump(mode="json"),
            "balance": dict([self.balanced]) if self.balanced is not None and self.balanced[1] else None,
            "epoch": self.epoch if self.epoch == "longest" and self.balanced is not None and self.balanced[1] else None,
            "weights": self.weights,
            "subset": self.subset and self.subset.model_dump(mode="json", exclude_none=True),
        }
        return {k: v for k, v in said.items() if v is not None}


class _Curriculum(Model):
    """Samples an epoch from the easiest examples, and from more of them as training goes on (Bengio 2009)."""

    @model_validator(mode="after")
    def _shares(self) -> _Curriculum:
        wrong = next((value for value in self.shares() if not 0 < value <= 1), None)
        if wrong is not None:
            raise ValueError(f"`pace` must be a share of the examples, above 0 and at most 1, got {wrong:g}")
        return self

    def shares(self) -> tuple[float, ...]:
        """Returns the share of the examples that each epoch samples from; later epochs have the last one."""
        pace = getattr(self, "pace")  # noqa: B009
        return tuple(low for low, _ in pace.ranges(_number)) if isinstance(pace, Schedule) else (float(pace),)

    @property
    def rising(self) -> bool:
        """Whether the lowest value is the easiest."""
        return bool(getattr(self, "from") != "high")

    def meaning(self) -> dict[str, Any]:
        """Returns a canonical form, as plain values."""
        shares = self.shares()
        changes = [[epoch, share] for epoch, share in enumerate(shares) if not epoch or share != shares[epoch - 1]]
        return {"by": getattr(self, "by"), "from": "low" if self.rising else "high", "pace": changes}  # noqa: B009


def _number(strength: Any) -> Pair:
    if isinstance(strength, tuple):
        raise ValueError(f"`pace` must be a share of the examples, not a range, got {list(strength)}")
    return float(strength), float(strength)


# `from` is a Python keyword, so the class with a field of this name is made by a call.
Curriculum: Any = create_model(
    "Curriculum",
    __base__=_Curriculum,
    __module__=__name__,
    **{
        "by": (FeatureName, Field(description="A feature with a number for each example, such as the loss of an earlier model.")),
        "from": (
            Literal["low", "high", "easy"],
            Field(default="low", description="The easiest end: `low` or `high` numbers; `easy` is `low`, for a difficulty."),
        ),
        "pace": (
            Level,
            Field(description="The share of the examples, from the easiest on, that an epoch samples from: a number or a schedule."),
        ),
    },
)  # type: ignore[call-overload]
Curriculum.__doc__ = _Curriculum.__doc__


Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
ColumnName = Annotated[str, Field(min_length=1)]
Value = bool | int | float | str


def listed_values(lines: Iterable[str]) -> tuple[str, ...]:
    """Returns the values that a file lists, one a line, without blank lines and comments."""
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


class ValuesFile(Model):
    """The values that a file lists, one a line."""

    file: Annotated[str, Field(min_length=1)]
    """The file, relative to the spec's file; a line that begins with `#` is a comment."""

    _values: tuple[str, ...] = PrivateAttr(default=())

    @property
    def values(self) -> tuple[str, ...]:
        """The values, once they are read."""
        return self._values

    def take(self, lines: Sequence[str]) -> None:
        """Takes the values from the lines of the file."""
        self._values = listed_values(lines)


PartValues = Annotated[tuple[Value, ...], Field(min_length=1)] | ValuesFile  # the values of a column that a part has


class PathGroup(Model):
    """Groups records whose paths have the same match."""

    path: str
    """A regular expression (RE2: no look-around, no back-references) searched in the relative path; its first group (or the whole
    match) names the group."""


class Folds(Model):
    """Cross-validation: the data is cut into `count` folds, and one of them is the validation split."""

    count: Annotated[int, Field(ge=2)]
    """The number of folds."""
    fold: Annotated[int, Field(ge=0)]
    """The fold that is the validation split, from 0."""


class TimeRules(Model):
    """Rules for splits by time."""

    gap: Annotated[int, Field(ge=0)] = 0
    """The rows left out between a part and the next, so that values that hang together are not on both sides."""
    history: bool = False
    """Whether windows of a later part may begin in an earlier one, as long as their horizon is in their own part: their inputs are then
    values that training has seen, as when a model is used. With as many rows as a horizon, a part has the last one of each series."""


class ByTime(Model):
    """A division by time, with its rules."""

    time: TimeRules
    """The rules: `{gap: 24, history: true}`."""


REST = "rest"  # the size of a first part by time that takes what the others leave


class Splits(Model):
    """Divides the data into splits."""

    parts: dict[SplitName, Annotated[float, Field(gt=0, lt=1)] | Annotated[int, Field(ge=1)] | str | dict[ColumnName, PartValues]] = {}
    """The splits with their sizes: fractions of the data or counts of examples. With `method: folder` or a column, the
    value that names the split in the data. With `method: time`, in the order of time: fractions of the rows, counts of the last rows of
    each series, or the time at which a part begins; the first may be `rest`. Or the values of a column that each split has, in a list or in
    a file with one a line: `{train: {patient: [2, 3, 5]}, validation: {patient: {file: val.txt}}}`; examples with other values are in no
    split."""
    method: Literal["random", "hash", "folder", "keras", "keras_utility", "time"] | ByColumn | ByTime = "random"
    """The assignment of records to splits. `random`: exact sizes, by the rank of a hash of the relative path. `hash`: a threshold on the
    hash, so that adding data moves no record; it is the default for sources with many records in a file and sizes that are fractions.
    `folder`: the first folder names the split. `keras`: the first files of each class are validation, as with Keras'
    `ImageDataGenerator`. `keras_utility`: the files are shuffled by `splits.seed` and the last of them are validation, as with
    `keras.utils.image_dataset_from_directory`. `time`: windows of time series, earlier ones before later ones; it is the default for them.
    A window is in the part that has all of its rows, or in none. `{time: {gap: 24}}` leaves rows out between the parts."""
    stratify: Literal["label"] | ByColumn | None = None
    """Keep the share of each class, or of each value of a column (`{column: NAME}`), the same in every split, exact to one example per
    class."""
    group: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)] | PathGroup | None = None
    """Keep records of one group in one split: `{path: REGEX}`, or the name of a column, which is a key for records in files of many, or
    for a table its number from 0."""
    folds: Folds | None = None
    """Cross-validation; combines with `parts: {test: 0.1}`."""
    seed: Seed = 0
    """The seed of the splits alone, so that another top-level seed keeps the validation set."""
    exclude: str | None = None
    """A file of relative paths, one a line, to leave out of their splits: no other record moves. A record in a file of many is `FILE#ROW`,
    and in a `mix` the name of the part comes first, `PART/PATH`. `pipegen report` writes such a file for copies that leak from split to
    split. Records in `errors: {exclude: FILE}` are left out before records are assigned."""

    @field_validator("parts")
    @classmethod
    def _one_column(cls, parts: dict[str, Any]) -> dict[str, Any]:
        for name, part in parts.items():
            if isinstance(part, dict) and len(part) != 1:
                raise PartError(f"`{name}` takes the values of one column, such as `{{patient: [2, 3, 5]}}`, got {len(part)} columns", name)
        return parts

    @property
    def files(self) -> dict[str, ValuesFile]:
        """The file that lists the values of a part, for each that has one."""
        each = ((name, value) for name, part in self.parts.items() if isinstance(part, dict) for value in part.values())
        return {name: value for name, value in each if isinstance(value, ValuesFile)}

    @property
    def column(self) -> str | int | None:
        """The column whose values name the splits, if one does."""
        if isinstance(self.method, ByColumn):
            return self.method.column
        return next((next(iter(part)) for part in self.parts.values() if isinstance(part, dict)), None)

    @property
    def by_time(self) -> TimeRules | None:
        """The rules of a division by time; `None` for another method."""
        if isinstance(self.method, ByTime):
            return self.method.time
        return TimeRules() if self.method == "time" else None

    @property
    def column_field(self) -> str:
        """The argument that names it."""
        if isinstance(self.method, ByColumn):
            return "method.column"
        return next((f"parts.{name}" for name, part in self.parts.items() if isinstance(part, dict)), "")

    def names(self, *, learns: bool, unlabelled: bool = False) -> tuple[str, ...]:
        """Lists the splits in order: without `parts` all records are for training, or for prediction if there is nothing to learn.

        If some records are `unlabelled`, they are the split `predict`.
        """
        names = tuple(self.parts)
        if self.folds is not None:
            names = ("train", "validation", *(n for n in names if n not in ("train", "validation")))
        names = names or (("train",) if learns else ("predict",))
        return (*names, "predict") if unlabelled and "predict" not in names else names

    def columns(self) -> dict[str, str | int]:
        """Returns the columns that assign records to splits, by the argument that names each."""
        found = {} if self.column is None else {self.column_field: self.column}
        found |= {"stratify.column": self.stratify.column} if isinstance(self.stratify, ByColumn) else {}
        return found | ({"group": self.group} if isinstance(self.group, (str, int)) else {})

    def values(self) -> dict[str, tuple[str, ...]]:
        """Returns the values of a column that each part has, as the text of cells; those of files once they are read."""
        given = {name: next(iter(part.values())) if isinstance(part, dict) else (part,) for name, part in self.parts.items()}
        each = {name: own.values if isinstance(own, ValuesFile) else own for name, own in given.items()}
        return {name: tuple(dict.fromkeys(map(text_of, values))) for name, values in each.items()}

    def shared_value(self) -> tuple[str, str, str] | None:
        """Finds a value that two parts list, and the parts; the second one has it inline, if one has."""
        owner: dict[str, str] = {}
        for name, values in sorted(self.values().items(), key=lambda part: part[0] not in self.files):
            for value in values:
                if owner.setdefault(value, name) != name:
                    return value, owner[value], name
        return None

    def by_default(self, method: Literal["random", "hash", "time"]) -> Splits:
        """Sets the method to that of the source, unless a method is given or the splits do not allow it."""
        fractions = bool(self.parts) and all(isinstance(size, float) for size in self.parts.values())
        if method == "time":
            stays = "method" in self.model_fields_set or not self.parts or self.stratify is not None or self.group is not None
            stays = stays or self.column is not None
            return self if stays else self.model_copy(update={"method": method})
        stays = "method" in self.model_fields_set or not fractions or self.folds is not None or self.stratify is not None
        return self if stays or method == "random" else self.model_copy(update={"method": method})


M = TypeVar("M", bound=Model)


class Columns(Model):
    """Image sizes from features of the record."""

    columns: tuple[FeatureName, FeatureName]
    """The features with the height and the width in pixels, in this order: each a number of `kind: tensor`."""


class LengthColumn(Model):
    """Lengths from a feature of the record."""

    column: FeatureName
    """The feature with the length as it is stored: a number of `kind: tensor`."""


class Padding(Model):
    """Padding of features whose length along the first axis varies, so that examples can be stacked. It makes `NAME_length`, the length of
    an example before, and `NAME_valid`, which is false for padding; name them in `output` to receive them."""

    to: Annotated[int, Field(ge=1)] | Literal["longest", "bucket"] = "longest"
    """The length of all examples of a batch, in elements along the first axis. `longest` is that of the longest example of the data;
    `bucket` that of the bucket, for features as long as the one whose length selects it, which has it anyway."""
    value: float = 0.0
    """The value of padding."""
    longer: Literal["error", "cut", "drop"] = "error"
    """The treatment of examples that are longer than `to`. `error` stops and names the file; `cut` keeps the first `to` elements; `drop`
    leaves them out of their split, with a warning."""
    measured: Literal["headers"] | LengthColumn = "headers"
    """The source of lengths that `to: longest`, `longer: drop` and buckets need before any example is read: `headers` reads the first bytes
    of every file, and stores the result; `{column: NAME}` is a feature of a table."""


class LengthBuckets(Model):
    """Batches of a few lengths, so that little is padded and a model is compiled only a few times."""

    by: Literal["length"]
    """What decides the bucket of an example: its length along the first axis."""
    sizes: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=2, max_length=64)]
    """The lengths, ascending. An example goes to the shortest one that holds it, and is padded to that; `batch.pad` says how, and what
    happens to an example that is longer than all."""
    feature: FeatureName | None = None
    """The feature whose length decides; by default the only one that is padded, or the first."""

    @field_validator("sizes")
    @classmethod
    def _ascending(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        wrong = next((pair for pair in pairwise(sizes) if pair[0] >= pair[1]), None)
        if wrong is not None:
            raise ValueError(f"lengths of buckets must ascend, got {wrong[0]} before {wrong[1]}")
        return sizes

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The sizes as shapes of one side."""
        return tuple((size,) for size in self.sizes)


class Buckets(Model):
    """Batches of a few sizes, so that images are cropped little and a model is compiled only a few times.

    A step whose `size` is `bucket` resizes or crops each image to the size of its bucket.
    """

    sizes: Annotated[tuple[tuple[Side, Side], ...], Field(min_length=2, max_length=64)]
    """The sizes, `[height, width]` each. An image goes to the one whose aspect ratio is nearest to its own; of several with the same
    aspect ratio, to the largest that is not larger than the image, or else to the smallest."""
    image: FeatureName | None = None
    """The image whose size decides; by default the only one, or the first."""
    measured: Literal["auto", "headers"] | Columns = "auto"
    """The source of image sizes, before any is decoded: `headers` reads the first bytes of every file, and stores the result;
    `{columns: [HEIGHT, WIDTH]}` are features of a table. `auto` uses the annotations, and headers for missing sizes."""

    @field_validator("sizes")
    @classmethod
    def _distinct(cls, sizes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        twice = next((size for i, size in enumerate(sizes) if size in sizes[:i]), None)
        if twice is not None:
            raise ValueError(f"duplicate bucket size [{twice[0]}, {twice[1]}]")
        return sizes

    @classmethod
    def reject_misplaced(cls, given: Mapping[str, Any]) -> None:
        sizes = given.get("sizes")
        if isinstance(sizes, list) and sizes and all(isinstance(size, int) for size in sizes):
            help_ = write(f"batch: {{buckets: {{by: length, sizes: {sizes}}}}}", "spec", "for lengths write {}")
            raise PartError("`sizes` of images are pairs, `[height, width]`", "sizes", help=help_)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The sizes, height and width in pixels."""
        return self.sizes


def says_bucket(steps: Iterable[Transform]) -> bool:
    """Checks for a step with `size: bucket`."""
    return any(sized(step, (1, 1)) is not step for step in steps)


def sized(step: M, size: tuple[int, int]) -> M:
    """Replaces `size: bucket` in a step by the size of a bucket; returns the same object if there is none."""
    changes: dict[str, Any] = {}
    for name, field in type(step).model_fields.items():
        value = getattr(step, name)
        new = size if isinstance(value, str) and value == BUCKET and has_type(field, Size) else _inside(value, size)
        if new is not value:
            changes[name] = new
    return step.model_copy(update=changes) if changes else step


def _inside(value: Any, size: tuple[int, int]) -> Any:
    """Replaces `size: bucket` in the steps within an argument."""
    if isinstance(value, Model):
        return sized(value, size)
    if isinstance(value, (tuple, list)):
        new = [_inside(one, size) for one in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else type(value)(new)
    return value


def nearest(sizes: tuple[tuple[int, int], ...], sides: Any) -> Any:
    """Finds the bucket of each image: int32 `(n,)`, from heights and widths in pixels, float64 `(n, 2)`. Aspect ratios are compared as
    logarithms, so that 2:1 is as far from a square as 1:2."""
    wanted = np.array([math.log(height / width) for height, width in sizes])
    areas = np.array([height * width for height, width in sizes], np.float64)
    own = np.log(sides[:, 0] / sides[:, 1])
    apart = np.round(np.abs(own[:, None] - wanted), 9)  # sizes of the same aspect ratio tie
    near = apart == apart.min(1, keepdims=True)
    fits = near & (areas <= (sides[:, 0] * sides[:, 1])[:, None])
    largest = np.where(fits, areas, -1.0).argmax(1)
    smallest = np.where(near, areas, np.inf).argmin(1)
    return np.where(fits.any(1), largest, smallest).astype(np.int32)
