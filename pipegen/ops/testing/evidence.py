"""Holds what a test is given and what it says: the listed data, what is known before, how the data fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from pipegen.ops.sources.listing.base import Source
    from pipegen.types import ElementType

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
