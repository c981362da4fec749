"""`webdataset`: records of tar archives, members grouped by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource
from pipegen.ops.sources.records.members import endings
from pipegen.ops.sources.records.tar_headers import tar_members

if TYPE_CHECKING:
    from pipegen.ops.sources.records.index import ShardRecords


class WebDataset(GroupedSource):
    """Tar archives in the WebDataset layout. Consecutive members whose names agree up to the first dot form a record; the rest of the name
    is the key. `0001.jpg` and `0001.cls` are `jpg` and `cls` of one record.

    A key may name a field of a JSON member: `json.label`, `json.meta.site`, `json.boxes`. The field gives a label, a weight, a
    tensor, boxes or keypoints.

    Archives are mapped into memory and read in the graph, in any order. Indexing checks the checksums of all headers; the format has none
    for the contents.
    """

    op: ClassVar[str] = "webdataset"
    suffixes: ClassVar[tuple[str, ...]] = (".tar",)
    checked: ClassVar[bool] = False
    checksums: ClassVar[str] = "those of headers, since the format has no others"

    def index_shard(self, path: str, size: int) -> ShardRecords:
        members, damage = tar_members(path, size)
        return self.grouped(members, damage, adjacent=True)

    def keys_in(self, path: str) -> list[str]:
        members, _ = tar_members(path, os.path.getsize(path))
        return endings(members)
