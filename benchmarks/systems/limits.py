"""Bounds: systems that only decode. What they reach, no system that decodes JPEGs on this machine can pass."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.recipes import Geometric, ImageNet
from benchmarks.systems.base import System, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from benchmarks.recipes import Recipe
    from benchmarks.systems.base import Photos


class _Limit(System):
    """Decode with the fastest settings, keep nothing but the shape."""

    is_limit: ClassVar[bool] = True

    @abstractmethod
    def decode(self, encoded: tf.Tensor, recipe: Recipe) -> tf.Tensor:
        """Pixels of one file."""

    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        import tensorflow as tf

        def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.shape(self.decode(tf.io.read_file(path), recipe)), label

        files = tf.data.Dataset.from_tensor_slices((list(photos.files), list(photos.labels)))
        shapes = files.shuffle(len(photos.files), seed=0).repeat().map(load, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
        return iter(shapes.batch(recipe.batch).prefetch(tf.data.AUTOTUNE))


class DecodeOnly(_Limit):
    """`decode_jpeg`, whole images."""

    name: ClassVar[str] = "limit: decode"

    def note(self, recipe: Recipe) -> str:
        return "whole images at full size; nothing else"

    def decode(self, encoded: tf.Tensor, recipe: Recipe) -> tf.Tensor:
        import tensorflow as tf

        return tf.io.decode_jpeg(encoded, 3, dct_method="INTEGER_FAST", fancy_upscaling=False)


class DecodeAndCropOnly(_Limit):
    """`decode_and_crop_jpeg`, random windows."""

    name: ClassVar[str] = "limit: decode and crop"

    def note(self, recipe: Recipe) -> str:
        return "random windows at full size; nothing else"

    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        if isinstance(recipe, Geometric):
            raise UnavailableError("the recipe does not crop")
        return super().batches(recipe, photos)

    def decode(self, encoded: tf.Tensor, recipe: Recipe) -> tf.Tensor:
        import tensorflow as tf

        assert isinstance(recipe, ImageNet)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(encoded),
            bounding_boxes=tf.zeros([1, 0, 4]),
            area_range=recipe.area,
            aspect_ratio_range=recipe.aspect,
            min_object_covered=0.0,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        return tf.io.decode_and_crop_jpeg(encoded, window, 3, dct_method="INTEGER_FAST", fancy_upscaling=False)
