"""`webdataset`: records of tar archives, whose members are grouped by their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource
from pipegen.ops.sources.records.members import endings
from pipegen.ops.sources.records.tar_headers import tar_members

if TYPE_CHECKING:
    from pipegen.ops.sources.records.index import ShardRecords


class WebDataset(GroupedSource):
    """Tar archives as WebDataset has them: members that follow each other and have one name up to its first dot are a record, and what
    stands behind the dot is the key: `0001.jpg` and `0001.cls` hold `jpg` and `cls` of one record.

    A key may lead into a member that is JSON: `json.label`, `json.meta.site`, `json.boxes.0`. It gives a label, a weight or a tensor.

    The archives are mapped into memory and read in the graph, in any order. The checksums of all headers are compared when an archive
    is indexed; the format has none of the contents.
    """

    op: ClassVar[str] = "webdataset"
    suffixes: ClassVar[tuple[str, ...]] = (".tar",)
    indexed_from: ClassVar[int] = 2
    checked: ClassVar[bool] = False
    checksums: ClassVar[str] = "those of headers, since the format has no others"

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Walk from header to header."""
        members, damage = tar_members(path, size)
        return self.grouped(members, damage, adjacent=True)

    def keys_in(self, path: str) -> list[str]:
        members, _ = tar_members(path, os.path.getsize(path))
        return endings(members)
