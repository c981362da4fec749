"""`disjoint`: no key occurs in two splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.testing.base import listed_splits, many, named
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.ops.testing.keys import KeyTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.testing.evidence import Known


class Disjoint(KeyTest):
    """Looks for keys that two splits share, such as a patient with pictures in both. Examples without a key do not count."""

    op = "disjoint"
    examples = ("disjoint: patient", "disjoint: {path: '^(patient_\\d+)/', split: [train, test]}")

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        yield from needs_two_splits(self.op, self.splits(known.splits), given=self.split is not None)

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        keys = {split: dict.fromkeys(key for key in self.looked_up(data, split) if key) for split in splits}
        found = []
        for i, first in enumerate(splits):
            for second in splits[i + 1 :]:
                shared = [key for key in keys[first] if key in keys[second]]
                if shared:
                    what = f"{many(len(shared), 'value')} of {self.called} {'is' if len(shared) == 1 else 'are'}"
                    message = f"{what} in both `{first}` and `{second}`: {named(shared)}"
                    found.append(Failure("PG717", message, self.field, (_help(self, data.known),)))
        return Outcome(f"{many(len(set().union(*keys.values())), 'key')} in {listed_splits(splits)}", tuple(found))


def _help(test: Disjoint, known: Known) -> str:
    """Says how the keys stay apart: where the data itself says which split a record is in, only the data can."""
    column = test.path is None and test.key not in known.source.infer()
    if known.source.split_names() is not None or not (column or test.path is not None):
        return "take them out of one of the splits"
    group = test.key if test.path is None else "{{path: '{}'}}".format(test.path.replace("'", "''"))
    return f"`splits: {{group: {group}}}` keeps what belongs together in one split"


def needs_two_splits(op: str, splits: tuple[str, ...], *, given: bool) -> Iterator[OpError]:
    """Yields the error for a test between splits that is given one."""
    if len(splits) < 2:
        help_ = "name two splits or more" if given else "remove the test, or deal the data out with `splits`"
        message = f"`{op}` compares splits, and there is only `{splits[0]}`"
        yield OpError("PG700", message, field="split" if given else None, help=help_)
