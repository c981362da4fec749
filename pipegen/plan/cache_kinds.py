"""The kinds of cache, as plans and reports see them.

To add a kind: a value here, its reader and writer in `backend/reading/graph_caches.py`, and a line in the table at the end of
`backend/datasets/engine.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        variables: What a graph holds of it in variables, in words.
        in_memory: Whether its rows take memory of this process.
        outlives: Whether it outlives the process, so that other processes may fill it: the steps before it have to give equal
            results there.
        files: What is read of it in Python, in words.
    """

    name: str
    where: str
    variables: str
    in_memory: bool = False
    outlives: bool = False
    files: tuple[str, ...] = ()


IN_MEMORY = CacheKind("memory", "in memory", "the cache", in_memory=True)
"""Rows in the memory of the process, filled in its first epoch."""
ON_DISK = CacheKind("disk", "on disk", "which records are there", outlives=True, files=("the files of the cache",))
"""Rows in files of a folder that the spec names, shared with later runs and other processes."""


def wanted_kind(runtime: Runtime) -> CacheKind | None:
    """The kind of cache that a spec asks for: memory for `auto`, `None` for `none`."""
    if runtime.cache == "none":
        return None
    return ON_DISK if isinstance(runtime.cache, DiskCache) else IN_MEMORY
