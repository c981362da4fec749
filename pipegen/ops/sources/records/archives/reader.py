"""Members of an archive read as files in the graph: stored ones in place, the others inflated."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.sources.records.index import RecordIndex
from pipegen.ops.sources.records.reader import MappedReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.archives.archive import Archive

_CHECK = "check"


class MemberReader(MappedReader):
    """A reader of members of one archive by number, each with one feature.

    Args:
        archive: The archive.
        records: The members that are records, in source order.
    """

    numbered: ClassVar[bool] = True
    archived: ClassVar[bool] = True

    def __init__(self, archive: Archive, records: Sequence[int]) -> None:
        import numpy as np

        self._verifies = False
        self.checksums = "those of headers, since the format has no others" if archive.members.checks is None else "those of each member"
        self._archive, self._records = archive, np.asarray(records, np.int64)
        members, own = archive.members, self._records
        checks: Ints = np.zeros(len(own), np.int64) if members.checks is None else members.checks[own]
        lengths: Ints = np.stack([members.lengths[own], np.zeros(len(own), np.int64)], 1).astype(np.int32)
        index = RecordIndex(np.array([0, len(own)], np.int64), np.stack([members.offsets[own], checks], 1), lengths, ("",), ("",))
        super().__init__([archive.file], index, ("", _CHECK), {})
        self.fetches = False  # its `Read` has no `ahead`

    def verifying(self) -> MemberReader:
        """Returns a reader that also checks the checksums of uncompressed members."""
        made = copy(self)
        made._verifies = True
        return made

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.mapped import alone

        read = alone(super().open_together((feature,), ram_budget, hold), feature)
        return lambda row: read(row * 0, row)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        """Returns a function for several features, though a record has only one."""
        together = super().open_together(features, ram_budget, hold)
        return lambda names, row: together(names, row * 0, row)

    def parts_of(self, features: Sequence[str]) -> tuple[str, ...]:
        return ("",)

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        from pipegen.ops.lowering.record_values import member_content

        checks = self.index.offsets[:, 1]
        packed = bool(((checks != 0) if self._verifies else (checks > 0)).any())
        content = member_content(parts[""], places[_CHECK][0] if packed else None, whole=self._verifies)
        return dict.fromkeys(features, content)

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return [self._archive.read(int(self._records[row])) for row in place[0].tolist()]
