"""`classes`: no class is missing, or too rare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.sources.listing.wording import quoted
from pipegen.ops.testing.base import many
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.ops.testing.labels import LabelTest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.testing.evidence import Counted

_SHOWN = 5


class Classes(LabelTest):
    """Counts the examples of every class, or of some, in each split. Bare, it says that no class is missing from any split."""

    op = "classes"
    examples = ("classes", "classes: {split: train, min: 100}", "classes: {names: [rose, tulip], min_share: 0.05}")

    names: list[str] | None = None
    """The classes that are meant; by default all."""
    min: Annotated[int, Field(ge=0)] = 1
    """The least number of examples of each of these classes, in each split."""
    max: Annotated[int, Field(ge=1)] | None = None
    """The greatest number of them."""
    min_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The least fraction of the examples of a split, or of the items on them, that each of these classes has."""
    max_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The greatest fraction."""

    @model_validator(mode="after")
    def _ordered(self) -> Classes:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"`max` is {self.max}, below `min`, which is {self.min}")
        return self

    def run(self, data: Listed) -> Outcome:
        found: list[Failure] = []
        seen = []
        for split in self.splits(data.known.splits):
            counted = data.class_counts(split, self.label(data.known) or "")
            _known_classes(self.names or (), counted.names)
            named = zip(counted.names, counted.counts, strict=True)
            of = {name: n for name, n in named if self.names is None or name in self.names}
            found += self._failures(split, of, counted)
            least, most = min(of.values(), default=0), max(of.values(), default=0)
            each = f"{least:,} to {many(most, counted.each)}" if least < most else many(most, counted.each)
            seen.append(f"{split}: {many(len(of), 'class', 'classes')} of {each}")
        return Outcome("; ".join(seen), tuple(found))

    def _failures(self, split: str, counts: dict[str, int], counted: Counted) -> list[Failure]:
        total, each = counted.total, counted.each
        missing = [name for name, n in counts.items() if n == 0 and self.min > 0]
        rare = {name: n for name, n in counts.items() if 0 < n < self.min}
        usual = {name: n for name, n in counts.items() if self.max is not None and n > self.max}
        shares = {name: n / total if total else 0.0 for name, n in counts.items()}
        low = {name: s for name, s in shares.items() if self.min_share is not None and s < self.min_share and name not in missing}
        high = {name: s for name, s in shares.items() if self.max_share is not None and s > self.max_share}
        found = []
        if missing:
            message = f"`{split}` has no {each} of {many(len(missing), 'class', 'classes')}: {quoted(missing)}"
            found.append(
                Failure(
                    "PG711",
                    message,
                    None,
                    ("add data of the class to this split; where not every class has to be there, `names` says which",),
                )
            )
        for some, field, said in ((rare, "min", f"fewer than {self.min:,} {each}s"), (usual, "max", f"more than {self.max} {each}s")):
            if some:
                found.append(Failure("PG710", f"`{split}` has {said} of {_counted(some)}", field))
        for few, field, bound in ((low, "min_share", self.min_share), (high, "max_share", self.max_share)):
            if few:
                word = "below" if field == "min_share" else "above"
                listed = _counted({name: f"{share:.4g}" for name, share in few.items()})
                found.append(Failure("PG710", f"in `{split}` the share of {listed} is {word} {bound:g}", field))
        return found


def _counted(counts: Mapping[str, object]) -> str:
    """Names some classes with a figure each: `'rose' (3), 'tulip' (5) and 2 more`."""
    shown = [f"{name!r} ({n})" for name, n in list(counts.items())[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else "")


def _known_classes(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Rejects classes that the data has not.

    Raises:
        OpError: `PG701`.
    """
    for name in wanted:
        if name not in names:
            near = closest(name, names)
            help_ = f"did you mean {near!r}?" if near else f"the classes are {quoted(names)}"
            raise OpError("PG701", f"there is no class {name!r}", field="names", help=help_)
