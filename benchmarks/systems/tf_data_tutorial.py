"""`tf.data` as the guides on tensorflow.org and keras.io write it: no more, no less."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.recipes import IMAGENET_MEAN, IMAGENET_STD, Geometric, ImageNet
from benchmarks.systems.base import System, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import tensorflow as tf

    from benchmarks.recipes import Recipe
    from benchmarks.systems.base import Photos

    Step = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


class TfDataTutorial(System):
    """`shuffle`, `map` with AUTOTUNE, `batch`, `prefetch`."""

    name: ClassVar[str] = "tf.data tutorial"

    def note(self, recipe: Recipe) -> str:
        if isinstance(recipe, Geometric):
            return "Keras layers in map: four resamplings, brightness adds, zoom draws one factor, shear one way"
        return "decodes whole images, then crops"

    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        if isinstance(recipe, Geometric):
            return iter(_geometric(recipe, photos))
        if isinstance(recipe, ImageNet):
            return iter(_imagenet(recipe, photos))
        raise UnavailableError(f"no tutorial for {recipe.name}")


def _files(photos: Photos) -> tf.data.Dataset:
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices((list(photos.files), list(photos.labels)))
    return files.shuffle(len(photos.files), seed=0).repeat()


def _geometric(recipe: Geometric, photos: Photos) -> tf.data.Dataset:
    """The guide on data augmentation: decode and resize per file, Keras layers on batches, both in `map`."""
    import keras
    import tensorflow as tf

    layers = keras.layers
    if not hasattr(layers, "RandomShear"):
        raise UnavailableError(f"Keras {keras.__version__} has no RandomShear")

    def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, [recipe.size, recipe.size]), label

    augment = keras.Sequential(
        [
            layers.RandomFlip("horizontal"),
            layers.RandomRotation(recipe.rotation / 360, fill_mode="nearest"),
            layers.RandomTranslation(recipe.translation, recipe.translation, fill_mode="nearest"),
            layers.RandomShear(x_factor=math.tan(math.radians(recipe.shear)), fill_mode="nearest"),
            layers.RandomZoom(recipe.zoom, fill_mode="nearest"),
            layers.RandomBrightness(recipe.brightness),
        ]
    )
    images = _files(photos).map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(recipe.batch)
    return images.map(lambda x, y: (augment(x, training=True), y), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _imagenet(recipe: ImageNet, photos: Photos) -> tf.data.Dataset:
    """The classic ImageNet input: a distorted bounding box cut out of the decoded image."""
    import tensorflow as tf

    def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.image.convert_image_dtype(image, tf.float32)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.shape(image),
            bounding_boxes=tf.zeros([1, 0, 4]),
            area_range=recipe.area,
            aspect_ratio_range=recipe.aspect,
            min_object_covered=0.0,
            use_image_if_no_bounding_boxes=True,
        )
        image = tf.image.resize(tf.slice(image, begin, size), [recipe.size, recipe.size])
        image = tf.image.random_flip_left_right(image)
        return (image - IMAGENET_MEAN) / IMAGENET_STD, label

    return _files(photos).map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(recipe.batch).prefetch(tf.data.AUTOTUNE)
