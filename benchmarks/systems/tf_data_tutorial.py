"""`tf.data` as the guides on tensorflow.org and keras.io write it: no more, no less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.systems import keras_layers
from benchmarks.systems.decoding import distorted_box
from benchmarks.systems.tf_data import CachingSystem, files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import tensorflow as tf

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe

    Load = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


class TfDataTutorial(CachingSystem):
    """`shuffle`, `map` with AUTOTUNE, `batch`, `prefetch`: `tf.image` for one image, Keras layers for batches."""

    name: ClassVar[str] = "tf.data tutorial"
    remarks: ClassVar = keras_layers.REMARKS | {s.RandomResizedCrop: "decodes whole images, then crops"}

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        import tensorflow as tf

        tail = tuple(step for step in recipe.steps if not isinstance(step, (s.Resize, s.RandomResizedCrop)))
        alone = all(isinstance(step, (s.Flip, s.Normalise)) for step in tail)
        if recipe.data == "arrays":
            images = tf.data.Dataset.from_tensor_slices(data.arrays).shuffle(data.num_arrays).repeat()
        else:
            images = self._images(recipe, data, _load(recipe, tail if alone else ()))
        batches = images.batch(recipe.batch, drop_remainder=True)
        if not alone:
            batches = batches.map(keras_layers.augment(recipe, tail, data.classes(recipe)), num_parallel_calls=tf.data.AUTOTUNE)
        return iter(batches.prefetch(tf.data.AUTOTUNE))

    def _images(self, recipe: Recipe, data: Dataset, load: Load) -> tf.data.Dataset:
        """Images one by one, shuffled; where they are cached, the cache is full."""
        import tensorflow as tf

        photos = data.photos(recipe)
        if recipe.cached:
            return self.cached(recipe, lambda: files(photos).map(load, num_parallel_calls=tf.data.AUTOTUNE)).shuffle(1000).repeat()
        return files(photos).shuffle(len(photos.files)).repeat().map(load, num_parallel_calls=tf.data.AUTOTUNE)


def _load(recipe: Recipe, tail: tuple[s.Step, ...]) -> Load:
    """From a path to an image of the recipe's size; `tail` is what else is done to one image."""
    import tensorflow as tf

    decode = tf.io.decode_png if recipe.data == "png" else tf.io.decode_jpeg
    crop = recipe.find(s.RandomResizedCrop)
    normalise = next((step for step in tail if isinstance(step, s.Normalise)), None)

    def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = decode(tf.io.read_file(path), channels=3)
        if crop is not None:
            image = tf.ensure_shape(tf.slice(image, *distorted_box(tf.shape(image), crop)), [None, None, 3])
        image = tf.image.resize(image, [recipe.size, recipe.size])
        if any(isinstance(step, s.Flip) for step in tail):
            image = tf.image.random_flip_left_right(image)
        if normalise is not None:
            image = (image / 255.0 - normalise.mean) / normalise.std
        return image, label

    return load
