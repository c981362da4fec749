"""`image_dataset_from_directory` and preprocessing layers, as Keras' guides have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.systems import keras_layers
from benchmarks.systems.base import FILES
from benchmarks.systems.batches import whole
from benchmarks.systems.tf_data import CachingSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class KerasDataset(CachingSystem):
    """Images are decoded and resized one by one, and augmented in batches."""

    name: ClassVar[str] = "Keras dataset + layers"
    remarks: ClassVar = keras_layers.REMARKS | {s.RandomResizedCrop: "resizes whole images: it has no random resized crop"}
    reads: ClassVar = FILES

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        import tensorflow as tf

        source = self.cached(recipe, lambda: _read(recipe, data)) if recipe.cached else _read(recipe, data)
        tail = tuple(step for step in recipe.steps if not isinstance(step, (s.Resize, s.RandomResizedCrop)))
        augmented = source.repeat().map(keras_layers.augment(recipe, tail, data.classes(recipe)), num_parallel_calls=tf.data.AUTOTUNE)
        return whole(iter(augmented.prefetch(tf.data.AUTOTUNE)), recipe.batch)


def _read(recipe: Recipe, data: Dataset) -> tf.data.Dataset:
    """Batches of resized images."""
    import keras

    return keras.utils.image_dataset_from_directory(
        str(data.photos(recipe).root), image_size=(recipe.size, recipe.size), batch_size=recipe.batch, verbose=False
    )
