"""Describes the shards of a source: files that hold many records each, at one row of a few columns a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints


@dataclass(frozen=True, eq=False)
class Shards:
    """Says of each file of a listing, in its order, which records it holds.

    Attributes:
        rows: How many: int64 `(files,)`.
        numbers: What the reader knows each file as: int64 `(files,)`. They stay as they are where files are left out.
        block_rows: Of files that are read by blocks: how many records each block of a file holds, of which the last may hold fewer, int64
            `(files,)`. Without it a file is a block.
        offsets: Where only a part of a file counts: the number of the first record that does, int64 `(files,)`. A record keeps the number
            that it has in its file, and a file may be listed again with another part.
        kept: Where single records of a file do not count: which do, bool, a file's records after another's.
        digests: What identifies the content of each file, as far as the source has looked: a hash, or when it was written.
    """

    rows: Ints
    numbers: Ints
    digests: Strings
    block_rows: Ints | None = None
    offsets: Ints | None = None
    kept: Ints | None = None

    def __post_init__(self) -> None:
        """Makes a column of digests that are none yet."""
        object.__setattr__(self, "digests", Strings.hold(self.digests))

    @property
    def total(self) -> int:
        """Counts the records, also those that do not count."""
        return int(self.rows.sum())

    @property
    def ignored(self) -> int:
        """Counts the records that do not count."""
        return 0 if self.kept is None else int((~self.kept).sum())

    def take(self, files: Ints) -> Shards:
        """Returns those of some files."""
        blocks, offsets = (None if column is None else column[files] for column in (self.block_rows, self.offsets))
        kept = self.kept_rows(files, self.rows[files])
        return Shards(self.rows[files], self.numbers[files], self.digests.take(files), blocks, offsets, kept)

    def kept_rows(self, files: Ints, rows: Ints, offsets: Ints | None = None) -> Ints | None:
        """Returns which records of some files count, of each so many from an offset on."""
        import numpy as np

        if self.kept is None:
            return None
        ends = np.cumsum(rows)
        firsts = (np.cumsum(self.rows) - self.rows)[files] + (0 if offsets is None else offsets)
        return self.kept[np.arange(ends[-1] if len(ends) else 0) + np.repeat(firsts - (ends - rows), rows)]
