"""Walks a folder of images in an archive, and reads them, as if it were unpacked."""

from __future__ import annotations

import stat
from copy import copy
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pipegen.frozen import dataclass
from pipegen.ops.sources.folders.scan import Scan
from pipegen.ops.sources.folders.sniff import IMAGE_EXTENSIONS
from pipegen.ops.sources.records.index import RecordIndex
from pipegen.ops.sources.records.reader import MappedReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.ops.sources.folders.scan import Found
    from pipegen.ops.sources.listing.reader import Hold, Read, Reader, Together
    from pipegen.ops.sources.listing.strings import Ints, Strings
    from pipegen.ops.sources.records.archives.archive import Archive

_PLAIN = frozenset({f".{one}" for name in IMAGE_EXTENSIONS for one in (name, name.upper())})
"""Endings of most image files."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """Direct entries of a folder: files with their sizes, and folders."""

    files: dict[str, int] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)


class ArchiveScan(Scan):
    """A walk below a folder of an archive. It has no links to follow."""

    def __init__(self, archive: Archive, **about: Any) -> None:
        super().__init__(archive.root, **about)
        self.archive = archive

    @cached_property
    def _folders(self) -> dict[str, _Folder]:
        """The direct entries of each folder."""
        found = {"": _Folder()}
        sizes, last, files = self.archive.members.sizes.tolist(), "", found[""].files
        for path, number in self.archive.numbers.items():
            folder = path[: max(0, path.rfind("/"))]
            if folder != last:
                if folder not in found:
                    _add_folder(found, folder)
                last, files = folder, found[folder].files
            files[path] = sizes[number]
        return found

    def level(self, folder: str) -> tuple[list[str], list[str], list[Found]]:
        """Lists the direct entries of a folder; see `Scan.level`. An image ending is enough for an image."""
        own = self._folders.get(folder, _Folder())
        files, begin = own.files, len(folder) + 1 if folder else 0
        images: list[Found] = []
        if self.match is None and not self._every_file:
            images = [(path, size) for path, size in files.items() if path[path.rfind(".") :] in _PLAIN and path[begin] != "."]
            self._count(len(images))
        taken = {path for path, _ in images} if len(images) < len(files) else files.keys()
        entries = [_Entry(path[begin:], path, size) for path, size in files.items() if path not in taken]
        folders, _, others = self._sorted_out([*entries, *(_Entry(path[begin:], path, None) for path in own.folders)], folder)
        return folders, [], sorted(images + others)

    def head(self, entry: Any, count: int) -> bytes:
        return self.archive.read(self.archive.numbers[entry.path], count)[:count]

    def has_folder(self, folder: str) -> bool:
        return folder in self._folders

    def reader(self, paths: Strings) -> Reader:
        return MemberReader(self.archive, [self.archive.numbers[path] for path in paths])


def _add_folder(found: dict[str, _Folder], folder: str) -> None:
    """Adds a folder and its parents."""
    found[folder] = _Folder()
    while folder:
        upper = folder[: max(0, folder.rfind("/"))]
        known = upper in found
        found.setdefault(upper, _Folder()).folders[folder] = None
        folder = "" if known else upper


class _Stat(NamedTuple):
    """The parts of `os.stat_result` that a walk uses, for a member."""

    st_size: int
    st_mode: int = stat.S_IFREG


class _Entry(NamedTuple):
    """The parts of `os.DirEntry` that a walk uses, for a member or a folder."""

    name: str
    path: str
    size: int | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.size is None

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> _Stat:
        return _Stat(self.size or 0)


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
        super().__init__([archive.file], index, ("", "check"), {})
        self.fetches = False  # its `Read` has no `ahead`

    def verifying(self) -> MemberReader:
        """Returns a reader that also checks the checksums of uncompressed members."""
        made = copy(self)
        made._verifies = True
        return made

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import alone

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
        content = member_content(parts[""], places["check"][0] if packed else None, whole=self._verifies)
        return dict.fromkeys(features, content)

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return [self._archive.read(int(self._records[row])) for row in place[0].tolist()]
