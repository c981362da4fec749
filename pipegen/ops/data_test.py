"""The base classes of tests of the data: arguments, input and outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.arguments.magnitudes import Range, checked
from pipegen.ops.fields.notes import joined
from pipegen.ops.kinds.base import ExampleClass, ItemClass, PixelClass, kind_of
from pipegen.ops.model import Model
from pipegen.ops.transform import SplitName
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.base import Source

    Array = np.ndarray[Any, Any]


Reads = Literal["listing", "files", "examples"]
"""The input of a test: names, sizes, labels and tables; the bytes of files; or examples after the steps, which needs TensorFlow."""
_SHOWN = 3


class DataTest(Model):
    """One test of the data. The registry finds subclasses by their `op`."""

    op: ClassVar[str]  # the name in a spec
    bare: ClassVar[str | None] = None  # the argument of a bare value, as in `unique: id`
    reads: ClassVar[Reads] = "listing"  # its input
    examples: ClassVar[tuple[str, ...]]  # worked examples, as they stand in a spec

    split: SplitName | Annotated[list[SplitName], Field(min_length=1)] | None = None
    """The split, or several, that it tests."""
    severity: Literal["error", "warning"] = "error"
    """The severity of a failure; a warning does not change the exit code, except with `--strict`."""
    id: Annotated[str, Field(min_length=1)] | None = None
    """A name for reports and for `--select`; by default the test's name, and `#2`, `#3`, … after it where there are several."""

    def splits(self, all_splits: Sequence[str]) -> tuple[str, ...]:
        """The splits that it tests."""
        if self.split is None:
            return tuple(all_splits)
        return (self.split,) if isinstance(self.split, str) else tuple(dict.fromkeys(self.split))

    def features(self) -> tuple[str, ...]:
        """The features that it names."""
        return ()

    def problems(self, known: Known) -> Iterator[OpError]:
        """Yields errors that do not depend on the data, by default for unknown features; unknown splits are found elsewhere."""
        yield from unknown_features(known, self.splits(known.splits), self.features())

    def run(self, data: Listed) -> Outcome:
        """Tests listed data; `OpError` if the data lacks what it needs. Tests of examples have `watch` instead."""
        raise NotImplementedError


def unknown_features(known: Known, splits: Sequence[str], features: Iterable[str]) -> Iterator[OpError]:
    """Yields the error for each feature that is missing in a split."""
    for feature in features:
        lacking = next((known.types[split] for split in splits if split in known.types and feature not in known.types[split]), None)
        if lacking is not None:
            near = closest(feature, lacking)
            help_ = f"did you mean `{near}`?" if near else f"the features are {', '.join(f'`{name}`' for name in lacking)}"
            yield OpError("PG217", f"there is no feature `{feature}` to test", field="feature", help=help_)


def type_of(known: Known, splits: Sequence[str], feature: str) -> FeatureType | None:
    """The type of a feature after the steps, in the first of the splits with a plan."""
    return next((known.types[s][feature] for s in splits if s in known.types and feature in known.types[s]), None)


