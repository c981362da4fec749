"""Defines what a test of the data is: its arguments, what it must be given, and what it says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.model import Model
from pipegen.ops.transform import SplitName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipegen.ops.arguments.magnitudes import Range
    from pipegen.ops.sources.listing.base import Source
    from pipegen.types import ElementType, FeatureType


Reads = Literal["listing", "files", "examples"]
"""What a test reads: names, sizes, labels and tables; the bytes of files; or examples as the steps make them, which takes TensorFlow."""
_SHOWN = 3


class DataTest(Model):
    """One test of the data. The registry finds subclasses by their `op`.

    Class attributes:
        op: The name in a spec.
        bare: The argument that a bare value stands for, as in `unique: id`.
        reads: What it reads.
        examples: Worked examples, as they stand in a spec.
    """

    op: ClassVar[str]
    bare: ClassVar[str | None] = None
    reads: ClassVar[Reads] = "listing"
    examples: ClassVar[tuple[str, ...]]

    split: SplitName | Annotated[list[SplitName], Field(min_length=1)] | None = None
    """The split, or several, that it is about."""
    severity: Literal["error", "warning"] = "error"
    """How bad it is when the data fails the test; a warning leaves the exit code alone, but for `--strict`."""
    id: Annotated[str, Field(min_length=1)] | None = None
    """A name for reports and for `--select`; by default the test's name, and `#2`, `#3`, … after it where there are several."""

    def splits(self, all_splits: Sequence[str]) -> tuple[str, ...]:
        """Returns the splits that it is about."""
        if self.split is None:
            return tuple(all_splits)
        return (self.split,) if isinstance(self.split, str) else tuple(dict.fromkeys(self.split))

    def features(self) -> tuple[str, ...]:
        """Returns the features that it names."""
        return ()

    def problems(self, known: Known) -> Iterator[OpError]:
        """Yields what cannot work about it, whatever the data is; splits that do not exist are found elsewhere."""
        yield from ()

    def run(self, data: Listed) -> Outcome:
        """Tests listed data; `OpError` where the data has not what it asks for. Tests of examples have `watch` instead."""
        raise NotImplementedError


def unknown_feature(known: Known, splits: Sequence[str], feature: str, field: str = "feature") -> OpError | None:
    """Returns the error for a feature that a split has not, or `None`."""
    for split in splits:
        type_ = known.types.get(split)
        if type_ is not None and feature not in type_:
            near = closest(feature, type_)
            help_ = f"did you mean `{near}`?" if near else f"the features are {', '.join(f'`{name}`' for name in type_)}"
            return OpError("PG217", f"there is no feature `{feature}` to test", field=field, help=help_)
    return None


def type_of(known: Known, splits: Sequence[str], feature: str) -> FeatureType | None:
    """Returns the type of a feature after the steps, in the first of some splits that has a plan."""
    return next((known.types[s][feature] for s in splits if s in known.types and feature in known.types[s]), None)


