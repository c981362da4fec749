"""Bounds: systems that only decode. What they reach, no system that decodes whole files on this machine can pass."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems.base import FILES, System
from benchmarks.systems.decoding import FAST_JPEG, decode_window
from benchmarks.systems.tf_data import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class _Limit(System):
    """Decode with the fastest settings, keep nothing but the shape."""

    is_limit: ClassVar[bool] = True
    reads: ClassVar = FILES

    @abstractmethod
    def decode(self, encoded: tf.Tensor, recipe: Recipe) -> tf.Tensor:
        """Pixels of one file."""

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        import tensorflow as tf

        photos = data.photos(recipe)

        def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.shape(self.decode(tf.io.read_file(path), recipe)), label

        shuffled = files(photos).shuffle(len(photos.files)).repeat()
        shapes = shuffled.map(load, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
        return iter(shapes.batch(recipe.batch).prefetch(tf.data.AUTOTUNE))


class DecodeOnly(_Limit):
    """`decode_jpeg` or `decode_png`, whole images."""

    name: ClassVar[str] = "limit: decode"
    remark: ClassVar[str] = "whole images at full size; nothing else"

    def decode(self, encoded: tf.Tensor, recipe: Recipe) -> tf.Tensor:
        import tensorflow as tf

        return tf.io.decode_png(encoded, 3) if recipe.data == "png" else tf.io.decode_jpeg(encoded, 3, **FAST_JPEG)


class DecodeAndCropOnly(_Limit):
    """`decode_and_crop_jpeg`, random windows."""

    name: ClassVar[str] = "limit: decode and crop"
    remark: ClassVar[str] = "random windows at full size; nothing else"

    def refuse(self, recipe: Recipe, data: Dataset) -> None:
        super().refuse(recipe, data)
        if recipe.find(s.RandomResizedCrop) is None:
            raise UnavailableError("the recipe does not crop")

    def decode(self, encoded: tf.Tensor, recipe: Recipe) -> tf.Tensor:
        crop = recipe.find(s.RandomResizedCrop)
        assert crop is not None
        return decode_window(encoded, crop)
