"""pipegen, through its public API: a spec as a mapping, and the training split's batches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems.base import System

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


STEPS = 400
"""Steps of an epoch. It goes on through the permutations, as the other systems repeat their data without end: pipegen reads
ahead within an epoch alone."""


class PipegenSystem(System):
    """A spec of the recipe; no cache unless the recipe is about caches."""

    name: ClassVar[str] = "pipegen"
    remarks: ClassVar = {
        s.Resize: "JPEGs decoded at 1/2 to 1/8 where that covers the output, plain chroma; resizes to whole levels",
        s.RandomResizedCrop: "decodes the crop alone, at 1/2 to 1/8 where that covers the output, plain chroma",
        s.Affine: "one resampling",
        s.RandAugment: "tables and sharpness first, then one resampling, then one colour matrix",
        s.MixUp: "partners within groups of 8",
    }
    caches: ClassVar[bool] = True
    heavy: ClassVar[bool] = True

    def __init__(self) -> None:
        """Nothing is built until it is asked for."""
        self._built: dict[tuple[Recipe, int], Any] = {}

    def forget(self) -> None:
        self._built.clear()

    def note(self, recipe: Recipe) -> str:
        return "resized images from memory" if recipe.cached else super().note(recipe)

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        key = recipe, id(data)
        if key not in self._built:
            self._built[key] = build(recipe, data).train
            if recipe.cached:
                for _ in itertools.islice(self._built[key], -(-len(data.photos(recipe).files) // recipe.batch)):
                    pass
        return itertools.chain.from_iterable(itertools.repeat(self._built[key]))


def build(recipe: Recipe, data: Dataset, steps: int | None = STEPS) -> Any:
    """The pipeline of a recipe; without `steps` an epoch is a pass over the data.

    Raises:
        UnavailableError: If the spec is refused.
    """
    import pipegen

    made = spec(recipe, data) | ({} if steps is None else {"epoch": {"steps": steps}})
    given = {"image": data.arrays[0], "label": data.arrays[1]} if recipe.data == "arrays" else None
    try:
        return pipegen.build(made, data=given, runtime={"cache": "memory" if recipe.cached else "none"})
    except pipegen.SpecError as error:
        raise UnavailableError(str(error)) from error


def spec(recipe: Recipe, data: Dataset) -> dict[str, Any]:
    """The recipe in pipegen's language, an epoch being a pass over the data."""
    if recipe.data == "arrays":
        features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": data.classes(recipe)}}
        source: dict[str, Any] = {"arrays": {"features": features}}
    else:
        source = {"image_folder": {"path": str(data.photos(recipe).root.resolve())}}
    sections: dict[str, Any] = {
        "pipegen": 1,
        "source": source,
        "transforms": [part for step in recipe.steps for part in transforms(step, recipe.size)],
        "batch": {"size": recipe.batch},
    }
    if recipe.combines:
        sections["output"] = {"encode": {"label": "one_hot"}}
    return sections


def transforms(step: s.Step, side: int) -> list[Any]:
    """One step in pipegen's language."""
    match step:
        case s.Resize():
            return [{"resize": {"size": side}}]
        case s.RandomResizedCrop():
            return [{"random_resized_crop": {"size": side, "area": list(step.area), "aspect_ratio": list(step.aspect)}}]
        case s.Flip():
            return [{"random_flip": {"fill": "nearest"}}]
        case s.Affine():
            zoom, fill = [1 - step.zoom, 1 + step.zoom], {"fill": "nearest"}
            return [
                {"random_rotation": {"degrees": step.rotation} | fill},
                {"random_translation": {"x": step.translation, "y": step.translation} | fill},
                {"random_shear": {"degrees": step.shear} | fill},
                {"random_zoom": {"x": zoom, "y": zoom} | fill},
            ]
        case s.Brightness():
            return [{"random_brightness": {"factor": step.amount}}]
        case s.ColorJitter():
            factors = {f"{name}_factor": getattr(step, name) for name in ("brightness", "contrast", "saturation")}
            return [{"random_color_jitter": factors | {"hue_degrees": step.hue}}]
        case s.Blur():
            return [{"random_gaussian_blur": {"sigma": list(step.sigma), "probability": step.probability}}]
        case s.RandAugment():
            return [{"rand_augment": {"num_ops": step.layers, "magnitude": step.magnitude, "max_magnitude": 1}}]
        case s.MixUp():
            return [{"mixup": {"alpha": step.alpha}}]
        case s.CutMix():
            return [{"cutmix": {"alpha": step.alpha}}]
        case s.Normalise():
            return [{"normalize": {"mean": [255 * m for m in step.mean], "std": [255 * d for d in step.std]}}]
    return heavy(step)


def heavy(step: s.Step) -> list[Any]:
    """One of the `HEAVY` steps in pipegen's language."""
    match step:
        case s.Clahe():
            return [{"random_clahe": {"limit": list(step.limit)}}]
        case s.GridDistortion():
            return [{"random_grid_distortion": {"factor": step.amount, "cells": step.cells}}]
        case s.CoarseDropout():
            return [{"random_coarse_dropout": {"holes": list(step.holes), "height": list(step.side), "width": list(step.side)}}]
        case s.HsvShift():
            return [{"random_hsv": {"hue_degrees": step.hue, "saturation_delta": step.saturation, "value_delta": step.value}}]
        case s.Jpeg():
            return [{"random_jpeg": {"quality": list(step.quality)}}]
        case s.Gamma():
            return [{"random_gamma": {"gamma": step.amount}}]
        case s.D4():
            return ["random_d4"]
    raise NotImplementedError(type(step).__name__)