def named(keys: Sequence[str], total: int | None = None) -> str:
    """Names the first few of some examples: `'rose/1.jpg', 'rose/7.jpg' and 12 more`."""
    shown = [repr(str(key)) for key in keys[:_SHOWN]]
    rest = (len(keys) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")


def listed_splits(splits: Sequence[str]) -> str:
    """Names splits in a sentence."""
    *most, last = (f"`{split}`" for split in splits)
    return f"{', '.join(most)} and {last}" if most else last


def many(n: int, noun: str, plural: str | None = None) -> str:
    """Writes a count with its noun: `1 example`, `3,000 examples`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """Says how the data fails a test.

    Attributes:
        code: A diagnostic code.
        message: One sentence.
        field: The argument that it contradicts, or `None` for the test as a whole.
        help: What to do about it, a line each.
        doubtful: Whether it is no more than a warning, whatever the severity of the test is.
    """

    code: str
    message: str
    field: str | None = None
    help: tuple[str, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds what a test found: what it looked at and saw, in a few words, and how the data fails it."""

    seen: str
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Known:
    """Holds what is known of a spec before its data is listed.

    Attributes:
        splits: The splits, in the order of the spec.
        source: The source.
        types: For each split that has a plan, the features after the steps.
    """

    splits: tuple[str, ...]
    source: Source
    types: Mapping[str, ElementType]


class Copies(Protocol):
    """Two records of different splits of which one is, or may be, a copy of the other."""

    split: str
    key: str
    other_split: str
    other_key: str
    same: bool
    mirrored: bool

    @property
    def severity(self) -> str:
        """`error` for copies, `warning` for what probably is one, `info` for the rest."""
        ...


class Counted(Protocol):
    """The classes of a label, how many examples, or items on examples, have each, and how many there are."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def counts(self) -> list[int]: ...

    @property
    def total(self) -> int: ...

    @property
    def each(self) -> str: ...


class Listed(Protocol):
    """Answers what tests ask of listed data."""

    known: Known

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        ...

    def keys(self, split: str) -> Sequence[str]:
        """Names the examples of a split: relative paths, or the numbers of rows."""
        ...

    def class_counts(self, split: str, feature: str) -> Counted:
        """Returns how many examples of a split, or items on them, have each class of a label."""
        ...

    def cells(self, split: str, column: str | int) -> Sequence[str]:
        """Returns the text of a column of the table for each example of a split; `OpError` where there is no such column."""
        ...

    def numbers(self, split: str, feature: str) -> Array | None:
        """Returns the values of a feature that is held in memory for every example, `(n, ...)`; else `None`."""
        ...

    def files(self, split: str, feature: str) -> Sequence[str] | None:
        """Returns the path of a feature's file for each example of a split; `None` where it has none."""
        ...

    def copies(self, splits: Sequence[str], near: bool) -> tuple[Sequence[Copies], int]:
        """Returns the pairs of copies between splits, of the same content or also of nearly the same, and how many records were
        compared."""
        ...


SAMPLE = 1000
"""Examples of each split that a test of values looks at by default."""


class Watch:
    """Watches values go by, some examples at a time, and says in the end whether they are right."""

    def see(self, split: str, values: Sequence[Array], keys: Sequence[str]) -> None:
        """Looks at some examples of a split: an array `(n, ...)` for each feature that the test names, and the names of the examples.
        What is not there, as an empty cell, is masked."""
        raise NotImplementedError

    def outcome(self) -> Outcome:
        """Returns what it has seen."""
        raise NotImplementedError


class ExampleTest(DataTest):
    """A test of examples as the steps make them."""

    reads: ClassVar[Reads] = "examples"

    sample: Annotated[int, Field(ge=1)] | Literal["all"] = SAMPLE
    """How many examples of each split are looked at, or `all`. Which ones is a matter of their names alone, so that every run looks at
    the same."""

    def features(self) -> tuple[str, ...]:
        """Returns the features that it looks at; none where it looks at a column of the table."""
        raise NotImplementedError

    def watch(self, known: Known) -> Watch:
        """Returns what watches the values."""
        raise NotImplementedError

    def in_memory(self, data: Listed, split: str) -> list[Array] | None:
        """Returns the values of all examples where none has to be read: of features that the listing holds and no step acts on."""
        found = [data.numbers(split, feature) for feature in self.features()]
        held = [values for values in found if values is not None]
        return held if len(held) == len(found) else None

    def problems(self, known: Known) -> Iterator[OpError]:
        for feature in self.features():
            problem = unknown_feature(known, self.splits(known.splits), feature)
            if problem is not None:
                yield problem


SLACK = 1e-6
"""The share of a range by which values may lie outside: what rounding does to them."""


class ValueTest(ExampleTest):
    """A test of numbers: those of a feature after the steps, or of a column of the table."""

    feature: str | None = None
    """The feature, as the steps make it: in `train` with its augmentation, as in the first epoch."""
    column: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)] | None = None
    """In place of `feature`, a column of the table, by its name or its number from 0, as it is stored; empty cells do not count."""

    @model_validator(mode="after")
    def _one(self) -> Any:
        if (self.feature is None) == (self.column is None):
            raise ValueError("give `feature` or `column`" + (", and not both" if self.feature is not None else ""))
        return self

    @property
    def called(self) -> str:
        """Names what it looks at."""
        return f"`{self.feature if self.feature is not None else self.column}`"

    def features(self) -> tuple[str, ...]:
        return () if self.feature is None else (self.feature,)

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        if self.column is not None and not known.source.has_columns():
            help_ = "give `feature`, which is the value after the steps"
            yield OpError("PG700", f"`{known.source.op}` is no table with a column `{self.column}`", field="column", help=help_)
        for name, t in known.source.infer().items():
            if name == self.feature and (kind_of(t).holds_classes or kind_of(t).counts):
                help_ = "`classes` and `balance` count classes" if kind_of(t).counts else "remove the test"
                yield OpError("PG700", f"`{name}` holds class indices, whose values say nothing", field="feature", help=help_)

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
                message = f"{data.keys(split)[i]!r} has {cell!r} in the column `{self.column}`, which is no number"
                raise OpError("PG702", message, field="column", help="`accepted` tests a column of text") from None
        return [values]


def check_within(within: Range, name: str) -> None:
    """Rejects bounds in the wrong order.

    Raises:
        ValueError: For those.
    """
    if within[0] > within[1]:
        raise ValueError(f"`{name}` is the least and the greatest value, in this order, got [{within[0]:g}, {within[1]:g}]")
