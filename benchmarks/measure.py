"""How it is measured: interleaved turns of every system, warmed up, compared within a repeat."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.systems import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.recipes import Recipe
    from benchmarks.systems import Photos, System

WARM_UP_BATCHES = 6
"""Batches handed over before timing starts: compiled, buffers drained, AUTOTUNE awake."""


@dataclass
class Row:
    """What one system did on one recipe.

    Attributes:
        recipe: The recipe.
        system: The system.
        rates: Images per second, one for each repeat.
        first_batch_s: Seconds to the first batch of the first turn: tracing, compiling, reading.
        problem: Why it could not run; empty when it did.
    """

    recipe: Recipe
    system: System
    rates: list[float] = field(default_factory=list)
    first_batch_s: float | None = None
    problem: str = ""

    @property
    def median(self) -> float | None:
        """The median rate, in images per second."""
        return statistics.median(self.rates) if self.rates else None

    def ratio(self, baseline: Row) -> float | None:
        """The median over the repeats of this rate divided by the baseline's in the same repeat.

        A machine that slows down in the middle of a run then favours neither.
        """
        pairs = list(zip(self.rates, baseline.rates, strict=False))
        return statistics.median(mine / theirs for mine, theirs in pairs) if pairs else None


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        repeats: Turns of each system.
        images: Images in a turn.
        seconds: A turn ends after this many seconds even if fewer images came.
    """

    repeats: int = 3
    images: int = 1920
    seconds: float = 15.0


def run(
    recipes: Sequence[Recipe], systems: Sequence[System], photos: Photos, effort: Effort, tell: Callable[[Row, int], None]
) -> list[Row]:
    """Measure every system on every recipe.

    Args:
        recipes: What to measure.
        systems: Whom.
        photos: On what.
        effort: How long.
        tell: Called before each turn with its row and the number of the repeat, from 0.
    """
    rows = [Row(recipe, system) for recipe in recipes for system in systems]
    for repeat in range(effort.repeats):
        for recipe in recipes:
            group = [row for row in rows if row.recipe is recipe]
            start = repeat % len(group)  # each repeat starts with another system, so that none always follows the same one
            for row in group[start:] + group[:start]:
                if not row.problem:
                    tell(row, repeat)
                    _turn(row, photos, effort)
    return rows


def _turn(row: Row, photos: Photos, effort: Effort) -> None:
    """One turn, whose failures become the row's problem."""
    try:
        row.rates.append(_rate(row, photos, effort))
    except UnavailableError as error:
        row.problem = f"cannot run: {error}"
    except Exception as error:  # a system that breaks is a row that says so; the others go on
        row.problem = f"failed: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    if row.problem:
        row.rates.clear()
    gc.collect()  # the threads of a pipeline end with its last reference


def _rate(row: Row, photos: Photos, effort: Effort) -> float:
    """Images per second of a fresh iterator, once it is warm."""
    start = time.perf_counter()
    batches = row.system.batches(row.recipe, photos)
    x, _ = next(batches)
    if row.first_batch_s is None:
        row.first_batch_s = time.perf_counter() - start
    if not row.system.is_limit:
        _check(x, row.recipe)
    warm_up = WARM_UP_BATCHES + -(-row.system.warm_up_images(photos) // row.recipe.batch)
    for _ in range(warm_up):
        next(batches)
    return _timed(batches, row.recipe.batch, effort)


def _timed(batches: Iterator[tuple[Any, Any]], batch: int, effort: Effort) -> float:
    """Images per second over one stretch."""
    images, start = 0, time.perf_counter()
    while True:
        next(batches)
        images += batch
        elapsed = time.perf_counter() - start
        if images >= effort.images or elapsed >= effort.seconds:
            return images / elapsed


def _check(x: Any, recipe: Recipe) -> None:
    """Every system must hand over the same shape and dtype.

    Raises:
        UnavailableError: If it does not.
    """
    dtype = getattr(x.dtype, "name", str(x.dtype))
    if tuple(x.shape) != recipe.shape or dtype != "float32":
        raise UnavailableError(f"it gives {dtype} {tuple(x.shape)}, not float32 {recipe.shape}")
