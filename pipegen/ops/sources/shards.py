"""Describes the shards of a source: files that hold many records each, at one row of a few columns a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import InternalError
from pipegen.ops.sources.strings import Strings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.ops.sources.base import Listing
    from pipegen.ops.sources.strings import Ints


@dataclass(frozen=True, eq=False)
class Shards:
    """Says of each file of a listing, in its order, which records it holds.

    Attributes:
        rows: How many: int64 `(files,)`.
        numbers: What `read` and `labels` know each file as: int64 `(files,)`. They stay as they are where files are left out.
        digests: What identifies the content of each file, as far as the source has looked: a hash, or when it was written.
        read: Reads a feature of records as TensorFlow ops, from its name, the numbers of their files and their rows: int64 `(...)` each,
            scalars where the feature is encoded. It gives `(..., *shape)`.
        labels: Lists the class of every record of the files of these numbers, int32, one file after another, where a source has labels:
            asked for only where something depends on them before records are read.
        by_block: Whether reading one record takes as long as all those around it, so that an order must not jump about.
    """

    rows: Ints
    numbers: Ints
    digests: Strings
    read: Callable[[str, Any, Any], Any]
    labels: Callable[[Ints], Ints] | None = None
    by_block: bool = False

    def __post_init__(self) -> None:
        """Makes a column of digests that are none yet."""
        object.__setattr__(self, "digests", Strings.hold(self.digests))

    @property
    def total(self) -> int:
        """Counts the records."""
        return int(self.rows.sum())

    def take(self, files: Ints) -> Shards:
        """Returns those of some files."""
        return replace(self, rows=self.rows[files], digests=self.digests.take(files), numbers=self.numbers[files])

    def listed_labels(self) -> Ints | None:
        """Lists the class of every record, int32; `None` without labels."""
        return None if self.labels is None else self.labels(self.numbers)


def shards_of(listing: Listing) -> Shards:
    """Returns what the files of a listing hold, which are known to hold many records each."""
    if listing.shards is None:
        raise InternalError("records were looked for in shards, and each is a file of its own")
    return listing.shards
