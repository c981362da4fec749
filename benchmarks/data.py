"""The data that recipes read: folders of images, and arrays made up in memory."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.recipes import Recipe

ARRAYS = 50_000
"""Images in memory: as many as CIFAR-10 has for training."""
ARRAY_CLASSES = 10
SUFFIXES = {"photos": "jpg", "large": "jpg", "png": "png"}


class UnavailableError(Exception):
    """A system cannot run a recipe here; the message says why and becomes its row."""


@dataclass(frozen=True)
class Photos:
    """A folder with one sub-folder of images per class.

    Attributes:
        root: The folder.
        files: Every file, sorted.
        labels: The class of each file, as an index into `classes`.
        classes: The names of the sub-folders, sorted.
    """

    root: Path
    files: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]

    @classmethod
    def find(cls, root: Path, suffix: str = "jpg") -> Photos:
        """List a folder.

        Raises:
            FileNotFoundError: If it holds no `CLASS/*.jpg`.
        """
        found = sorted(root.glob(f"*/*.{suffix}"))
        if not found:
            raise FileNotFoundError(f"no CLASS/*.{suffix} in {root}; `python -m benchmarks.make_photos` makes such a folder")
        classes = tuple(sorted({file.parent.name for file in found}))
        return cls(root, tuple(map(str, found)), tuple(classes.index(file.parent.name) for file in found), classes)


class Dataset:
    """Everything that a run reads."""

    def __init__(self, folders: Mapping[str, Photos], arrays: int = ARRAYS) -> None:
        """`folders` by the kind of data; `arrays` is how many images in memory there are."""
        self.folders = dict(folders)
        self.num_arrays = arrays

    def photos(self, recipe: Recipe) -> Photos:
        """The folder that a recipe reads.

        Raises:
            UnavailableError: If there is none.
        """
        if recipe.data not in self.folders:
            raise UnavailableError(f"there is no folder for it; `python -m benchmarks.make_photos --kind {recipe.data}` makes one")
        return self.folders[recipe.data]

    def classes(self, recipe: Recipe) -> int:
        """How many classes there are."""
        return ARRAY_CLASSES if recipe.data == "arrays" else len(self.photos(recipe).classes)

    @functools.cached_property
    def arrays(self) -> tuple[Any, Any]:
        """Images, uint8 `(n, 32, 32, 3)`, and labels, int64 `(n,)`: noise, since nothing depends on what they show."""
        import numpy as np

        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (self.num_arrays, 32, 32, 3), np.uint8)
        return images, rng.integers(0, ARRAY_CLASSES, self.num_arrays)
