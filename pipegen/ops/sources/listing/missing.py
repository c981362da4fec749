"""Records whose files do not exist: sources list them with all others, and `errors.missing` decides what happens to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.strings import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """Records that lack a file, found in one place of a source.

    Attributes:
        code: The code of the finding.
        keys: The name of each in `errors.exclude`: its key; of a file that belongs to no record, its path relative to the listing's root.
        example: Describes one of them, by its number among the keys: which file is missing, and where it is named.
        records: The place of each in the listing, rising; `None` for files that belong to no record.
        what: The word for one of them, and for several.
        lack: What they lack.
        help: What to do besides leaving them out.
        field: The argument of the source that they concern; see `Note`.
    """

    code: str
    keys: Strings
    example: Callable[[int], str]
    records: Ints | None
    what: tuple[str, str]
    lack: str
    help: tuple[str, ...] = ()
    field: str | None = None

    def __post_init__(self) -> None:
        """Makes a column of the keys."""
        object.__setattr__(self, "keys", Strings.hold(self.keys))

    def only(self, kept: Ints) -> Missing:
        """Keeps some of them, given by their numbers among the keys."""
        numbers, example = kept.tolist(), self.example
        records = None if self.records is None else self.records[kept]
        return replace(self, keys=self.keys.take(kept), records=records, example=lambda i: example(numbers[i]))

    def renamed(self, named: Callable[[str], str]) -> Missing:
        """Puts other names for places into what is said of them."""
        example = self.example
        return replace(self, example=lambda i: named(example(i)), help=tuple(map(named, self.help)))

    def taken(self, place: Ints) -> Missing:
        """Follows a listing of which records are taken: `place` has the new place of each record, -1 for those that are not taken."""
        if self.records is None:
            return self
        kept = (place[self.records] >= 0).nonzero()[0]
        own = self.only(kept)
        return replace(own, records=place[own.records])

    def within(self, part: str, start: int, before: str, field: str | None, *, rooted: bool) -> Missing:
        """Follows a listing that becomes a part of a larger one.

        Args:
            part: The name of the part, with which sentences begin.
            start: The place of its first record there.
            before: What keys begin with there.
            field: The argument of the larger source.
            rooted: Whether keys are those of the larger listing already.
        """
        example = self.example
        return replace(
            self,
            keys=self.keys if rooted else self.keys.below(before),
            records=None if self.records is None else self.records + start,
            example=(lambda i: f"`{part}`: {example(i)}") if part else example,
            field=field,
        )


def taken(groups: Sequence[Missing], records: Ints, total: int) -> tuple[Missing, ...]:
    """Follows a listing of which records are taken, of so many."""
    if not groups:
        return ()
    import numpy as np

    place: Ints = np.full(total, -1, np.int64)
    place[records] = np.arange(len(records))
    return tuple(left for group in groups if len((left := group.taken(place)).keys))
