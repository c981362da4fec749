"""Checks that a cache on disk can be had where the spec wants it, before anything is made there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.cache.folder import free_bytes, nearest
from pipegen.cache.key import describe_cache
from pipegen.cache.store import read_store
from pipegen.diagnostics.catalog import make
from pipegen.errors import InternalError, SpecError
from pipegen.plan.nodes import Cache
from pipegen.spec.models import DiskCache
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.plan.nodes import Plan
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec

_DISK = ("runtime", "cache", "disk")


def cache_folder(spec: PipelineSpec) -> Path:
    """The folder of the spec's caches."""
    wanted = spec.runtime.cache
    if not isinstance(wanted, DiskCache):
        raise InternalError("a cache on disk was asked of a spec that names no folder")
    return Path(wanted.disk)


def claim_disk(spec: PipelineSpec, plans: Mapping[str, Plan], manifest: Manifest, locate: Locate, room: int | None = None) -> None:
    """See whether the caches of all splits can be made, or are there, and fit the `room` of the disk: bytes, or what the system says.

    Raises:
        SpecError: `PG416` when there is not enough room, `PG417` when the folder cannot be used.
    """
    cached = {split: plan for split, plan in plans.items() if any(isinstance(n, Cache) and n.disk for n in plan.nodes)}
    if not cached:
        return
    folder = cache_folder(spec)
    need = sum(_missing_bytes(folder, spec, plan, manifest, split) for split, plan in cached.items())
    if need == 0:
        return
    problem = _problem(folder)
    if problem is not None:
        raise SpecError([unusable(folder, problem, locate)])
    room = free_bytes(folder) if room is None else room
    if room is not None and need > room:
        message = f"the cache still needs {format_bytes(need)}, and the disk of {folder} has {format_bytes(room)} left"
        help_ = (
            "`pipegen cache ls` shows what lies there, and `pipegen cache clear` removes it",
            "or name a folder on another disk",
        )
        raise SpecError([make("PG416", message, locate(_DISK), help=help_)])


def unusable(folder: Path, error: OSError, locate: Locate) -> Diagnostic:
    """The finding that a folder cannot hold caches."""
    reason = (error.strerror or str(error)).lower()
    return make("PG417", f"{folder} cannot hold a cache: {reason}", locate(_DISK), help=("name a folder that this user may write to",))


def _missing_bytes(folder: Path, spec: PipelineSpec, plan: Plan, manifest: Manifest, split: str) -> int:
    """Bytes that a split has yet to write."""
    about = describe_cache(spec, plan, manifest)
    members = manifest.numbers(split)  # rising, and searched in place: a set of them would take more than the whole listing
    try:
        filled = read_store(folder / about.key, about).filled()
        there = sum(int(members.searchsorted(row, "right") - members.searchsorted(row, "left")) for row in filled)
    except OSError:
        there = 0
    return (len(members) - there) * about.row


def _problem(folder: Path) -> OSError | None:
    """Why nothing can be written into a folder, which need not exist yet."""
    over = nearest(folder)
    if not over.is_dir():
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(over, os.W_OK | os.X_OK):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return None
