"""Columns, the values of a field for all records: a number of each, or any number of items or of bytes, such as outlines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.strings import Ints, aligned
from pipegen.types import FeatureType

Place: TypeAlias = "Callable[[int], str]"  # from the number of a record to the name of its place, for messages


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a feature for every record."""

    values: Any  # an array with a row for each record
    type: FeatureType  # the type of a row
    classes: tuple[str, ...] = ()  # the classes of a label
    stays: Any = None  # false for records that are left out, bool `(n,)`; `None` to keep all
    notes: tuple[Any, ...] = ()  # findings about the values


class _OfLengths:
    """A column of records of different lengths."""

    values: Any
    lengths: Any

    @property
    def dtype(self) -> Any:
        """The dtype of an item; of a byte if records are bytes."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, eq=False)
class Packed(_OfLengths):
    """A column of an encoded feature. It can be indexed by records, like an array; the result shares the bytes."""

    values: Any  # the bytes of all records, uint8 `(bytes,)`
    starts: Any  # the offset of each record, int64 `(n,)`
    lengths: Any  # the number of bytes of each record, int64 `(n,)`

    @classmethod
    def hold(cls, parts: Sequence[bytes]) -> Packed:
        """Makes a column from the bytes of each record."""
        lengths = np.array([len(part) for part in parts], np.int64)
        return cls(aligned([np.frombuffer(b"".join(parts), np.uint8)]), np.cumsum(lengths) - lengths, lengths)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of records; each is one value."""
        return (len(self.lengths),)

    def tobytes(self) -> bytes:
        """Serialises lengths and bytes, for a digest."""
        return bytes(self.lengths.tobytes()) + b"".join(self.record(i) for i in range(len(self)))

    def record(self, i: int) -> bytes:
        """Returns the bytes of one record."""
        at = int(self.starts[i])
        return bytes(self.values[at : at + int(self.lengths[i])].data)

    def __getitem__(self, records: Any) -> Packed:
        return Packed(self.values, self.starts[records], self.lengths[records])


@dataclass(frozen=True, eq=False)
class Ragged(_OfLengths):
    """A column of a ragged feature. It can be indexed by records, like an array."""

    values: Any  # the items of all records, a NumPy array `(items, ...)`
    lengths: Any  # the number of items of each record, int64 `(n,)`

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of records and items, and the shape of an item."""
        return (len(self.lengths), *self.values.shape)

    def tobytes(self) -> bytes:
        """Serialises items and lengths, for a digest."""
        return bytes(self.lengths.tobytes() + self.values.tobytes())

    def __getitem__(self, records: Any) -> Ragged:
        starts, lengths = (np.cumsum(self.lengths) - self.lengths)[records], self.lengths[records]
        return Ragged(self.values[np.repeat(starts, lengths) + within(lengths)], lengths)

    def place(self, item: int) -> tuple[int, int]:
        """Returns the record of an item, and its number in it."""
        ends = np.cumsum(self.lengths)
        record = int(np.searchsorted(ends, item, side="right"))
        return record, item - int(ends[record] - self.lengths[record])


def joined(columns: Sequence[Any]) -> Any:
    """Concatenates columns; raises `ValueError` if rows differ in shape."""
    if not isinstance(columns[0], (Packed, Ragged)):
        return np.concatenate(columns)
    values, lengths = [c.values for c in columns], np.concatenate([c.lengths for c in columns])
    if isinstance(columns[0], Ragged):
        return Ragged(np.concatenate(values), lengths)
    firsts = np.cumsum([0, *map(len, values)])
    return Packed(aligned(values), np.concatenate([c.starts + first for c, first in zip(columns, firsts, strict=False)]), lengths)


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


def within(lengths: Ints) -> Ints:
    """Numbers the items of each record from 0, int64 `(items,)`."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def counted_up(lengths: Ints) -> Ragged:
    """Returns the numbers of the items of each record in a mask, from 1."""
    return Ragged((within(lengths) + 1).astype(np.float32), np.asarray(lengths, np.int64))


def classes_used(column: Any, names: tuple[str, ...]) -> set[str]:
    """Returns the classes of a column of labels that some row has."""
    values = column.values if isinstance(column, Ragged) else column
    used = values.any(0).nonzero()[0] if values.ndim == 2 else np.unique(values)
    return {names[i] for i in used.tolist()}


def with_classes(column: Any, own: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Renumbers labels with their own classes by another list, which has all used ones."""
    index = {name: i for i, name in enumerate(names)}
    if isinstance(column, Ragged):
        return Ragged(with_classes(column.values, own, names), column.lengths)
    if column.ndim == 1:
        return np.array([index.get(name, -1) for name in own], column.dtype)[column]
    values: Any = np.zeros((len(column), len(names)), np.uint8)
    for i, name in enumerate(own):
        if name in index:
            values[:, index[name]] = column[:, i]
    return values
