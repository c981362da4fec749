"""Columns of bytes for each record, from the listing and not from files, such as the outlines of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.lazy import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.listing.base import Listing


@dataclass(frozen=True, eq=False)
class Packed:
    """A column of an encoded feature. It can be indexed by records, like an array; the result shares the bytes."""

    values: Any  # the bytes of all records, uint8 `(bytes,)`
    starts: Any  # the offset of each record, int64 `(n,)`
    lengths: Any  # the number of bytes of each record, int64 `(n,)`

    @classmethod
    def hold(cls, parts: Sequence[bytes]) -> Packed:
        """Makes a column from the bytes of each record."""
        from pipegen.ops.sources.listing.strings import aligned

        lengths = np.array([len(part) for part in parts], np.int64)
        return cls(aligned([np.frombuffer(b"".join(parts), np.uint8)]), np.cumsum(lengths) - lengths, lengths)

    @property
    def dtype(self) -> Any:
        """The dtype of a value: bytes."""
        return self.values.dtype

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

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, records: Any) -> Packed:
        return Packed(self.values, self.starts[records], self.lengths[records])


def joined(columns: Sequence[Packed]) -> Packed:
    """Concatenates columns."""
    from pipegen.ops.sources.listing.strings import aligned

    firsts = np.cumsum([0, *(len(column.values) for column in columns)])
    starts = [column.starts + first for column, first in zip(columns, firsts, strict=False)]
    return Packed(aligned([c.values for c in columns]), np.concatenate(starts), np.concatenate([c.lengths for c in columns]))


def counts_classes(listing: Listing, name: str) -> bool:
    """Checks for a packed mask whose pixels are the classes of the labels, which then cannot be renamed."""
    return isinstance(listing.columns.get(name), Packed) and listing.type is not None and listing.type[name].classes is not None
