"""`Shards`: files of many records each, described by one row of a few columns per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints


@dataclass(frozen=True, eq=False)
class Shards:
    """The records of each file of a listing, in its order."""

    rows: Ints  # number of records: int64 `(files,)`
    numbers: Ints  # the reader's number of each file, stable when files are left out: int64 `(files,)`
    digests: Strings  # identifies the content of each file: a hash, or its modification time
    block_rows: Ints | None = None
    """For files read by blocks: records per block, of which the last may have fewer, int64 `(files,)`. By default a file is one block."""
    offsets: Ints | None = None
    """The first record used, if only a part of a file is: int64 `(files,)`. Records keep their number in the file, and a file may be listed
    several times with different parts."""
    kept: Ints | None = None  # whether each record is used, bool, file after file; by default all are

    def __post_init__(self) -> None:
        object.__setattr__(self, "digests", Strings.hold(self.digests))

    @property
    def total(self) -> int:
        """Number of records, including ignored ones."""
        return int(self.rows.sum())

    @property
    def ignored(self) -> int:
        """Number of ignored records."""
        return 0 if self.kept is None else int((~self.kept).sum())

    def take(self, files: Ints) -> Shards:
        blocks, offsets = (None if column is None else column[files] for column in (self.block_rows, self.offsets))
        kept = self.kept_rows(files, self.rows[files])
        return Shards(self.rows[files], self.numbers[files], self.digests.take(files), blocks, offsets, kept)

    def kept_rows(self, files: Ints, rows: Ints, offsets: Ints | None = None) -> Ints | None:
        """Returns which records of some files are used, `rows` of each from `offsets` on."""
        return None if self.kept is None else self.kept[self.records(files, rows, offsets)]

    def records(self, files: Ints, rows: Ints, offsets: Ints | None = None) -> Ints:
        """Returns the numbers among all records of those of some files, `rows` of each from `offsets` on: int64 `(n,)`."""
        ends = np.cumsum(rows)
        firsts = (np.cumsum(self.rows) - self.rows)[files] + (0 if offsets is None else offsets)
        return np.arange(ends[-1] if len(ends) else 0) + np.repeat(firsts - (ends - rows), rows)
