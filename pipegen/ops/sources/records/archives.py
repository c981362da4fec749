"""Folders of images in archives, read as if unpacked: finds the archive that a path leads into, lists its files, walks and reads them."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import Opened, content_of
from pipegen.ops.fields.notes import Note
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.sources.folders.scan import Found as Image
from pipegen.ops.sources.folders.scan import Scan
from pipegen.ops.sources.listing.base import Location
from pipegen.ops.sources.listing.reader import Reader
from pipegen.ops.sources.records.index import Indexed, RecordIndex
from pipegen.ops.sources.records.reader import MappedReader
from pipegen.ops.sources.shards.findings import KINDS, compression, finding_notes, tallied, unpacked_name
from pipegen.ops.sources.shards.members import Members, unpacked_member
from pipegen.ops.sources.shards.paths import Found
from pipegen.ops.sources.shards.tar_headers import tar_members
from pipegen.ops.sources.shards.zip_directory import zip_members

LISTS = {".zip": zip_members, ".tar": tar_members}  # functions that list the members of an archive, by file ending


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive of files."""

    file: Found  # the archive itself
    inner: str  # the folder in it that is read; empty for all
    members: Members  # all of its files
    numbers: Mapping[str, int]  # the numbers of those below that folder, by relative path
    notes: tuple[Note, ...] = ()  # damage after the last member, and other findings in that folder, such as broken links

    @property
    def root(self) -> str:
        """The path of the folder, as if unpacked."""
        return f"{self.file.path}/{self.inner}" if self.inner else self.file.path

    def read(self, number: int, most: int | None = None) -> bytes:
        """Reads a member, at most `most` bytes of an uncompressed one; `OSError` if it cannot be read or is damaged."""
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


def open_archive(path: str) -> Archive | None:
    """Lists the archive that an absolute path leads to or into, if any; `PG401` if it lacks the folder, `PG430` if it cannot be read."""
    found = split_path(path)
    if found is None:
        parts = path.split("/")
        for i, part in enumerate(parts):
            if unpacked_name(part.lower()).endswith(".tar") and os.path.isfile(archive := "/".join(parts[: i + 1])):
                (note,) = finding_notes([(archive, {"compressed": (1, "")})])
                raise OpError(note.code, note.message, field="path", help=note.help)
        return None
    file, inner = found
    try:
        about = os.stat(file)
        listed, damage = LISTS[os.path.splitext(file)[1].lower()](file, about.st_size)
    except OSError as error:
        raise OpError("PG430", f"{file!r} cannot be read: {(error.strerror or str(error)).lower()}", field="path") from None
    before = f"{inner}/" if inner else ""
    seen = [(kind, name) for kind, name in listed.seen if KINDS[kind].severity == "error" or _inside(name).startswith(before)]
    pairs = [*_clean(listed.names, seen)]
    every = dict(pairs)  # the last member of a name wins, as when unpacking
    seen += [("twice", listed.names[number]) for name, number in pairs if every[name] != number and name.startswith(before)]
    if damage and not every and (packed := compression(content_of(file, 16))):
        seen, damage = [("compressed", packed)], ""
    damaged = Note("PG430", f"{file!r} is damaged {damage}", "copy or download the archive again", "path", "error")
    notes = (*([damaged] if damage else []), *finding_notes([(file, tallied(seen))]))
    if not every and (grave := next((note for note in notes if note.severity == "error"), None)) is not None:
        raise OpError(grave.code, grave.message, field="path", help=grave.help)
    numbers = {name[len(before) :]: number for name, number in every.items() if name.startswith(before)} if before else every
    if inner and not numbers:
        tops = sorted({name.split("/")[0] for name in every if "/" in name})
        help_ = f"it holds the folders {', '.join(map(repr, tops[:5]))}" if tops else "it holds no folders"
        raise OpError("PG401", f"the folder {inner!r} is missing in {file!r}", field="path", help=help_)
    return Archive(Found(os.path.basename(file), file, about.st_size, about.st_mtime_ns), inner, listed, numbers, notes)


