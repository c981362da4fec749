"""The kinds of cache: where one keeps its rows, and what plans and reports have to know of that.

A new kind is a class here, what reads and writes it in `backend/reading/caches.py`, and a line of the table at the end of
`backend/datasets/engine.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipegen.spec.models import DiskCache

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime


@dataclass(frozen=True, slots=True)
class CacheKind:
    """Where a cache keeps its rows.

    Attributes:
        name: What reports call it.
        where: Where that is, in the text of a plan.
        in_memory: Whether its rows take memory of this process.
        outlives: Whether it outlives the process, so that others may have filled it: steps before it have to give the same there.
        variables: What of it a graph holds as variables, in words.
        files: What reading it calls Python for, in words.
    """

    name: ClassVar[str]
    where: ClassVar[str]
    in_memory: ClassVar[bool] = False
    outlives: ClassVar[bool] = False
    variables: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class InMemory(CacheKind):
    """Rows in the memory of the process, filled in its first epoch."""

    name = "memory"
    where = "in memory"
    in_memory = True
    variables = "the cache"


@dataclass(frozen=True, slots=True)
class OnDisk(CacheKind):
    """Rows in files of a folder that the spec names, for later runs and other processes, too."""

    name = "disk"
    where = "on disk"
    outlives = True
    variables = "which records are there"
    files = ("the files of the cache",)


IN_MEMORY, ON_DISK = InMemory(), OnDisk()


def wanted_kind(runtime: Runtime) -> CacheKind | None:
    """Returns the kind of cache that a spec asks for: in memory where it leaves that to us, `None` where it wants none."""
    if runtime.cache == "none":
        return None
    return ON_DISK if isinstance(runtime.cache, DiskCache) else IN_MEMORY
