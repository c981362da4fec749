"""How it is measured: interleaved turns of every system, warmed up, compared within a repeat."""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import signal
import statistics
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import processes
from benchmarks.data import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe
    from benchmarks.systems import System

LEAST_WARM_UP = 2
"""Batches handed over before timing starts, at the least."""
QUIET_S = 0.1
"""Between two looks at whether threads rest; other programs may keep one waiting for a good part of that."""
_RESTING = 1 / 40
"""The share of a processor that threads take which rest."""
LONGEST_TURN_S = 240
"""A turn that takes longer has hung: a worker process that died, most likely."""


@dataclass
class Row:
    """What one system did on one recipe.

    Attributes:
        recipe: The recipe.
        system: The system.
        rates: Images per second, one for each repeat.
        first_batch_s: Seconds to the first batch of the first turn: tracing, compiling, reading, starting processes.
        problem: Why it could not run; empty when it did.
        processor_ms: Milliseconds of processor time for an image, in all processes of the system; one for each repeat, none where unknown.
    """

    recipe: Recipe
    system: System
    rates: list[float] = field(default_factory=list)
    first_batch_s: float | None = None
    problem: str = ""
    processor_ms: list[float] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """The median rate, in images per second."""
        return statistics.median(self.rates) if self.rates else None

    def ratio(self, baseline: Row) -> float | None:
        """This rate divided by the baseline's."""
        return ratio(self.rates, baseline.rates)


def ratio(rates: Sequence[float], baseline: Sequence[float]) -> float | None:
    """The median over the repeats of a rate divided by the baseline's in the same repeat; `None` where one did not run.

    A machine that slows down in the middle of a run then favours neither.
    """
    pairs = list(zip(rates, baseline, strict=False))
    return statistics.median(mine / theirs for mine, theirs in pairs) if pairs else None


def rested() -> float:
    """Waits for all threads of this process to rest, when all is read ahead that will be.

    Returns:
        The processor time that the process has used, in seconds.
    """
    before, now = -1.0, time.process_time()
    while now - before > _RESTING * QUIET_S:
        time.sleep(QUIET_S)
        before, now = now, time.process_time()
    return now


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        repeats: Turns of each system.
        seconds: How long a turn is timed, in whole batches.
        images: A turn ends after so many images in any case; `None` for no such bound.
        warm_up: Seconds between the first batch and the clock's start: buffers drained, AUTOTUNE awake.
    """

    repeats: int = 3
    seconds: float = 2.0
    images: int | None = None
    warm_up: float = 1.0


def run(
    recipes: Sequence[Recipe],
    systems: Sequence[System],
    data: Dataset,
    effort: Effort,
    tell: Callable[[Row, int], None],
    done: Callable[[Sequence[Row]], None] = lambda _: None,
) -> list[Row]:
    """Measure every system on every recipe.

    Args:
        recipes: What to measure, one after another.
        systems: Whom.
        data: On what.
        effort: How long.
        tell: Called before each turn with its row and the number of the repeat, from 0.
        done: Called with the rows of each recipe that is finished.
    """
    rows = []
    for recipe in recipes:
        group = [Row(recipe, system) for system in systems]
        for repeat in range(effort.repeats):
            start = repeat % len(group)  # each repeat starts with another system, so that none always follows the same one
            for row in group[start:] + group[:start]:
                if not row.problem:
                    tell(row, repeat)
                    _turn(row, data, effort)
        for system in systems:
            system.forget()
        done(group)
        rows += group
    return rows


def _turn(row: Row, data: Dataset, effort: Effort) -> None:
    """One turn, whose failures become the row's problem."""
    try:
        row.system.refuse(row.recipe, data)
        with _time_limit():
            rate, spent = _rate(row, data, effort)
        row.rates.append(rate)
        row.processor_ms += [] if spent is None else [spent]
    except UnavailableError as error:
        row.problem = f"cannot run: {first_line(error)}"
    except Exception as error:  # a system that breaks is a row that says so; the others go on
        row.problem = f"failed: {type(error).__name__}: {first_line(error)}"
    if row.problem:
        row.rates.clear()
        row.processor_ms.clear()
    gc.collect()  # the threads of a pipeline end with its last reference


def first_line(error: Exception) -> str:
    """What is wrong, in a line; TensorFlow puts the stack of a graph's code before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    if not lines[0].endswith("code:"):
        return lines[0]
    return next((line for line in lines if line.startswith(("ValueError: ", "TypeError: "))), lines[-1])


def _rate(row: Row, data: Dataset, effort: Effort) -> tuple[float, float | None]:
    """Images per second of a fresh iterator, once it is warm, and milliseconds of processor time for each."""
    start = time.perf_counter()
    batches = row.system.batches(row.recipe, data)
    try:
        x, _ = next(batches)
        began = time.perf_counter()
        if row.first_batch_s is None:
            row.first_batch_s = began - start
        if not row.system.is_limit:
            _check(x, row.recipe)
        del x
        warm = 0
        while warm < LEAST_WARM_UP or time.perf_counter() - began < effort.warm_up:
            next(batches)
            warm += 1
        return _timed(batches, row.recipe.batch, effort)
    finally:
        close(batches)


def close(batches: Iterator[tuple[Any, Any]]) -> None:
    """End the worker processes of an iterator, where it has any."""
    with contextlib.suppress(AttributeError):
        batches.close()  # type: ignore[attr-defined] # of a generator


def _timed(batches: Iterator[tuple[Any, Any]], batch: int, effort: Effort) -> tuple[float, float | None]:
    """Images per second over one stretch, and milliseconds of processor time for each, in this process and all below it."""
    images, spent, start = 0, processes.processor_s(os.getpid()), time.perf_counter()
    while True:
        next(batches)
        images += batch
        elapsed = time.perf_counter() - start
        if elapsed >= effort.seconds or (effort.images is not None and images >= effort.images):
            ended = processes.processor_s(os.getpid())
            return images / elapsed, None if spent is None or ended is None else 1000 * (ended - spent) / images


def _check(x: Any, recipe: Recipe) -> None:
    """Every system must hand over the same shape and dtype.

    Raises:
        UnavailableError: If it does not.
    """
    dtype = getattr(x.dtype, "name", str(x.dtype)).removeprefix("torch.")
    if tuple(x.shape) != recipe.shape or dtype != "float32":
        raise UnavailableError(f"it gives {dtype} {tuple(x.shape)}, not float32 {recipe.shape}")


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """End a turn that waits for ever, where signals allow it: in the main thread of a Unix program.

    Raises:
        TimeoutError: After `LONGEST_TURN_S`.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no end after {LONGEST_TURN_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_TURN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def prepare() -> None:
    """Import what every system imports, and keep tensors on the host: the input is measured, not the copy to a device."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(["benchmarks.preload"])
    importlib.import_module("benchmarks.preload")  # before anything else imports TensorFlow
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