def named(keys: Sequence[str]) -> str:
    """Lists the first few examples: `'rose/1.jpg', 'rose/7.jpg' and 12 more`."""
    rest = len(keys) - _SHOWN
    return ", ".join(repr(str(key)) for key in keys[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def listed_splits(splits: Sequence[str]) -> str:
    """Lists splits in a sentence."""
    return joined([f"`{split}`" for split in splits])


def many(n: int, noun: str, plural: str | None = None) -> str:
    """Writes a count with its noun: `1 example`, `3,000 examples`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a test: a diagnostic code, one sentence, the argument that it contradicts (`None` for the test as a whole), and what to
    do about it, one line each. If it is `doubtful`, it is only a warning, whatever the severity of the test."""

    code: str
    message: str
    field: str | None = None
    help: tuple[str, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a test: a short summary of what it has seen, and its failures."""

    seen: str
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Known:
    """The facts about a spec that are known before its data is listed: the splits in the order of the spec, the source, and for each split
    that has a plan, the types of the features after the steps."""

    splits: tuple[str, ...]
    source: Source
    types: Mapping[str, ElementType]


@dataclass(frozen=True, slots=True)
class Copies:
    """Two records of different splits, one of which is or may be a copy of the other; by default their files are equal."""

    split: str
    key: str
    other_split: str
    other_key: str
    same: bool = True
    mirrored: bool = False
    severity: str = "error"  # `error` for copies, `warning` for probable copies, `info` for the rest


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Counts of the classes in a split, and of all: of examples, of items on them, such as boxes, or of the time steps of windows."""

    names: tuple[str, ...]
    counts: list[int]
    total: int
    each: Literal["example", "item", "time step"] = "example"


class Listed(Protocol):
    """Listed data, as tests read it."""

    known: Known

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        ...

    def keys(self, split: str) -> Sequence[str]:
        """The names of the examples of a split: relative paths, or the numbers of rows."""
        ...

    def class_counts(self, split: str, feature: str) -> ClassCounts:
        """Counts the examples of a split, or the items on them, of each class of a label."""
        ...

    def cells(self, split: str, column: str | int) -> Sequence[str]:
        """The text of a column of the table for each example of a split; `OpError` if the column is missing."""
        ...

    def numbers(self, split: str, feature: str) -> Array | None:
        """The values of a feature that is in memory for every example, `(n, ...)`; else `None`."""
        ...

    def files(self, split: str, feature: str) -> Sequence[str] | None:
        """The path of a feature's file for each example of a split; `None` if the feature has no files."""
        ...

    def copies(self, splits: Sequence[str], near: bool) -> tuple[Sequence[Copies], int]:
        """The pairs of copies between splits, with the same content or also with `near` content, and the number of compared records."""
        ...


SAMPLE = 1000  # the number of examples of each split that a test of values reads by default


class Watch:
    """A check of values that come in batches, with an outcome at the end."""

    def see(self, split: str, values: Sequence[Array], keys: Sequence[str]) -> None:
        """Reads some examples of a split: an array `(n, ...)` for each feature of the test, and the names of the examples. Missing values,
        such as empty cells, are masked."""
        raise NotImplementedError

    def outcome(self) -> Outcome:
        """The outcome for all values seen."""
        raise NotImplementedError


class ExampleTest(DataTest):
    """A test of examples after the steps."""

    reads: ClassVar[Reads] = "examples"

    sample: Annotated[int, Field(ge=1)] | Literal["all"] = SAMPLE
    """The number of examples of each split that are tested, or `all`. The choice depends only on their names, so every run tests the same
    ones."""

    def watch(self, known: Known) -> Watch:
        """The check of the values."""
        raise NotImplementedError

    def in_memory(self, data: Listed, split: str) -> list[Array] | None:
        """The values of all examples, if none has to be read: of features that the listing holds and no step changes."""
        found = [data.numbers(split, feature) for feature in self.features()]
        held = [values for values in found if values is not None]
        return held if len(held) == len(found) else None


SLACK = 1e-6  # the share of a range by which values may lie outside, because of rounding


class ValueTest(ExampleTest):
    """A test of numbers: of a feature after the steps, or of a column of the table."""

    feature: str | None = None
    """The feature after the steps; in `train` with augmentation, as in the first epoch."""
    column: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)] | None = None
    """Instead of `feature`, a column of the table, by its name or its number from 0, or a key of records, as it is stored; empty cells do
    not count."""

    @model_validator(mode="after")
    def _one(self) -> Any:
        if (self.feature is None) == (self.column is None):
            raise ValueError("give `feature` or `column`" + (", and not both" if self.feature is not None else ""))
        return self

    @property
    def called(self) -> str:
        """The name of the feature or column."""
        return f"`{self.feature if self.feature is not None else self.column}`"

    def features(self) -> tuple[str, ...]:
        return () if self.feature is None else (self.feature,)

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        advice = None if self.column is None else known.source.lacks_column(str(self.column))
        if advice is not None:
            message, instead = f"`{known.source.op}` has no column `{self.column}`", "give `feature`, which is the value after the steps"
            yield OpError("PG700", message, field="column", help=(*advice, instead))
        for name, t in known.source.infer().items():
            if name == self.feature and kind_of(t).has(ExampleClass, ItemClass, PixelClass):
                help_ = "`classes` and `balance` count classes" if kind_of(t).has(ExampleClass, ItemClass) else "remove the test"
                yield OpError("PG700", f"`{name}` holds class indices, not quantities", field="feature", help=help_)

    def in_memory(self, data: Listed, split: str) -> list[Array] | None:
        if self.column is None:
            return super().in_memory(data, split)
        cells = data.cells(split, self.column)
        values: Any = np.ma.masked_array(np.zeros(len(cells)), True)
        for i, cell in enumerate(cells):
            if not cell:
                continue
            try:
                values[i] = float(cell.replace("_", "x"))
            except ValueError:
                message = f"{data.keys(split)[i]!r} has {cell!r} in the column `{self.column}`, which is not a number"
                raise OpError("PG702", message, field="column", help="`accepted` tests a column of text") from None
        return [values]


def _check_within(within: Range, name: str) -> None:
    if within[0] > within[1]:
        raise ValueError(f"`{name}` is the least and the greatest value, in this order, got [{within[0]:g}, {within[1]:g}]")


Within = Annotated[Range, checked(_check_within)]  # a least and a greatest value, both included
