"""Finds the archive that a path leads into, and lists its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.frozen import dataclass
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
"""Functions that list the members of an archive, by file ending."""


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive of files.

    Attributes:
        file: The archive itself.
        inner: The folder in it that is read; empty for all.
        members: All of its files.
        numbers: The numbers of those below that folder, by relative path.
        damage: Damage after the last member, or "".
        notes: Other findings in that folder, such as broken links.
    """

    file: Found
    inner: str
    members: Members
    numbers: Mapping[str, int]
    damage: str
    notes: tuple[Note, ...] = ()

    @property
    def root(self) -> str:
        """The path of the folder, as if unpacked."""
        return f"{self.file.path}/{self.inner}" if self.inner else self.file.path

    def read(self, number: int, most: int | None = None) -> bytes:
        """Reads a member, at most `most` bytes of an uncompressed one.

        Raises:
            OSError: The member cannot be read or is damaged.
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
    """Splits an absolute path that leads to or into an archive into the archive and the path in it; else `None`."""
    archive, inner = path, ""
    while archive and not os.path.lexists(archive):
        upper, name = os.path.split(archive)
        if upper == archive:
            return None
        archive, inner = upper, f"{name}/{inner}" if inner else name
    known = os.path.splitext(archive)[1].lower() in LISTS and os.path.isfile(archive)
    return (archive, inner) if known else None


def open_archive(path: str, field: str = "path") -> Archive | None:
    """Lists the archive that an absolute path leads to or into, if any.

    Raises:
        OpError: `PG401` if the archive lacks the folder, `PG430` if it cannot be read.
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
    every = dict(pairs)  # the last member of a name wins, as when unpacking
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
        raise OpError("PG401", f"the folder {inner!r} is missing in {file!r}", field=field, help=help_)
    return Archive(Found(os.path.basename(file), file, about.st_size, about.st_mtime_ns), inner, listed, numbers, damage, notes)


def _check_packed(path: str, field: str) -> None:
    """Raises `PG430` if a path leads to or into a compressed tar archive."""
    parts = path.split("/")
    for i, part in enumerate(parts):
        if unpacked_name(part.lower()).endswith(".tar") and os.path.isfile(archive := "/".join(parts[: i + 1])):
            (note,) = finding_notes([(archive, {"compressed": (1, "")})], field)
            raise OpError(note.code, note.message, field=field, help=note.help)


def inside(name: str) -> str:
    """Normalises the path of a member; empty if it leads outside."""
    parts = [part for part in name.split("/") if part not in (".", "")]
    return "/".join(parts) if ".." not in parts else ""


def _clean(names: Iterable[str], seen: list[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Yields normalised paths and numbers of members; those that lead outside go to `seen`."""
    for number, name in enumerate(names):
        around = f"/{name}/"
        if "//" not in around and "/." not in around:
            yield name, number
        elif path := inside(name):
            yield path, number
        else:
            seen.append(("outside", name))
