"""pipegen, through its public API: a spec as a mapping, and the training split's batches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.recipes import Geometric, ImageNet
from benchmarks.systems.base import System, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from benchmarks.recipes import Recipe
    from benchmarks.systems.base import Photos


class PipegenSystem(System):
    """Every image read and decoded every time."""

    name: ClassVar[str] = "pipegen"
    cache: ClassVar[str] = "none"

    def __init__(self) -> None:
        """Nothing is built until it is asked for."""
        self._built: dict[tuple[Recipe, str], tf.data.Dataset] = {}

    def note(self, recipe: Recipe) -> str:
        if isinstance(recipe, Geometric):
            return "JPEGs decoded at half size where that covers the output, plain chroma; resizes to whole levels; one resampling"
        return "decodes the crop alone, at half size where that covers the output, plain chroma"

    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        import pipegen

        key = (recipe, str(photos.root))
        if key not in self._built:
            self._built[key] = pipegen.build(spec(recipe, photos), runtime={"cache": self.cache}).train
        return itertools.chain.from_iterable(itertools.repeat(self._built[key]))


class PipegenCached(PipegenSystem):
    """Decoded and resized images kept in memory: what the second epoch and those after it see."""

    name: ClassVar[str] = "pipegen, warm cache"
    cache: ClassVar[str] = "memory"

    def note(self, recipe: Recipe) -> str:
        return "resized images from memory: less work than the other rows"

    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        if isinstance(recipe, ImageNet):
            raise UnavailableError("the crop is random, so there is nothing of a fixed shape to keep")
        return super().batches(recipe, photos)

    def warm_up_images(self, photos: Photos) -> int:
        """One epoch fills the cache."""
        return len(photos.files)


def spec(recipe: Recipe, photos: Photos) -> dict[str, Any]:
    """The recipe in pipegen's language."""
    return {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(photos.root.resolve())}},
        "transforms": _transforms(recipe),
        "batch": {"size": recipe.batch},
    }


def _transforms(recipe: Recipe) -> list[Any]:
    if isinstance(recipe, Geometric):
        zoom = [1 - recipe.zoom, 1 + recipe.zoom]
        return [
            {"resize": {"size": recipe.size}},
            {"random_rotation": {"degrees": recipe.rotation, "fill": "nearest"}},
            {"random_translation": {"x": recipe.translation, "y": recipe.translation, "fill": "nearest"}},
            {"random_shear": {"degrees": recipe.shear, "fill": "nearest"}},
            {"random_zoom": {"x": zoom, "y": zoom, "fill": "nearest"}},
            {"random_flip": {"fill": "nearest"}},
            {"random_brightness": {"factor": recipe.brightness}},
        ]
    if isinstance(recipe, ImageNet):
        return [
            {"random_resized_crop": {"size": recipe.size}},
            "random_flip",
            {"normalize": {"preset": "torch"}},
        ]
    raise UnavailableError(f"no spec for {recipe.name}")
