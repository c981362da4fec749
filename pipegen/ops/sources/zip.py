"""`zip`: records of ZIP archives, members grouped by name."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.shards.zip_directory import zip_members
from pipegen.ops.sources.webdataset import GroupedSource


class Zip(GroupedSource):
    """ZIP archives. Members of one folder whose names agree up to the first dot form a record; the rest of the name is the key.
    `a/0001.jpg` and `a/0001.txt` are `jpg` and `txt` of one record.

    Archives are mapped into memory and read in the graph, in any order. Deflated members are inflated there and their checksums checked.
    Those of stored members are checked by `pipegen validate --data=all`, or with `verify`.
    """

    op: ClassVar[str] = "zip"
    adjacent: ClassVar[bool] = False
    checked: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".zip",)
    checksums: ClassVar[str] = "those of each member"
    members = staticmethod(zip_members)

    verify: bool = False
    """Whether reading checks the checksums of stored members, too."""
