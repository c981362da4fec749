"""A folder of caches: which there are, what each takes, and how one is removed."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from pipegen.cache.store import About, read_about, read_store, remove_store
from pipegen.kept import COLUMNS, INDEXES, LOOKS, SPLITS, STATISTICS

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Kept:
    """Holds what is known of a file or folder among caches.

    Attributes:
        kind: `splits`, `index`, `columns`, `looks`, `statistics`, or for a `Held` cache `cache`.
        key: Its name.
        path: Its file, or the cache's own folder.
        bytes: What it takes on the disk.
        used: When it was last written, in seconds since the epoch.
    """

    kind: str
    key: str
    path: Path
    bytes: int
    used: float


@dataclass(frozen=True, slots=True)
class Held(Kept):
    """A cache as it lies in its folder.

    Attributes:
        about: What it says of itself.
        filled: Records that have an entry, or `None` where a file of it is missing.
    """

    about: About
    filled: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Holds what checking a cache gave: how many records have an entry, which do not fit it, in order, or why none was checked."""

    checked: int
    damaged: tuple[int, ...]
    problem: str = ""


def caches_in(folder: Path) -> list[Held]:
    """The caches of a folder, the one written last first.

    Raises:
        OSError: When the folder cannot be read.
    """
    found = []
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        about = read_about(path)
        if about is not None and about.key == path.name:
            found.append(Held("cache", path.name, path, *_on_disk(path), about, _filled(path, about)))
    return sorted(found, key=lambda held: -held.used)


def files_in(folder: Path) -> list[Kept]:
    """Lists the files beside the caches (split assignments, indexes of records, columns, looks at pictures, what steps have learned), of
    each kind the one written last first."""
    found = []
    names = {kind: f"*.{kind}" for kind in (SPLITS, INDEXES, COLUMNS, LOOKS)} | {STATISTICS: "[0-9a-f]" * 32 + ".*"}
    kinds = [*names]
    for kind, name in names.items():
        for path in (folder / kind).glob(name):
            stat = path.lstat()
            if S_ISREG(stat.st_mode):
                found.append(Kept(kind, path.stem, path, stat.st_blocks * 512, stat.st_mtime))
    return sorted(found, key=lambda kept: (kinds.index(kept.kind), -kept.used))


def verify(held: Held, progress: Callable[[int], None] | None = None) -> Verdict:
    """Compare every filled record with its checksum; nothing is decoded. `progress` is called with how many are done, now and then."""
    try:
        store = read_store(held.path, held.about)
    except OSError as error:
        return Verdict(0, (), f"{error.strerror or error}: {Path(str(error.filename or held.path)).name}")
    checked, damaged = 0, []
    for row, good in store.check():
        checked += 1
        if not good:
            damaged.append(row)
        if progress is not None and checked % 256 == 0:
            progress(checked)
    return Verdict(checked, tuple(damaged))


def remove(kept: Kept) -> None:
    """Delete what is kept. A process that uses it keeps its open files and runs on.

    Raises:
        OSError: When that does not work.
    """
    if isinstance(kept, Held):
        remove_store(kept.path, kept.about)
    else:
        kept.path.unlink()


def free_bytes(folder: Path) -> int | None:
    """Returns the bytes that the disk under a folder, which need not exist yet, has left for this user; `None` where that is unknown."""
    try:
        disk = os.statvfs(nearest(folder))
    except (OSError, AttributeError):
        return None
    return disk.f_bavail * disk.f_frsize


def nearest(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next((p for p in (folder, *folder.parents) if p.exists()), Path.cwd())


def _filled(path: Path, about: About) -> int | None:
    try:
        return sum(1 for _ in read_store(path, about).filled())
    except OSError:
        return None


def _on_disk(path: Path) -> tuple[int, float]:
    """The bytes that a folder's files take on the disk, where holes take none, and when the last one was written."""
    with suppress(OSError), os.scandir(path) as entries:
        stats = [entry.stat(follow_symlinks=False) for entry in entries]
        return sum(stat.st_blocks * 512 for stat in stats), max((stat.st_mtime for stat in stats), default=0.0)
    return 0, 0.0
