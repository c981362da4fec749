"""`examples`: how many there are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.ops.testing.base import DataTest, listed_splits, many
from pipegen.ops.testing.evidence import Failure, Listed, Outcome


class Examples(DataTest):
    """Counts the examples of a split, or of several together; without `split`, of all."""

    op = "examples"
    examples = ("examples: {split: train, min: 1000}", "examples: {split: test, share: [0.1, 0.2]}")

    min: Annotated[int, Field(ge=0)] | None = None
    """The least number of examples."""
    max: Annotated[int, Field(ge=0)] | None = None
    """The greatest number of examples."""
    share: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] | None = None
    """The least and the greatest fraction of the examples of all splits."""

    @model_validator(mode="after")
    def _bounded(self) -> Examples:
        if self.min is None and self.max is None and self.share is None:
            raise ValueError("give `min`, `max` or `share`")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`max` is {self.max}, below `min`, which is {self.min}")
        if self.share is not None and self.share[0] > self.share[1]:
            raise ValueError("`share` is the least and the greatest fraction, in this order")
        return self

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        n = sum(map(data.num_examples, splits))
        total = sum(map(data.num_examples, data.known.splits))
        where = f"{listed_splits(splits)} {'has' if len(splits) == 1 else 'have'}"
        found = []
        if self.min is not None and n < self.min:
            found.append(Failure("PG710", f"{where} {many(n, 'example')}, fewer than {self.min:,}", "min"))
        if self.max is not None and n > self.max:
            found.append(Failure("PG710", f"{where} {many(n, 'example')}, more than {self.max:,}", "max"))
        share = n / total if total else 0.0
        if self.share is not None and not self.share[0] <= share <= self.share[1]:
            bounds = f"{self.share[0]:g} to {self.share[1]:g}"
            message = f"{where} {n:,} of {many(total, 'example')}, a share of {share:.4g}, which is not in {bounds}"
            found.append(Failure("PG710", message, "share"))
        return Outcome(f"{many(n, 'example')} in {listed_splits(splits)}", tuple(found))
