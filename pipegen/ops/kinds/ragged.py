"""Columns with any number of items for each record, concatenated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.kinds import packed
from pipegen.ops.kinds.packed import Packed


@dataclass(frozen=True, eq=False)
class Ragged:
    """A column of a ragged feature. It can be indexed by records, like an array."""

    values: Any  # the items of all records, a NumPy array `(items, ...)`
    lengths: Any  # the number of items of each record, int64 `(n,)`

    @property
    def dtype(self) -> Any:
        """The dtype of an item."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of records and items, and the shape of an item."""
        return (len(self.lengths), *self.values.shape)

    def tobytes(self) -> bytes:
        """Serialises items and lengths, for a digest."""
        return bytes(self.lengths.tobytes() + self.values.tobytes())

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, records: Any) -> Ragged:
        starts, lengths = (np.cumsum(self.lengths) - self.lengths)[records], self.lengths[records]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged(self.values[np.repeat(starts, lengths) + within], lengths)


def joined(columns: Sequence[Any]) -> Any:
    """Concatenates columns; raises `ValueError` if rows differ in shape."""
    if isinstance(columns[0], Packed):
        return packed.joined(columns)
    if not isinstance(columns[0], Ragged):
        return np.concatenate(columns)
    return Ragged(np.concatenate([c.values for c in columns]), np.concatenate([c.lengths for c in columns]))


def changed(column: Any, change: Callable[[Any], Any]) -> Any:
    """Applies a function to the numbers of a column, or to the items of a ragged one."""
    return Ragged(change(column.values), column.lengths) if isinstance(column, Ragged) else change(column)


def spread(values: Any, records: Any, total: int) -> Any:
    """Returns a column of `total` records that has these values at some of them, int64 `(n,)`; zeros, or no items, at others."""
    if isinstance(values, Ragged):
        return Ragged(values.values, spread(values.lengths, records, total))
    every: Any = np.zeros((total, *values.shape[1:]), values.dtype)
    every[records] = values
    return every


def most_items(items: Ragged) -> int:
    """Returns the largest number of items of a record, at least 1."""
    return max(1, int(items.lengths.max(initial=0)))
