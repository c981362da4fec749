"""What systems on `tf.data` share: the files, and a cache in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from benchmarks.systems.base import System

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf

    from benchmarks.data import Photos
    from benchmarks.recipes import Recipe


class CachingSystem(System):
    """A system that keeps decoded images with `tf.data.Dataset.cache`."""

    caches: ClassVar[bool] = True

    def __init__(self) -> None:
        """Nothing is cached yet."""
        self._cached: dict[Recipe, tf.data.Dataset] = {}

    def forget(self) -> None:
        self._cached.clear()

    def cached(self, recipe: Recipe, make: Callable[[], tf.data.Dataset]) -> tf.data.Dataset:
        """A dataset whose elements are all in memory, made once for the turns of a recipe."""
        if recipe not in self._cached:
            self._cached[recipe] = make().cache()
            for _ in self._cached[recipe]:
                pass
        return self._cached[recipe]


def files(photos: Photos) -> tf.data.Dataset:
    """Each file's path and label, in the order of the folder."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((list(photos.files), list(photos.labels)))
