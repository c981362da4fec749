"""Finds the archive that a path leads into, and lists what lies there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.mounts import Opened
from pipegen.ops.sources.records.findings import KINDS, finding_notes, tallied, unpacked_name
from pipegen.ops.sources.records.members import unpacked_member
from pipegen.ops.sources.records.paths import Found
from pipegen.ops.sources.records.tar_headers import tar_members
from pipegen.ops.sources.records.zip_directory import zip_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.records.members import Members

LISTS = {".zip": zip_members, ".tar": tar_members}
"""By the ending of an archive, what lists its members."""


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive of files.

    Attributes:
        file: The archive itself.
        inner: The folder in it that counts; empty for all of it.
        members: All of its files.
        numbers: The numbers of those below that folder, by their paths relative to it.
        damage: What is wrong behind the last member; empty where nothing is.
        notes: What else was found in that folder, such as links that lead nowhere.
    """

    file: Found
    inner: str
    members: Members
    numbers: Mapping[str, int]
    damage: str
    notes: tuple[Note, ...] = ()

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
        _check_packed(path, field)
        return None
    file, inner = found
    try:
        about = os.stat(file)
        listed, damage = LISTS[os.path.splitext(file)[1].lower()](file, about.st_size)
    except OSError as error:
        raise OpError("PG430", f"{file!r} cannot be read: {(error.strerror or str(error)).lower()}", field=field) from None
    before = f"{inner}/" if inner else ""
    seen = [(kind, name) for kind, name in listed.seen if KINDS[kind].severity == "error" or inside(name).startswith(before)]
    pairs = [*_clean(listed.names, seen)]
    every = dict(pairs)  # of members of one name the last counts, as it does where they are unpacked
    seen += [("twice", listed.names[number]) for name, number in pairs if every[name] != number and name.startswith(before)]
    notes = tuple(finding_notes([(file, tallied(seen))], field))
    if not every and damage:
        raise OpError("PG430", f"{file!r} is damaged {damage}", field=field, help="copy or download the archive again")
    if not every and (grave := next((note for note in notes if note.severity == "error"), None)) is not None:
        raise OpError(grave.code, grave.message, field=field, help=grave.help)
    numbers = {name[len(before) :]: number for name, number in every.items() if name.startswith(before)} if before else every
    if inner and not numbers:
        tops = sorted({name.split("/")[0] for name in every if "/" in name})
        help_ = f"it holds the folders {', '.join(map(repr, tops[:5]))}" if tops else "it holds no folders"
        raise OpError("PG401", f"there is no folder {inner!r} in {file!r}", field=field, help=help_)
    return Archive(Found(os.path.basename(file), file, about.st_size, about.st_mtime_ns), inner, listed, numbers, damage, notes)


def _check_packed(path: str, field: str) -> None:
    """Raises `PG430` where a path leads to or into a tar archive that is compressed."""
    parts = path.split("/")
    for i, part in enumerate(parts):
        if unpacked_name(part.lower()).endswith(".tar") and os.path.isfile(archive := "/".join(parts[: i + 1])):
            (note,) = finding_notes([(archive, {"compressed": (1, "")})], field)
            raise OpError(note.code, note.message, field=field, help=note.help)


def inside(name: str) -> str:
    """Returns the path that a member has where it is unpacked, below the folder of that; empty where it would lie outside."""
    parts = [part for part in name.split("/") if part not in (".", "")]
    return "/".join(parts) if ".." not in parts else ""


def _clean(names: Iterable[str], seen: list[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Yields the paths of the members that stay in the folder that they would be unpacked to, with their numbers; the others are `seen`."""
    for number, name in enumerate(names):
        around = f"/{name}/"
        if "//" not in around and "/." not in around:
            yield name, number
        elif path := inside(name):
            yield path, number
        else:
            seen.append(("outside", name))
