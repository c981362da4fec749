"""NVIDIA DALI, all of it on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems.base import System, cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class Dali(System):
    """A DALI pipeline with as many threads as there are cores."""

    name: ClassVar[str] = "DALI on the CPU"
    remark: ClassVar[str] = "batches stay in DALI's memory: no copy into TensorFlow"
    remarks: ClassVar = {s.RandAugment: "DALI's own RandAugment", s.ColorJitter: "one colour matrix"}
    lacks: ClassVar = {s.MixUp: "it has no MixUp op", s.CutMix: "it has no CutMix op"}

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        try:
            from nvidia.dali import pipeline_def
        except ImportError as error:
            raise UnavailableError(f"not installed: {error}") from error
        options = {"batch_size": recipe.batch, "num_threads": cores(), "device_id": None, "enable_conditionals": True}

        def graph() -> tuple[Any, Any]:
            return _graph(recipe, data)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its own RandAugment uses names that it has moved
            pipe = pipeline_def(**options)(graph)()
            pipe.build()
        return _run(pipe)


def _run(pipe: Any) -> Iterator[tuple[Any, Any]]:
    """The batches as NumPy views, each good until the next one is taken."""
    import numpy as np

    while True:
        images, labels = pipe.run()
        yield np.asarray(images.as_tensor()), np.asarray(labels.as_tensor())


def _graph(recipe: Recipe, data: Dataset) -> tuple[Any, Any]:
    """The recipe in DALI's operators. DALI's conditionals rewrite this function and what it calls; they know no `match`."""
    from nvidia.dali import fn, types

    image, label = _source(recipe, data)
    for step in recipe.steps:
        image = _OPERATORS[type(step)](step, image, recipe.size)
    mirror = fn.random.coin_flip() if recipe.find(s.Flip) is not None else 0
    normalise = recipe.find(s.Normalise)
    mean = [255 * m for m in normalise.mean] if normalise is not None else [0.0]
    std = [255 * d for d in normalise.std] if normalise is not None else [1.0]
    image = fn.crop_mirror_normalize(image, mirror=mirror, mean=mean, std=std, dtype=types.FLOAT, output_layout="HWC")
    return image, label


def _source(recipe: Recipe, data: Dataset) -> tuple[Any, Any]:
    """Shuffled images, decoded, and their labels."""
    from nvidia.dali import fn, types

    if recipe.data == "arrays":
        return fn.external_source(source=_gather(recipe, data), num_outputs=2, batch=True, layout=["HWC", ""])
    photos = data.photos(recipe)
    files, labels = list(photos.files), list(photos.labels)
    encoded, label = fn.readers.file(files=files, labels=labels, random_shuffle=True, initial_fill=len(files))
    crop = recipe.find(s.RandomResizedCrop)
    if crop is not None:
        areas, aspects = list(crop.area), list(crop.aspect)
        return fn.decoders.image_random_crop(encoded, device="cpu", random_area=areas, random_aspect_ratio=aspects), label
    return fn.decoders.image(encoded, device="cpu", output_type=types.RGB), label


def _gather(recipe: Recipe, data: Dataset) -> Callable[[], list[Any]]:
    """Random examples out of the arrays, a batch at a time."""
    import numpy as np

    images, labels = data.arrays
    rng = np.random.default_rng(0)

    def gather() -> list[Any]:
        chosen = rng.integers(0, len(images), recipe.batch)
        return [images[chosen], labels[chosen, None].astype(np.int32)]

    return gather


def _last(_step: s.Step, image: Any, _side: int) -> Any:
    """Flip and normalisation are one operator, at the end."""
    return image


def _resize(_step: s.Step, image: Any, side: int) -> Any:
    from nvidia.dali import fn, types

    return fn.resize(image, size=[side, side], interp_type=types.INTERP_LINEAR, antialias=False)


def _affine(step: s.Affine, image: Any, side: int) -> Any:
    from nvidia.dali import fn, types

    return fn.warp_affine(image, matrix=_matrix(step, side), interp_type=types.INTERP_LINEAR, inverse_map=False)


def _brightness(step: s.Brightness, image: Any, _side: int) -> Any:
    from nvidia.dali import fn

    return fn.brightness(image, brightness=_around(step.amount))


def _jitter(step: s.ColorJitter, image: Any, _side: int) -> Any:
    from nvidia.dali import fn

    return fn.color_twist(
        image,
        brightness=_around(step.brightness),
        contrast=_around(step.contrast),
        saturation=_around(step.saturation),
        hue=fn.random.uniform(range=[-step.hue, step.hue]),
    )


def _blur(step: s.Blur, image: Any, _side: int) -> Any:
    """A branch: only the examples that are drawn are blurred."""
    from nvidia.dali import fn, types

    if fn.random.coin_flip(probability=step.probability, dtype=types.BOOL):
        image = fn.gaussian_blur(image, window_size=step.kernel, sigma=fn.random.uniform(range=list(step.sigma)))
    return image


def _rand_augment(step: s.RandAugment, image: Any, side: int) -> Any:
    from nvidia.dali.auto_aug import rand_augment

    return rand_augment.rand_augment(image, n=step.layers, m=round(30 * step.magnitude), shape=(side, side))


def _around(amount: float) -> Any:
    """Factors around 1, one for each image."""
    from nvidia.dali import fn

    return fn.random.uniform(range=[1 - amount, 1 + amount])


def _matrix(step: s.Affine, side: int) -> Any:
    """Zoom, shear, rotation and translation as one matrix, about the centre."""
    from nvidia.dali import fn

    centre = [side / 2, side / 2]
    zoom = fn.stack(_around(step.zoom), _around(step.zoom))
    shift = fn.random.uniform(range=[-step.translation * side, step.translation * side], shape=[2])
    shear = fn.stack(fn.random.uniform(range=[-step.shear, step.shear]), 0.0)
    matrix = fn.transforms.scale(scale=zoom, center=centre)
    matrix = fn.transforms.shear(matrix, angles=shear, center=centre)
    matrix = fn.transforms.rotation(matrix, angle=fn.random.uniform(range=[-step.rotation, step.rotation]), center=centre)
    return fn.transforms.translation(matrix, offset=shift)


_OPERATORS: dict[type[s.Step], Callable[[Any, Any, int], Any]] = {
    s.Resize: _resize,
    s.RandomResizedCrop: _resize,
    s.Flip: _last,
    s.Affine: _affine,
    s.Brightness: _brightness,
    s.ColorJitter: _jitter,
    s.Blur: _blur,
    s.RandAugment: _rand_augment,
    s.Normalise: _last,
}
