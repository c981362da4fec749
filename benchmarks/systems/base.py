"""What a system is: something that turns images into batches, one way."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe

FILES = ("photos", "large", "png")
"""The kinds of data that are files."""


def cores() -> int:
    """The processor cores that this process may use, which every system gets."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class System(ABC):
    """One way of reading and augmenting.

    What a system lacks and what it does differently is data, by step, so that its row can say so.
    """

    name: ClassVar[str]
    is_limit: ClassVar[bool] = False
    """Whether this does less work on purpose, as a bound on what any system can reach."""
    remark: ClassVar[str] = ""
    """What to know when reading any of its rows."""
    remarks: ClassVar[Mapping[type[s.Step], str]] = {}
    """What it does differently at a step."""
    lacks: ClassVar[Mapping[type[s.Step], str]] = {}
    """Steps that it cannot do, and why."""
    heavy: ClassVar[bool] = False
    """Whether the steps of `HEAVY` are written for it."""
    reads: ClassVar[tuple[str, ...]] = (*FILES, "arrays")
    """The kinds of data that it reads."""
    caches: ClassVar[bool] = False
    """Whether it can keep decoded images."""

    def note(self, recipe: Recipe) -> str:
        """What differs from the recipe, or what to know when reading the row."""
        return "; ".join(filter(None, (self.remark, *(self.remarks.get(type(step), "") for step in recipe.steps))))

    def refuse(self, recipe: Recipe, data: Dataset) -> None:
        """Tell what the system lacks for a recipe, or what the run does.

        Raises:
            UnavailableError: If anything is missing.
        """
        if recipe.data not in self.reads:
            raise UnavailableError(f"it reads no {'arrays' if recipe.data == 'arrays' else 'such files'}")
        if recipe.cached and not self.caches:
            raise UnavailableError("it has no cache of decoded images")
        if not self.heavy and any(isinstance(step, s.HEAVY) for step in recipe.steps):
            raise UnavailableError("these steps are not written for it here")
        for step in recipe.steps:
            if type(step) in self.lacks:
                raise UnavailableError(self.lacks[type(step)])
        if recipe.data != "arrays":
            data.photos(recipe)

    @abstractmethod
    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        """An endless iterator of (images, labels), shuffled; closed after its turn, when it has a `close`.

        Where the recipe is `cached`, the cache is full before the first batch.

        Raises:
            UnavailableError: If this system cannot run the recipe here.
        """

    def forget(self) -> None:
        """Let go of what was kept between the turns of a recipe."""
        return


class SystemWithFiles(System):
    """A system that reads files of its own, which are written before its first turn and removed after the last."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._written: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """Where its files are."""
        self._written = self._written or tempfile.TemporaryDirectory()
        return Path(self._written.name)

    def forget(self) -> None:
        if self._written is not None:
            self._written.cleanup()
        self._written = None
