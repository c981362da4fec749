"""Defines what a test of the data is: its arguments, what it must be given, and what it says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.model import Model
from pipegen.ops.transform import SplitName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.ops.testing.evidence import Known, Listed, Outcome
    from pipegen.types import FeatureType

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
