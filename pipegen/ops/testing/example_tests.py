"""Defines what a test of examples is, and what watches them go by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from pipegen.ops.testing.base import DataTest, unknown_feature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from pipegen.errors import OpError
    from pipegen.ops.testing.base import Reads
    from pipegen.ops.testing.evidence import Known, Listed, Outcome

    Array = np.ndarray[Any, Any]

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
