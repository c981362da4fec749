"""Holds the members of an archive: their names, where their bytes lie, and what is to come out of them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints, Strings


@dataclass(frozen=True, eq=False)
class Members:
    """Holds the files of an archive, in its order.

    Attributes:
        names: Their paths in there.
        offsets: Where the bytes of each begin, int64 `(n,)`.
        lengths: How many are stored, int64 `(n,)`.
        checks: What is known of the bytes that are to come out, int64 `(n,)`: their CRC-32 and, above its 32 bits, how many they are; of
            a member that is stored as it is, the complement of that (`~`). `None` where the archive knows nothing.
        seen: What else was found, such as links that lead nowhere: the kind, see `findings`, and the name.
    """

    names: Strings
    offsets: Ints
    lengths: Ints
    checks: Ints | None = None
    seen: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def take(self, places: Ints) -> Members:
        """Returns some of them."""
        checks = self.checks[places] if self.checks is not None else None
        return Members(self.names.take(places).packed(), self.offsets[places], self.lengths[places], checks, self.seen)

    @property
    def sizes(self) -> Ints:
        """Returns the bytes that come out of each, int64 `(n,)`."""
        import numpy as np

        return self.lengths if self.checks is None else np.where(self.checks > 0, self.checks >> 32, self.lengths)


def endings(members: Members) -> list[str]:
    """Lists the endings of the first members of an archive, for messages."""
    return sorted({name.rpartition("/")[2].partition(".")[2] for name in members.names[:1000]})


def unpacked_member(content: bytes, check: int, *, whole: bool = False) -> bytes:
    """Returns the bytes of a member; see `Members.checks`. With `whole`, the checksum of one that is stored as it is counts as well.

    Raises:
        ValueError: Where they are damaged.
    """
    found, expected = content, ~check if check < 0 else check
    if check > 0:
        try:
            found = zlib.decompress(content, -15, check >> 32)
        except zlib.error as error:
            raise ValueError(str(error)) from None
    if (check > 0 or whole) and check and zlib.crc32(found) != expected & 0xFFFFFFFF:
        raise ValueError(f"the checksum of a {'compressed' if check > 0 else 'stored'} member is wrong")
    return found
