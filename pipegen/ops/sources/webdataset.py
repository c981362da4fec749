"""`webdataset`: records of tar archives, members grouped by name."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource
from pipegen.ops.sources.shards.tar_headers import tar_members


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
    adjacent: ClassVar[bool] = True
    checksums: ClassVar[str] = "those of headers, since the format has no others"
    members = staticmethod(tar_members)
