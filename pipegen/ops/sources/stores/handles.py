"""Keeps stores open in this process: one for a file, whatever number of pipelines and threads read it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pipegen.ops.sources.stores.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pipegen.ops.sources.stores.base import Store

MOST_OPEN = 256
"""Files that are kept open; many systems allow a process 1,024."""


class _Handles:
    """The open stores of this process.

    Attributes:
        recent: Those that were used last.
        open: Also those that have gone from `recent` and that a thread still reads.
        inherited: What a forked process does not touch, not even to close it.
    """

    def __init__(self, inherited: tuple[Store, ...] = ()) -> None:
        self.lock = threading.RLock()
        self.recent: OrderedDict[Hashable, Store] = OrderedDict()
        self.open: WeakValueDictionary[Hashable, Store] = WeakValueDictionary()
        self.inherited = inherited

    def get(self, key: Hashable, make: Callable[[], Store]) -> Store:
        """Returns the store of a key, made where there is none."""
        with self.lock:
            store = self.recent.get(key) or self.open.get(key) or make()
            self.recent[key] = self.open[key] = store
            self.recent.move_to_end(key)
            while len(self.recent) > MOST_OPEN:
                self.recent.popitem(last=False)
        return store

    def forked(self) -> None:
        """Lets a forked process open files of its own: what libraries hold open must not be shared, nor a lock that a thread held."""
        self.__init__((*self.inherited, *self.recent.values()))  # type: ignore[misc]


HANDLES = _Handles()
os.register_at_fork(after_in_child=HANDLES.forked)


def stamp(path: str) -> tuple[int, int]:
    """Returns the size of a file in bytes and when it was written, in nanoseconds."""
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


def opened(kind: type[Store], path: str, listed: tuple[int, int] | None = None, *arguments: Hashable) -> Store:
    """Returns the store of a file, opened where it is not open yet.

    Args:
        kind: The format.
        path: The absolute path.
        listed: The stamp that the file had when its records were listed.
        arguments: What else the format takes.

    Raises:
        StoreError: When it cannot be opened, or has changed since its records were listed.
    """
    try:
        # What lies in a folder is looked through at the start of an epoch, and not for every record.
        now = listed if listed is not None and os.path.isdir(path) else stamp(path)
    except OSError as error:
        raise StoreError(f"the file cannot be opened: {error.strerror}") from None
    if listed is not None and now != listed:
        raise StoreError("the file has changed since its records were listed; build the pipeline again")
    return HANDLES.get((kind, path, now, arguments), lambda: kind(path, *arguments))
