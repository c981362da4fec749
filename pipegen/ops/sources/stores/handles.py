"""Open stores of this process: one per file for all pipelines and threads."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pipegen.ops.sources.stores.field_types import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pipegen.ops.sources.stores.base import Store

MOST_OPEN = 256
"""Files kept open; many systems allow 1,024 per process."""


class _Handles:
    """The open stores of this process.

    Attributes:
        recent: The most recently used ones.
        open: Also those no longer in `recent` that a thread still reads.
        inherited: Stores of the parent process, which a forked one must not even close.
    """

    def __init__(self, inherited: tuple[Store, ...] = ()) -> None:
        self.lock = threading.RLock()
        self.recent: OrderedDict[Hashable, Store] = OrderedDict()
        self.open: WeakValueDictionary[Hashable, Store] = WeakValueDictionary()
        self.inherited = inherited

    def get(self, key: Hashable, make: Callable[[], Store]) -> Store:
        """Returns the store of a key, making it on a miss."""
        with self.lock:
            store = self.recent.get(key) or self.open.get(key) or make()
            self.recent[key] = self.open[key] = store
            self.recent.move_to_end(key)
            while len(self.recent) > MOST_OPEN:
                self.recent.popitem(last=False)
        return store

    def forked(self) -> None:
        """Resets a forked process: open files of libraries, and locks, must not be shared."""
        self.__init__((*self.inherited, *self.recent.values()))  # type: ignore[misc]


HANDLES = _Handles()
os.register_at_fork(after_in_child=HANDLES.forked)


def stamp(path: str) -> tuple[int, int]:
    """Returns the size of a file in bytes and its modification time in nanoseconds."""
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


def opened(kind: type[Store], path: str, listed: tuple[int, int] | None = None, *arguments: Hashable) -> Store:
    """Returns the store of a file, opening it on a miss.

    Args:
        kind: The format.
        path: The absolute path.
        listed: The stamp of the file when its records were listed.
        arguments: Further arguments of the format.

    Raises:
        StoreError: It cannot be opened, or changed since its records were listed.
    """
    try:
        # Folders are checked at the start of an epoch rather than for every record.
        now = listed if listed is not None and os.path.isdir(path) else stamp(path)
    except OSError as error:
        raise StoreError(f"the file cannot be opened: {error.strerror}") from None
    if listed is not None and now != listed:
        raise StoreError("the file has changed since its records were listed; build the pipeline again")
    return HANDLES.get((kind, path, now, arguments), lambda: kind(path, *arguments))
