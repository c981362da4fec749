"""`zip`: records of ZIP archives, whose members are grouped by their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource, endings
from pipegen.ops.sources.records.zip_directory import unpacked_member, zip_members

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
