"""`image_dataset_from_directory` and preprocessing layers, as Keras' guides have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.systems import keras_layers
from benchmarks.systems.base import FILES, System
from benchmarks.systems.batches import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class KerasDataset(System):
    """Images are decoded and resized one by one, and augmented in batches."""

    name: ClassVar[str] = "Keras dataset + layers"
    remarks: ClassVar = keras_layers.REMARKS | {s.RandomResizedCrop: "resizes whole images: it has no random resized crop"}
    reads: ClassVar = FILES
    caches: ClassVar[bool] = True

    def __init__(self) -> None:
        """Nothing is cached yet."""
        self._cached: dict[Recipe, tf.data.Dataset] = {}

    def forget(self) -> None:
        self._cached.clear()

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        import tensorflow as tf

        source = self._source(recipe, data)
        tail = tuple(step for step in recipe.steps if not isinstance(step, (s.Resize, s.RandomResizedCrop)))
        augmented = source.repeat().map(keras_layers.augment(recipe, tail, data.classes(recipe)), num_parallel_calls=tf.data.AUTOTUNE)
        return whole(iter(augmented.prefetch(tf.data.AUTOTUNE)), recipe.batch)

    def _source(self, recipe: Recipe, data: Dataset) -> tf.data.Dataset:
        """Batches of resized images; where they are cached, the cache is full."""
        import keras

        if recipe in self._cached:
            return self._cached[recipe]
        made = keras.utils.image_dataset_from_directory(
            str(data.photos(recipe).root), image_size=(recipe.size, recipe.size), batch_size=recipe.batch, verbose=False
        )
        if recipe.cached:
            made = self._cached[recipe] = made.cache()
            for _ in made:
                pass
        return made
