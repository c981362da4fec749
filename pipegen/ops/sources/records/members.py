"""`Members`: the files of an archive, with names, places and checks."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pipegen.frozen import dataclass

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints, Strings


@dataclass(frozen=True, eq=False)
class Members:
    """The files of an archive, in its order.

    Attributes:
        names: Their paths in the archive.
        offsets: Start of the bytes of each, int64 `(n,)`.
        lengths: Stored bytes of each, int64 `(n,)`.
        checks: CRC-32 of the unpacked bytes and, above its 32 bits, their number, int64 `(n,)`; the complement (`~`) for members that are
            not compressed. `None` if the archive has none.
        seen: Pairs of kind and name of other findings, such as broken links; see `findings`.
    """

    names: Strings
    offsets: Ints
    lengths: Ints
    checks: Ints | None = None
    seen: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def take(self, places: Ints) -> Members:
        checks = self.checks[places] if self.checks is not None else None
        return Members(self.names.take(places).packed(), self.offsets[places], self.lengths[places], checks, self.seen)

    @property
    def sizes(self) -> Ints:
        """Unpacked bytes of each, int64 `(n,)`."""
        import numpy as np

        return self.lengths if self.checks is None else np.where(self.checks > 0, self.checks >> 32, self.lengths)


def unpacked_member(content: bytes, check: int, *, whole: bool = False) -> bytes:
    """Decompresses a member; see `Members.checks`. With `whole`, checks the checksum of stored members, too.

    Raises:
        ValueError: The member is damaged.
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
