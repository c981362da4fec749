"""`accepted`: a column holds nothing else."""

from __future__ import annotations

from collections import Counter

from pydantic import Field, field_validator, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.ops.testing.base import listed_splits, many, named
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.ops.testing.keys import KeyTest
from pipegen.patterns import compile_pattern


class Accepted(KeyTest):
    """Looks for keys that are not among those that are accepted. Examples without a key do not count; `present` finds them."""

    op = "accepted"
    bare = None
    examples = ("accepted: {key: site, values: [bern, basel]}", "accepted: {key: image_id, matches: 'IMG_\\d{4}'}")

    values: list[str] = Field(default=[], min_length=1)
    """The keys that are accepted."""
    matches: str | None = None
    """In place of `values`: a regular expression (RE2) that the whole of each key must match."""

    @field_validator("matches")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        if value is not None:
            compile_pattern(value)
        return value

    @model_validator(mode="after")
    def _some(self) -> Accepted:
        if bool(self.values) == (self.matches is not None):
            raise ValueError("give `values` or `matches`" + (", and not both" if self.values else ""))
        return self

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        counts = Counter(key for split in splits for key in self.looked_up(data, split) if key)
        pattern = compile_pattern(rf"\A(?:{self.matches})\z") if self.matches is not None else None
        values = set(self.values)
        wrong = [key for key in counts if (key not in values if pattern is None else pattern.search(key) is None)]
        seen = f"{many(len(counts), 'value')} in {listed_splits(splits)}"
        if not wrong:
            return Outcome(seen)
        examples = sum(counts[key] for key in wrong)
        what = "are not among the accepted ones" if len(wrong) > 1 else "is not among the accepted ones"
        if pattern is not None:
            what = f"{'do' if len(wrong) > 1 else 'does'} not match `{self.matches}`"
        message = f"{many(len(wrong), 'value')} of {self.called}, in {many(examples, 'example')}, {what}: {named(wrong)}"
        near = closest(wrong[0], self.values)
        help_ = (f"is {near!r} meant?",) if near else ()
        return Outcome(seen, (Failure("PG716", message, "matches" if pattern is not None else "values", help_),))
