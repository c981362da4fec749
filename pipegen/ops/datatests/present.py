"""`present`: every example has a key."""

from __future__ import annotations

from pydantic import Field

from pipegen.ops.testing.base import listed_splits, many, named
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.ops.testing.keys import KeyTest


class Present(KeyTest):
    """Looks for examples without a key, which are empty cells of a table or paths without a match, and for keys that no example has."""

    op = "present"
    examples = ("present: image_id", "present: {key: site, values: [bern, basel]}")

    values: list[str] = Field(default=[], min_length=1)
    """Keys that some example of these splits must have."""

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        without: list[str] = []
        have: set[str] = set()
        total = 0
        for split in splits:
            keys = self.looked_up(data, split)
            total += len(keys)
            have.update(keys)
            names = data.keys(split)
            without += [names[i] for i, key in enumerate(keys) if not key]
        found = []
        if without:
            verb = "has" if len(without) == 1 else "have"
            message = f"{many(len(without), 'example')} of {total:,} {verb} no {self.called}: {named(without)}"
            found.append(Failure("PG715", message, self.field, ("fill the cells in, or leave such examples out",)))
        missing = [value for value in self.values if value not in have]
        if missing:
            message = f"no example in {listed_splits(splits)} has {self.called} {named(missing)}"
            found.append(Failure("PG715", message, "values", ("add the data, or take it off the list",)))
        return Outcome(f"{many(total - len(without), 'example')} with a key in {listed_splits(splits)}", tuple(found))