def _inside(name: str) -> str:
    """Normalises the path of a member; empty if it leads outside."""
    parts = [part for part in name.split("/") if part not in (".", "")]
    return "/".join(parts) if ".." not in parts else ""


def _clean(names: Iterable[str], seen: list[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Yields normalised paths and numbers of members; those that lead outside go to `seen`."""
    for number, name in enumerate(names):
        around = f"/{name}/"
        if "//" not in around and "/." not in around:
            yield name, number
        elif path := _inside(name):
            yield path, number
        else:
            seen.append(("outside", name))


class ArchiveScan(Scan):
    """A walk below a folder of an archive. It has no links to follow."""

    def __init__(self, archive: Archive, **about: Any) -> None:
        super().__init__(archive.root, **about)
        self.archive, self.notes = archive, archive.notes

    @cached_property
    def _folders(self) -> dict[str, tuple[dict[str, int], dict[str, None]]]:
        """The direct entries of each folder: files with their sizes, and folders."""
        found: defaultdict[str, tuple[dict[str, int], dict[str, None]]] = defaultdict(lambda: ({}, {}))
        sizes, last, files = self.archive.members.sizes.tolist(), "", found[""][0]
        for path, number in self.archive.numbers.items():
            folder = path[: max(0, path.rfind("/"))]
            if folder != last:
                last, files = folder, found[folder][0]
            files[path] = sizes[number]
        for path in [*found]:
            folder = path
            while folder:
                upper = folder[: max(0, folder.rfind("/"))]
                found[upper][1][folder] = None
                folder = upper
        return dict(found)

    def level(self, folder: str) -> tuple[list[str], list[str], list[Image]]:
        files, inner = self._folders.get(folder, ({}, {}))
        begin = len(folder) + 1 if folder else 0
        entries = chain(files.items(), inner.items())
        return self._sorted_out((_Entry(path[begin:], path, size) for path, size in entries), folder)

    def head(self, entry: Any, count: int) -> bytes:
        return self.archive.read(self.archive.numbers[entry.path], count)[:count]

    def has_folder(self, folder: str) -> bool:
        return folder in self._folders

    def listed(self, paths: Strings, sizes: Ints) -> tuple[Location, Reader]:
        location = replace(Location.below(self.root, paths, sizes), rows=np.arange(len(paths)), kind="member")
        return location, MemberReader(self.archive, [self.archive.numbers[path] for path in paths])


class _Entry(NamedTuple):
    """The parts of `os.DirEntry` that a walk uses, for a member or a folder."""

    name: str
    path: str
    size: int | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.size is None

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> os.stat_result:
        return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, self.size or 0, 0, 0, 0))


class MemberReader(MappedReader):
    """A reader of members of one archive by number, each with one feature. `records` are the numbers of those that are records."""

    def __init__(self, archive: Archive, records: Sequence[int]) -> None:
        self.checksums = "those of headers, since the format has no others" if archive.members.checks is None else "those of each member"
        self._archive, self._records = archive, np.asarray(records, np.int64)
        members, own = archive.members, self._records
        none: Ints = np.zeros(len(own), np.int64)
        checks = none if members.checks is None else members.checks[own]
        lengths: Ints = np.stack([members.lengths[own], none], 1).astype(np.int32)
        index = RecordIndex(np.array([0, len(own)], np.int64), np.stack([members.offsets[own], checks], 1), lengths, ("",), ("",))
        super().__init__(None, Indexed(archive.root, [archive.file], index), {}, ("", "check"))
        self.fetches = False  # its `Read` has no `ahead`

    def file_of(self, *place: Ints) -> str:
        return self._archive.file.path

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        from pipegen.ops.lowering.record_values import member_content

        check = places["check"][0] if self.packed(self.index.offsets[:, 1]) else None
        content = member_content(parts[""], check, whole=self.verifies)
        return dict.fromkeys(features, content)

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return [self._archive.read(int(self._records[row])) for row in place[0].tolist()]
