"""`zip`: records of ZIP archives, whose members are grouped by their names."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource, endings
from pipegen.ops.sources.records.zip_directory import zip_members

if TYPE_CHECKING:
    from pipegen.ops.sources.records.index import ShardRecords


class Zip(GroupedSource):
    """ZIP archives: members in one folder that have one name up to its first dot are a record, and what stands behind the dot is the key:
    `a/0001.jpg` and `a/0001.txt` hold `jpg` and `txt` of one record.

    The archives are mapped into memory and read in the graph, in any order. Deflated members are inflated there, and their checksums
    compared; those of stored members are not.
    """

    op: ClassVar[str] = "zip"
    suffixes: ClassVar[tuple[str, ...]] = (".zip",)
    indexed_from: ClassVar[int] = 2

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Read the table of contents, and of each member the length of its own header."""
        members, damage = zip_members(path, size)
        return self.grouped(members, damage, adjacent=False)

    def keys_in(self, path: str) -> list[str]:
        members, _ = zip_members(path, os.path.getsize(path))
        return endings(members)

    def unpacked_member(self, content: bytes, check: int) -> bytes:
        return unpacked_member(content, check)


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
