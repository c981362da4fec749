"""Keras' `ImageDataGenerator`: in one Python thread as `fit` uses it, and in as many processes as there are cores."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems.base import System, cores
from benchmarks.systems.batches import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class ImageDataGeneratorSystem(System):
    """`ImageDataGenerator.flow_from_directory`, and `flow` for arrays."""

    name: ClassVar[str] = "ImageDataGenerator"
    remark: ClassVar[str] = "one thread"
    remarks: ClassVar = {
        s.Resize: "Pillow's resize",
        s.Affine: "one resampling by SciPy; a shear also stretches",
        s.Brightness: "brightness by way of 8-bit pixels",
    }
    lacks: ClassVar = {
        s.RandomResizedCrop: "it has no random resized crop",
        s.ColorJitter: "it has no contrast, saturation or hue",
        s.Blur: "it has no blur",
        s.RandAugment: "it has no RandAugment",
        s.MixUp: "it combines no images",
        s.CutMix: "it combines no images",
    }
    caches: ClassVar[bool] = True

    def note(self, recipe: Recipe) -> str:
        """It cannot cache, so a cached recipe is what it does in every epoch."""
        return "; ".join(filter(None, (super().note(recipe), "no cache: each epoch is the first" if recipe.cached else "")))

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        return whole(self.flow(recipe, data), recipe.batch)

    def flow(self, recipe: Recipe, data: Dataset) -> Any:
        """The iterator that Keras gives."""
        try:
            import scipy  # noqa: F401 (its affine transform needs it, and says so only at the first image)
            import tensorflow as tf

            generator = tf.keras.preprocessing.image.ImageDataGenerator(**_arguments(recipe))
        except (ImportError, AttributeError) as error:
            raise UnavailableError(str(error)) from error
        if recipe.data == "arrays":
            return generator.flow(*data.arrays, batch_size=recipe.batch)
        with contextlib.redirect_stdout(io.StringIO()):  # it announces what it found
            return generator.flow_from_directory(
                str(data.photos(recipe).root),
                target_size=(recipe.size, recipe.size),
                batch_size=recipe.batch,
                class_mode="sparse",
                interpolation="bilinear",
            )


class ImageDataGeneratorProcesses(ImageDataGeneratorSystem):
    """The same in processes: `workers` and `use_multiprocessing`, which `fit` reads from the iterator."""

    name: ClassVar[str] = "ImageDataGenerator, processes"

    @property
    def remark(self) -> str:  # type: ignore[override]
        """How many processes there are."""
        return f"{cores()} processes"

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        flow = self.flow(recipe, data)
        try:
            from keras.src.trainers.data_adapters.py_dataset_adapter import OrderedEnqueuer  # what `fit` runs them in
        except ImportError as error:
            raise UnavailableError(f"this Keras runs no processes: {error}") from error
        start = functools.partial(OrderedEnqueuer, flow, workers=cores(), use_multiprocessing=True, max_queue_size=2 * cores())
        return whole(_from_processes(start, len(flow)), recipe.batch)


def _from_processes(start: Callable[[], Any], steps: int) -> Iterator[tuple[Any, Any]]:
    """The batches of epoch after epoch, each with processes of its own, which end with it; that is what `fit` does."""
    while True:
        enqueuer = start()
        enqueuer.start()
        try:
            yield from itertools.islice(enqueuer.get(), steps)
        finally:
            enqueuer.stop()


def _arguments(recipe: Recipe) -> dict[str, Any]:
    """The recipe in `ImageDataGenerator`'s arguments."""
    made: dict[str, Any] = {}
    for step in recipe.steps:
        match step:
            case s.Affine():
                made |= {
                    "rotation_range": step.rotation,
                    "width_shift_range": step.translation,
                    "height_shift_range": step.translation,
                    "shear_range": step.shear,
                    "zoom_range": step.zoom,
                    "fill_mode": "nearest",
                }
            case s.Flip():
                made["horizontal_flip"] = True
            case s.Brightness():
                made["brightness_range"] = (1 - step.amount, 1 + step.amount)
            case s.Normalise():
                made["preprocessing_function"] = _Normalise(step)
    return made


class _Normalise:
    """Less the mean, by the deviation, of one image in [0, 255]; a class so that processes can take it along."""

    def __init__(self, step: s.Normalise) -> None:
        import numpy as np

        self.mean = 255 * np.asarray(step.mean, "float32")
        self.std = 255 * np.asarray(step.std, "float32")

    def __call__(self, image: Any) -> Any:
        return (image - self.mean) / self.std
