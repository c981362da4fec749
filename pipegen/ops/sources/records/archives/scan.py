"""Walks a folder of images in an archive, as if it were unpacked."""

from __future__ import annotations

import os
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
            found.setdefault(folder, {})[name] = _Entry(name, path, sizes[number])
            while folder:
                upper, _, name = folder.rpartition("/")
                if name in found.setdefault(upper, {}):
                    break
                found[upper][name] = _Entry(name, folder, None)
                folder = upper
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


class _Entry(NamedTuple):
    """Says of a member, or of a folder that members lie in, what `os.DirEntry` says of a file."""

    name: str
    path: str
    size: int | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.size is None

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> os.stat_result:
        return os.stat_result((stat.S_IFREG, 0, 0, 1, 0, 0, self.size or 0, 0, 0, 0))
