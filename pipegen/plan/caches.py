"""The kinds of cache, as plans and reports see them.

To add a kind: a class here, its reader and writer in `backend/reading/caches.py`, and a case in `Engine._cache`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.frozen import dataclass
from pipegen.spec.models import DiskCache

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime


@dataclass(frozen=True, slots=True)
class CacheKind:
    """A place for the rows of a cache.

    Attributes:
        name: Its name in reports.
        where: The place in the text of a plan.
        in_memory: Whether its rows take memory of this process.
        outlives: Whether it outlives the process, so that other processes may fill it: the steps before it have to give equal
            results there.
        variables: What a graph holds of it in variables, in words.
        files: What is read of it in Python, in words.
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
    """Rows in files of a folder that the spec names, shared with later runs and other processes."""

    name = "disk"
    where = "on disk"
    outlives = True
    variables = "which records are there"
    files = ("the files of the cache",)


IN_MEMORY, ON_DISK = InMemory(), OnDisk()


def wanted_kind(runtime: Runtime) -> CacheKind | None:
    """The kind of cache that a spec asks for: memory for `auto`, `None` for `none`."""
    if runtime.cache == "none":
        return None
    return ON_DISK if isinstance(runtime.cache, DiskCache) else IN_MEMORY
