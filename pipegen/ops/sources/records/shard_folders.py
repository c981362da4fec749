"""Walks a folder of shards, and reports other entries."""

from __future__ import annotations

import os
import stat
from dataclasses import field, replace
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.sources.folders.scan import is_hidden
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import count, is_are, quoted
from pipegen.ops.sources.records.findings import finding_notes, unpacked_name, unpacking_help

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_LOCK = "lock.mdb"
"""LMDB's lock file beside the records."""


@dataclass(frozen=True)
class _Seen:
    """Entries below a folder: shards, compressed shards, and, relative to it, other files, hidden entries and linked folders."""

    shards: list[str] = field(default_factory=list)
    packed: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)

    def add(self, path: str, name: str, top: str, suffixes: tuple[str, ...]) -> None:
        if is_hidden(name) or name == _LOCK:
            self.hidden.append(os.path.relpath(path, top))
        elif name.endswith(suffixes):
            self.shards.append(path)
        elif unpacked_name(name).endswith(suffixes):
            self.packed.append(path)
        else:
            self.others.append(os.path.relpath(path, top))

    def notes(self, folder: str, field: str, suffixes: tuple[str, ...]) -> Iterator[Note]:
        passed = []
        if self.others:
            ending = " or ".join(suffixes)
            passed.append(f"{count(len(self.others), 'file')} whose names do not end in {ending} ({quoted(sorted(self.others))})")
        if self.hidden:
            passed.append(f"{count(len(self.hidden), 'hidden entry', 'hidden entries')} ({quoted(sorted(self.hidden))})")
        if passed:
            yield Note("PG411", f"ignored: {', '.join(passed)}", field=field)
        if self.linked:
            message = (
                f"{count(len(self.linked), 'linked folder')} below {folder!r} {is_are(len(self.linked))} not entered: {quoted(self.linked)}"
            )
            yield Note("PG411", message, "list such folders in `path`", field, "warning")


def shards_below(folder: str, field: str, suffixes: tuple[str, ...], notes: list[Note], unpacks: Mapping[str, str]) -> list[str]:
    """Lists the shards below a folder by name; `notes` collects other findings.

    Raises:
        OpError: `PG401` for a broken link, `PG402` without shards, `PG406` for an unreadable folder, `PG430` if all shards are compressed.
    """

    def unread(error: OSError) -> None:
        message = f"the folder {error.filename!r} cannot be read: {error.strerror or error}"
        raise OpError("PG406", message, field=field, help="give this process read permission") from error

    seen = _Seen()
    for inside, folders, names in os.walk(folder, onerror=unread):
        for name in list(folders):
            path = os.path.join(inside, name)
            if is_hidden(name) or os.path.islink(path):
                (seen.hidden if is_hidden(name) else seen.linked).append(os.path.relpath(path, folder))
                folders.remove(name)
        for name in names:
            seen.add(os.path.join(inside, name), name, folder, suffixes)
    check_links(seen.shards, field)
    matching = [path for path in seen.shards if is_file(path)]
    known = set(matching)
    packed = [path for path in seen.packed if unpacked_name(path) not in known]
    if packed:
        (note,) = finding_notes(((path, {"compressed": (1, "")}) for path in packed), field)
        read = next((how for how, ending in unpacks.items() if all(path.endswith(ending) for path in packed)), None)
        if not matching and read is not None:
            raise OpError(note.code, f"all shards below {folder!r} are compressed by {read}", field=field, help=unpacking_help(read))
        if not matching:
            raise OpError(note.code, note.message, field=field, help=note.help)
        notes.append(replace(note, help=f"{note.help}; or leave them out with a pattern such as `*{suffixes[0]}`"))
    if not matching:
        below = len(seen.others) + len(seen.hidden)
        if not below:
            raise OpError("PG402", f"{folder!r} is empty", field=field)
        message = f"{count(below, 'file')} below {folder!r}, but none ends in {' or '.join(suffixes)}"
        raise OpError("PG402", message, field=field, help="for other file names, use a pattern such as `data/train-*`")
    notes.extend(seen.notes(folder, field, suffixes))
    return matching


def check_links(paths: Iterable[str], field: str) -> None:
    """Raises `PG401` for broken links."""
    lost = [path for path in paths if os.path.islink(path) and not os.path.exists(path)]
    if lost:
        message = f"{count(len(lost), 'broken link')} to shards: {quoted(lost)}"
        raise OpError("PG401", message, field=field, help="restore their targets, or remove them")


def is_file(path: str) -> bool:
    """Tells whether a path leads to a regular file."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
