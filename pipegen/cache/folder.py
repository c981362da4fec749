"""A folder of caches: lists, checks and removes them, and checks that one can be made."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from pipegen.cache.store import About, describe_cache, read_about, read_store, remove_store
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import InternalError, SpecError
from pipegen.frozen import dataclass
from pipegen.kept import COLUMNS, INDEXES, LOOKS, SPLITS, STATISTICS
from pipegen.plan.nodes import Cache, Plan
from pipegen.spec.locate import Locate
from pipegen.spec.models import DiskCache, PipelineSpec
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept file or cache."""

    kind: str  # `splits`, `index`, `columns`, `looks`, `statistics`, or for a `Held` cache `cache`
    key: str  # its name
    path: Path  # its file, or the cache's own folder
    bytes: int  # its size on the disk
    used: float  # the time of its last write, in seconds since the epoch


@dataclass(frozen=True, slots=True)
class Held(Kept):
    """A cache in its folder."""

    about: About  # its description
    filled: int | None  # records with an entry; `None` if a file is missing


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a cache: the number of entries, the damaged ones in order, or why it could not be read."""

    checked: int
    damaged: tuple[int, ...]
    problem: str = ""


def caches_in(folder: Path) -> list[Held]:
    """Lists the caches of a folder, the last written first. Raises `OSError` if the folder cannot be read."""
    found = []
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        about = read_about(path)
        if about is not None and about.key == path.name:
            try:
                filled = sum(1 for _ in read_store(path, about).filled())
            except OSError:
                filled = None
            found.append(Held("cache", path.name, path, *_on_disk(path), about, filled))
    return sorted(found, key=lambda held: -held.used)


def files_in(folder: Path) -> list[Kept]:
    """Lists the files beside the caches (split assignments, indexes of records, columns, looks at pictures, statistics of steps), kind by
    kind, the last written first."""
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
    """Compares every filled record with its checksum. `progress` is called with the number done, now and then."""
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
    """Deletes a file or cache. Processes that use it keep their open files. Raises `OSError` if it cannot be deleted."""
    if isinstance(kept, Held):
        remove_store(kept.path, kept.about)
    else:
        kept.path.unlink()


def nearest(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next((p for p in (folder, *folder.parents) if p.exists()), Path.cwd())


def _on_disk(path: Path) -> tuple[int, float]:
    """The bytes that a folder's files take on the disk, without holes, and the time of the last write."""
    with suppress(OSError), os.scandir(path) as entries:
        stats = [entry.stat(follow_symlinks=False) for entry in entries]
        return sum(stat.st_blocks * 512 for stat in stats), max((stat.st_mtime for stat in stats), default=0.0)
    return 0, 0.0


_DISK = ("runtime", "cache", "disk")


def cache_folder(spec: PipelineSpec) -> Path:
    """The folder of the spec's caches."""
    wanted = spec.runtime.cache
    if not isinstance(wanted, DiskCache):
        raise InternalError("a cache on disk for a spec without its folder")
    return Path(wanted.disk)


def claim_disk(spec: PipelineSpec, plans: Mapping[str, Plan], manifest: Manifest, locate: Locate, room: int | None = None) -> None:
    """Checks that the caches of all splits exist, or can be made and fit the disk, which has `room` bytes (by default its free bytes).
    Raises `SpecError`: `PG416` if there is not enough room, `PG417` if the folder cannot be used."""
    cached = {split: plan for split, plan in plans.items() if any(isinstance(n, Cache) and n.kind.outlives for n in plan.nodes)}
    if not cached:
        return
    folder = cache_folder(spec)
    need = sum(_missing_bytes(folder, spec, plan, manifest, split) for split, plan in cached.items())
    if need == 0:
        return
    over = nearest(folder)
    if not over.is_dir() or not os.access(over, os.W_OK | os.X_OK):
        code = errno.EACCES if over.is_dir() else errno.ENOTDIR
        raise SpecError([unusable(folder, OSError(code, os.strerror(code)), locate)])
    if room is None:
        with suppress(OSError):  # then it is unknown
            room = shutil.disk_usage(over).free
    if room is not None and need > room:
        message = f"the cache still needs {format_bytes(need)}, and the disk of {folder} has {format_bytes(room)} left"
        lists = "`pipegen cache ls` lists the caches there, and `pipegen cache clear` removes them"
        raise SpecError([make("PG416", message, locate(_DISK), help=(lists, "or name a folder on another disk"))])


def unusable(folder: Path, error: OSError, locate: Locate) -> Diagnostic:
    """Makes the finding that a folder cannot hold caches."""
    reason = (error.strerror or str(error)).lower()
    return make("PG417", f"{folder} cannot hold a cache: {reason}", locate(_DISK), help=("name a folder that this user may write to",))


def _missing_bytes(folder: Path, spec: PipelineSpec, plan: Plan, manifest: Manifest, split: str) -> int:
    """Counts the bytes that a split has yet to write."""
    about = describe_cache(spec, plan, manifest)
    members = manifest.numbers(split)  # rising, and searched in place: a set would take more memory than the listing
    try:
        filled = read_store(folder / about.key, about).filled()
        there = sum(int(members.searchsorted(row, "right") - members.searchsorted(row, "left")) for row in filled)
    except OSError:
        there = 0
    return (len(members) - there) * about.row
