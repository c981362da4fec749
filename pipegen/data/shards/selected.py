"""Says which records of which shards a split has, at nothing a record or at one bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.shards.bitmap import bitmap_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.data.shards.bitmap import Bitmap
    from pipegen.ops.sources.listing.strings import Strings

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Selected:
    """The records of a split, in stored order; a member is a record's number among them.

    Attributes:
        rows: Records in every shard of the source: int64 `(shards,)`.
        shards: The shards that the split has records of, rising: int64 `(m,)`.
        bitmap: Which of all records belong to the split; `None` where it has whole shards.
        offsets: The row that each shard begins with, where that is not 0 for all: int64 `(shards,)`.
    """

    rows: Array
    shards: Array
    bitmap: Bitmap | None = None
    offsets: Array | None = None

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def first(self) -> Array:
        """The number of each shard's first record among all: int64 `(shards + 1,)`, with the end."""
        return _cumulative(self.rows)

    @cached_property
    def starts(self) -> Array:
        """The first member of each of `shards`: int64 `(m + 1,)`, with the end."""
        if self.bitmap is None:
            return _cumulative(self.rows[self.shards])
        return np.append(self.bitmap.rank(self.first[self.shards]), len(self.bitmap))

    def locate(self, member: Array) -> tuple[Array, Array]:
        """Finds the shard and the row in it of members: int64 `(n,)` each."""
        shard, record = self._find(member)
        row = record - self.first[shard]
        return shard, row if self.offsets is None else row + self.offsets[shard]

    def numbers(self, member: Array) -> Array:
        """Finds the numbers of members among the records of all shards: int64 `(n,)`."""
        return self._find(member)[1]

    def _find(self, member: Array) -> tuple[Array, Array]:
        at = np.searchsorted(self.starts, member, side="right") - 1
        shard = self.shards[at]
        if self.bitmap is None:
            return shard, self.first[shard] + member - self.starts[at]
        return shard, self.bitmap.select(member)

    def among(self, kept: Array) -> Selected:
        """Returns those of them that are among some of all records, bool `(records,)`."""
        mine: Array = np.zeros(int(self.first[-1]), bool)
        mine[self.numbers(np.arange(len(self)))] = True
        return Selected(self.rows, self.shards, bitmap_of(mine & kept), self.offsets)

    def blocks(self, block_rows: Array | None) -> Array:
        """Returns the first member of each block, int64 with the end: of each shard, or of `block_rows` records of one."""
        if block_rows is None:
            return self.starts
        each = np.maximum(block_rows[self.shards], 1)
        before = (
            np.zeros_like(each) if self.offsets is None else self.offsets[self.shards] % each
        )  # rows of the first block that are cut off
        counts = -(-(self.rows[self.shards] + before) // each)
        number = np.arange(counts.sum()) - np.repeat(_cumulative(counts)[:-1], counts)
        within = np.maximum(number * np.repeat(each, counts) - np.repeat(before, counts), 0)
        if self.bitmap is None:
            return np.append(np.repeat(self.starts[:-1], counts) + within, self.starts[-1])
        return np.append(self.bitmap.rank(np.repeat(self.first[self.shards], counts) + within), len(self.bitmap))

    def gather(self, column: Array) -> Array:
        """Takes the split's part of a column with an entry for each record of the source."""
        if self.bitmap is not None:
            return column[np.unpackbits(self.bitmap.bits.reshape(-1), count=len(column), bitorder="little").view(bool)]
        return np.concatenate([column[self.first[s] : self.first[s + 1]] for s in self.shards] or [column[:0]])


@dataclass(frozen=True, eq=False)
class InShards:
    """Records that lie many in a file.

    Attributes:
        selected: Those of the split.
        bases: What the ids in each shard are made from, uint64 `(shards,)`.
        numbers: What the reader knows each file as, int64 `(shards,)`.
        files: The absolute paths of all files.
    """

    selected: Selected
    bases: Array
    numbers: Array
    files: Strings


class Names(Sequence[str]):
    """Names the records of a split when they are asked for: `FILE#ROW`."""

    def __init__(self, selected: Selected, name: Callable[[int], str]) -> None:
        self._selected = selected
        self._name = name

    def __len__(self) -> int:
        return len(self._selected)

    def __getitem__(self, member: int | slice) -> Any:
        if isinstance(member, slice):
            return [self[i] for i in range(*member.indices(len(self)))]
        if not 0 <= member < len(self):
            raise IndexError(member)
        shard, row = self._selected.locate(np.array([member]))
        return f"{self._name(int(shard[0]))}#{int(row[0])}"


def _cumulative(rows: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(rows, dtype=np.int64)])
