"""Records whose files do not exist: sources list them with the others, and `errors.missing` decides on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.strings import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """Records that lack a file, found in one place of a source."""

    code: str  # the code of the finding
    keys: Strings  # the name of each in `errors.exclude`: its key, or, for a file without a record, its path relative to the listing's root
    example: Callable[[int], str]  # describes one of them, by its index in `keys`: which file is missing, and where it is named
    records: Ints | None  # the index of each in the listing, rising; `None` for files without a record
    what: tuple[str, str]  # the words for one of them and for several
    lack: str  # what they lack
    help: tuple[str, ...] = ()  # what to do instead of leaving them out
    field: str | None = None  # the argument of the source that they concern; see `Note`

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", Strings.hold(self.keys))

    def only(self, kept: Ints) -> Missing:
        """Keeps some of them, by their indices in `keys`."""
        numbers, example = kept.tolist(), self.example
        records = None if self.records is None else self.records[kept]
        return replace(self, keys=self.keys.take(kept), records=records, example=lambda i: example(numbers[i]))

    def renamed(self, named: Callable[[str], str]) -> Missing:
        """Rewrites the places named in its messages."""
        example = self.example
        return replace(self, example=lambda i: named(example(i)), help=tuple(map(named, self.help)))

    def taken(self, place: Ints) -> Missing:
        """Adapts to a listing of some records: `place` has the new index of each record, or -1."""
        if self.records is None:
            return self
        kept = (place[self.records] >= 0).nonzero()[0]
        own = self.only(kept)
        return replace(own, records=place[own.records])

    def within(self, part: str, start: int, before: str, field: str | None, *, rooted: bool) -> Missing:
        """Adapts to a listing that becomes a part of a larger one.

        Args:
            part: The name of the part, put in front of sentences.
            start: The index of its first record in the larger listing.
            before: The prefix of its keys there.
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
    """Adapts groups to a listing of some records, out of `total`."""
    if not groups:
        return ()
    place: Ints = np.full(total, -1, np.int64)
    place[records] = np.arange(len(records))
    return tuple(left for group in groups if len((left := group.taken(place)).keys))
