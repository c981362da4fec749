"""Finds the archive that a path leads into, and lists what lies there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.mounts import Opened
from pipegen.ops.sources.records.members import unpacked_member
from pipegen.ops.sources.records.paths import Found
from pipegen.ops.sources.records.tar_headers import tar_members
from pipegen.ops.sources.records.zip_directory import zip_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipegen.ops.sources.records.members import Members

LISTS = {".zip": zip_members, ".tar": tar_members}
"""By the ending of an archive, what lists its members."""
_UP = ("..", "")


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive of files.

    Attributes:
        file: The archive itself.
        inner: The folder in it that counts; empty for all of it.
        members: All of its files.
        numbers: The numbers of those below that folder, by their paths relative to it.
        damage: What is wrong behind the last member; empty where nothing is.
    """

    file: Found
    inner: str
    members: Members
    numbers: Mapping[str, int]
    damage: str

    @property
    def root(self) -> str:
        """Returns the path of the folder, as if the archive were one."""
        return f"{self.file.path}/{self.inner}" if self.inner else self.file.path

    def read(self, number: int, most: int | None = None) -> bytes:
        """Reads a member; of one that is not compressed at `most` so many bytes.

        Raises:
            OSError: When it cannot be read, or is damaged.
        """
        members = self.members
        check = 0 if members.checks is None else int(members.checks[number])
        length = int(members.lengths[number])
        with Opened(self.file.path) as file:
            content = file.pread(length if most is None or check > 0 else min(most, length), int(members.offsets[number]))
        try:
            return unpacked_member(content, check)
        except ValueError as error:
            raise OSError(f"{self.file.path}/{members.names[number]}: {error}") from None


def split_path(path: str) -> tuple[str, str] | None:
    """Returns the archive that an absolute path leads to or into, and the path in it; `None` where it leads to neither."""
    archive, inner = path, ""
    while archive and not os.path.lexists(archive):
        upper, name = os.path.split(archive)
        if upper == archive:
            return None
        archive, inner = upper, f"{name}/{inner}" if inner else name
    known = os.path.splitext(archive)[1].lower() in LISTS and os.path.isfile(archive)
    return (archive, inner) if known else None


def open_archive(path: str, field: str = "path") -> Archive | None:
    """Lists the archive that an absolute path leads to or into; `None` where it leads to neither.

    Raises:
        OpError: `PG401` where the archive has no such folder, `PG430` where it cannot be read.
    """
    found = split_path(path)
    if found is None:
        return None
    file, inner = found
    try:
        about = os.stat(file)
        listed, damage = LISTS[os.path.splitext(file)[1].lower()](file, about.st_size)
    except OSError as error:
        raise OpError("PG430", f"{file!r} cannot be read: {(error.strerror or str(error)).lower()}", field=field) from None
    every = dict(_clean(listed.names))  # of members of one name the last counts, as it does for whoever unpacks them
    if not every and damage:
        raise OpError("PG430", f"{file!r} is damaged {damage}", field=field, help="copy or download the archive again")
    before = f"{inner}/" if inner else ""
    numbers = {name[len(before) :]: number for name, number in every.items() if name.startswith(before)} if before else every
    if inner and not numbers:
        tops = sorted({name.split("/")[0] for name in every if "/" in name})
        help_ = f"it holds the folders {', '.join(map(repr, tops[:5]))}" if tops else "it holds no folders"
        raise OpError("PG401", f"there is no folder {inner!r} in {file!r}", field=field, help=help_)
    return Archive(Found(os.path.basename(file), file, about.st_size, about.st_mtime_ns), inner, listed, numbers, damage)


def _clean(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yields the paths of the members that stay in the folder that they would be unpacked to, with their numbers."""
    for number, name in enumerate(names):
        inside = f"/{name}/"
        if "//" not in inside and "/." not in inside:
            yield name, number
            continue
        parts = [part for part in name.split("/") if part != "."]
        if parts and not any(part in _UP for part in parts):
            yield "/".join(parts), number
