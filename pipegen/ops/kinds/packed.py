"""Holds some bytes for each record, where the listing has them and no file of the record's own, such as the outlines of its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.listing.base import Listing


@dataclass(frozen=True, eq=False)
class Packed:
    """A column of an encoded feature. It can be indexed by records, as an array can; what is taken shares the bytes.

    Attributes:
        values: The bytes of all records, uint8 `(bytes,)`.
        starts: Where those of each record begin, int64 `(n,)`.
        lengths: How many each has, int64 `(n,)`.
    """

    values: Any
    starts: Any
    lengths: Any

    @classmethod
    def hold(cls, parts: Sequence[bytes]) -> Packed:
        """Holds the bytes of each record."""
        import numpy as np

        from pipegen.ops.sources.listing.strings import aligned  # which tensors of every split then share

        lengths = np.array([len(part) for part in parts], np.int64)
        return cls(aligned([np.frombuffer(b"".join(parts), np.uint8)]), np.cumsum(lengths) - lengths, lengths)

    @property
    def dtype(self) -> Any:
        """Returns the dtype of a value: bytes."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns how many records there are; each has a text of bytes."""
        return (len(self.lengths),)

    def tobytes(self) -> bytes:
        """Returns the lengths and the bytes of the records one behind the other, for a digest."""
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
    """Returns columns of several sets of records as one, in that order."""
    import numpy as np

    from pipegen.ops.sources.listing.strings import aligned

    firsts = np.cumsum([0, *(len(column.values) for column in columns)])
    starts = [column.starts + first for column, first in zip(columns, firsts, strict=False)]
    return Packed(aligned([c.values for c in columns]), np.concatenate(starts), np.concatenate([c.lengths for c in columns]))


def counts_classes(listing: Listing, name: str) -> bool:
    """Returns whether what a listing holds in bytes has pixels that count the classes of its labels, so that these cannot be renamed."""
    return isinstance(listing.columns.get(name), Packed) and listing.type is not None and listing.type[name].classes is not None
