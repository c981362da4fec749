"""What a system is: something that turns a folder of photographs into batches, one way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.recipes import Recipe


class UnavailableError(Exception):
    """A system cannot run a recipe here; the message says why and becomes its row."""


@dataclass(frozen=True)
class Photos:
    """A folder with one sub-folder of JPEGs per class.

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
    def find(cls, root: Path) -> Photos:
        """List a folder.

        Raises:
            FileNotFoundError: If it holds no `CLASS/*.jpg`.
        """
        found = sorted(root.glob("*/*.jpg"))
        if not found:
            raise FileNotFoundError(f"no CLASS/*.jpg in {root}; `python -m benchmarks.make_photos` makes such a folder")
        classes = tuple(sorted({file.parent.name for file in found}))
        return cls(root, tuple(map(str, found)), tuple(classes.index(file.parent.name) for file in found), classes)


class System(ABC):
    """One way of reading and augmenting."""

    name: ClassVar[str]
    is_limit: ClassVar[bool] = False
    """Whether this does less work on purpose, as a bound on what any system can reach."""

    @abstractmethod
    def note(self, recipe: Recipe) -> str:
        """What differs from the recipe, or what to know when reading the row."""

    @abstractmethod
    def batches(self, recipe: Recipe, photos: Photos) -> Iterator[tuple[Any, Any]]:
        """An endless iterator of (images, labels), shuffled.

        Raises:
            UnavailableError: If this system cannot run the recipe here.
        """

    def warm_up_images(self, photos: Photos) -> int:
        """Images to hand over before timing starts, beyond the usual."""
        return 0
