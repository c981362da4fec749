"""What `benchmarks.startup` times: a training script up to its first batch, in a process of its own.

`python -m benchmarks.first_batch SYSTEM RECIPE FOLDER` reads the recipe's data as the system does, waits for one batch, adds up what is in
it, prints its shape, and ends at once: what TensorFlow does when a process ends is no start-up. A script imports pipegen alone, which
imports TensorFlow and with it Keras when it builds, or Keras first, as where imports are sorted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import steps as s
from benchmarks.data import Dataset, Photos
from benchmarks.recipes import RECIPES

if TYPE_CHECKING:
    from benchmarks.recipes import Recipe

_SHUFFLED = 1000
"""Arrays that Keras' dataset shuffles at a time, as in TensorFlow's tutorials; pipegen shuffles all of them."""


def of_pipegen(recipe: Recipe, data: Dataset) -> Any:
    """The training split of the recipe's spec; an epoch is a pass over the data, as that of Keras' dataset is."""
    from benchmarks.systems.pipegen_system import build

    return build(recipe, data, steps=None).train


def of_keras(recipe: Recipe, data: Dataset) -> Any:
    """`image_dataset_from_directory`, or slices of arrays, then preprocessing layers on batches."""
    import keras
    import tensorflow as tf

    from benchmarks.systems.keras_layers import augment

    if recipe.data == "arrays":
        read = tf.data.Dataset.from_tensor_slices(data.arrays).shuffle(_SHUFFLED).batch(recipe.batch)
    else:
        size = (recipe.size, recipe.size)
        folder = str(data.photos(recipe).root)
        read = keras.utils.image_dataset_from_directory(folder, image_size=size, batch_size=recipe.batch, verbose=False)
    layers = tuple(step for step in recipe.steps if not isinstance(step, (s.Resize, s.RandomResizedCrop)))
    return read.map(augment(recipe, layers, data.classes(recipe)), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def after_keras(recipe: Recipe, data: Dataset) -> Any:
    """As `of_pipegen`, in a script that has imported Keras."""
    import keras  # noqa: F401

    return of_pipegen(recipe, data)


SYSTEMS = {"pipegen": of_pipegen, "pipegen after Keras": after_keras, "Keras": of_keras}
"""How each system reads a recipe."""


def main(system: str, recipe: str, folder: str) -> None:
    """Print the shape of the first batch, and leave."""
    batch, _ = next(iter(SYSTEMS[system](RECIPES[recipe], Dataset({"photos": Photos.find(Path(folder))}))))
    if not float(batch.numpy().sum()):
        raise ValueError(f"the first batch of {system} is empty")
    print(*batch.shape, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
