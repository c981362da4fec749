"""Describes the shards of a source: files that hold many records each, at one row of a few columns a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.errors import InternalError
from pipegen.ops.sources.strings import Strings

if TYPE_CHECKING:
    from pipegen.ops.sources.base import Listing
    from pipegen.ops.sources.strings import Ints


@dataclass(frozen=True, eq=False)
class Shards:
    """Says of each file of a listing, in its order, which records it holds.

    Attributes:
        rows: How many: int64 `(files,)`.
        numbers: What the reader knows each file as: int64 `(files,)`. They stay as they are where files are left out.
        block_rows: Of files that are read by blocks: how many records each block of a file holds, of which the last may hold fewer, int64
            `(files,)`. Without it a file is a block.
        digests: What identifies the content of each file, as far as the source has looked: a hash, or when it was written.
    """

    rows: Ints
    numbers: Ints
    digests: Strings
    block_rows: Ints | None = None

    def __post_init__(self) -> None:
        """Makes a column of digests that are none yet."""
        object.__setattr__(self, "digests", Strings.hold(self.digests))

    @property
    def total(self) -> int:
        """Counts the records."""
        return int(self.rows.sum())

    def take(self, files: Ints) -> Shards:
        """Returns those of some files."""
        blocks = None if self.block_rows is None else self.block_rows[files]
        return Shards(self.rows[files], self.numbers[files], self.digests.take(files), blocks)


def shards_of(listing: Listing) -> Shards:
    """Returns what the files of a listing hold, which are known to hold many records each."""
    if listing.shards is None:
        raise InternalError("records were looked for in shards, and each is a file of its own")
    return listing.shards


def listed_labels(listing: Listing) -> Ints | None:
    """Lists the class of every record in shards, int32; `None` without labels."""
    import numpy as np

    numbers, parts = shards_of(listing).numbers, listing.parts
    files = {"": slice(None)} if parts is None else {name: parts.records(name) for name in parts.names}  # one behind the other
    each = [listing.reader(name).labels(numbers[own]) for name, own in files.items()]
    known = [labels for labels in each if labels is not None]
    return np.concatenate(known) if len(known) == len(each) else None
