"""Walks a folder of images in an archive, as if it were unpacked."""

from __future__ import annotations

import stat
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.ops.sources.folders.scan import Scan
from pipegen.ops.sources.records.archives.reader import MemberReader

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.ops.sources.listing.strings import Strings
    from pipegen.ops.sources.records.archives.archive import Archive


class ArchiveScan(Scan):
    """One walk below a folder of an archive. It holds no links that could be followed."""

    def __init__(self, archive: Archive, **about: Any) -> None:
        """Start as `Scan`."""
        super().__init__(archive.root, **about)
        self.archive = archive

    @cached_property
    def _folders(self) -> dict[str, dict[str, _Entry]]:
        """Lists what lies directly in each folder, by name."""
        found: dict[str, dict[str, _Entry]] = {"": {}}
        sizes = self.archive.members.sizes.tolist()
        for path, number in self.archive.numbers.items():
            folder, _, name = path.rpartition("/")
            if folder not in found:
                _add_folder(found, folder)
            found[folder][name] = _Entry(name, path, sizes[number])
        return found

    def entries(self, folder: str) -> Any:
        return nullcontext(self._folders.get(folder, {}).values())

    def head(self, entry: Any, count: int) -> bytes:
        return self.archive.read(self.archive.numbers[entry.path], count)[:count]

    def has_folder(self, folder: str) -> bool:
        """Returns whether the archive has such a folder."""
        return folder in self._folders

    def reader(self, paths: Strings) -> Reader:
        """Returns what reads these members by their numbers."""
        return MemberReader(self.archive, [self.archive.numbers[path] for path in paths])


def _add_folder(found: dict[str, dict[str, _Entry]], folder: str) -> None:
    """Adds a folder, and those that it lies in, to what lies in each."""
    missing = []
    while folder not in found:
        missing.append(folder)
        folder = folder.rpartition("/")[0]
    for own in reversed(missing):
        upper, _, name = own.rpartition("/")
        found[own] = {}
        found[upper].setdefault(name, _Entry(name, own, None))


class _Stat(NamedTuple):
    """Says of a member what `os.stat` says of a file, as far as a walk asks."""

    st_size: int
    st_mode: int = stat.S_IFREG


class _Entry(NamedTuple):
    """Says of a member, or of a folder that members lie in, what `os.DirEntry` says of a file."""

    name: str
    path: str
    size: int | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.size is None

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> _Stat:
        return _Stat(self.size or 0)
