"""Holds what the stages of one training have in common: the position, and caches of the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import tensorflow as tf

from pipegen.backend.datasets.progress import Progress
from pipegen.backend.reading.cache import MemoryCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.cache.store import Store


class Shared:
    """Is given to the engine of each stage of a training.

    A cache in memory lives as long as the executor of a stage holds it, so that what only stages that are over need makes room.
    """

    def __init__(self) -> None:
        with tf.init_scope():
            self.progress = Progress(None)
        self.stores: dict[str, Store] = {}
        self._caches: WeakValueDictionary[tuple[str, ...], MemoryCache] = WeakValueDictionary()

    def cache(self, key: tuple[str, ...], make: Callable[[], MemoryCache]) -> MemoryCache:
        """Returns the cache of a key, made where no stage has it."""
        found = self._caches.get(key)
        if found is None:
            found = self._caches[key] = make()
        return found
