"""`unique`: no key occurs twice."""

from __future__ import annotations

from pipegen.ops.testing.base import listed_splits, many, named
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.ops.testing.keys import KeyTest


class Unique(KeyTest):
    """Looks for keys that several examples have: of a split, or of several together; without `split`, of all. Examples without a key
    do not count."""

    op = "unique"
    examples = ("unique: image_id", "unique: {path: '([^/]+)$'}")

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        seen: dict[str, int] = {}
        for split in splits:
            for key in self.looked_up(data, split):
                if key:
                    seen[key] = seen.get(key, 0) + 1
        twice = [key for key, n in seen.items() if n > 1]
        looked = f"{many(len(seen), 'key')} in {listed_splits(splits)}"
        if not twice:
            return Outcome(looked)
        extra = sum(seen[key] - 1 for key in twice)
        verb = "occurs" if len(twice) == 1 else "occur"
        message = (
            f"{many(len(twice), 'value')} of {self.called} {verb} more than once, in {many(extra, 'example')} too many: {named(twice)}"
        )
        help_ = "remove the repeated examples; where repeats are meant, as several pictures of one subject, ask for `disjoint` splits"
        return Outcome(looked, (Failure("PG714", message, self.field, (help_,)),))
