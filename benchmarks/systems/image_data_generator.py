"""Keras' `ImageDataGenerator`, used as its documentation says: one Python thread."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.recipes import Geometric
from benchmarks.systems.base import System, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.recipes import Recipe
    from benchmarks.systems.base import Photos


class ImageDataGeneratorSystem(System):
    """`ImageDataGenerator.flow_from_directory`."""

    name: ClassVar[str] = "ImageDataGenerator"

    def note(self, recipe: Recipe) -> str:
        if not isinstance(recipe, Geometric):
            return ""
        return "one thread; Pillow's resize; brightness by way of 8-bit pixels; a shear also stretches"

    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        if not isinstance(recipe, Geometric):
            raise UnavailableError("it has no random resized crop")
        try:
            import scipy  # noqa: F401 (its affine transform needs it, and says so only at the first image)
            import tensorflow as tf

            ImageDataGenerator = tf.keras.preprocessing.image.ImageDataGenerator  # noqa: N806
        except (ImportError, AttributeError) as error:
            raise UnavailableError(str(error)) from error
        generator = ImageDataGenerator(
            rotation_range=recipe.rotation,
            width_shift_range=recipe.translation,
            height_shift_range=recipe.translation,
            shear_range=recipe.shear,
            zoom_range=recipe.zoom,
            horizontal_flip=True,
            brightness_range=(1 - recipe.brightness, 1 + recipe.brightness),
            fill_mode="nearest",
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it announces what it found
            flow = generator.flow_from_directory(
                str(photos.root),
                target_size=(recipe.size, recipe.size),
                batch_size=recipe.batch,
                class_mode="sparse",
                interpolation="bilinear",
            )
        return _whole(flow, recipe.batch)


def _whole(flow: Iterator[tuple[Any, Any]], batch: int) -> Iterator[tuple[Any, Any]]:
    """Leave out the smaller batch that ends each epoch, as the other systems do."""
    for x, y in flow:
        if len(x) == batch:
            yield x, y
