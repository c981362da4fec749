"""The peak memory of pipegen, Keras and PyTorch on each recipe, above what they import: in a process of its own, and those below it."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING

from benchmarks import processes
from benchmarks.data import UnavailableError
from benchmarks.measure import close, first_line, prepare
from benchmarks.systems import SYSTEMS

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe
    from benchmarks.systems import System

KERAS = ("Keras dataset + layers", "ImageDataGenerator")
"""What pipegen's memory is compared to: the first that runs a recipe, which Keras' guides have; its reference calls the second
deprecated."""
MEASURED = ("pipegen", *KERAS, "DataLoader + Albumentations", "DataLoader + torchvision")
"""The systems whose memory is measured."""
BATCHES = 20
"""Taken after the first, by every system: more than are ever on their way at a time, so that every buffer has been full."""
LONGEST_S = 900
_BETWEEN_S = 0.02
"""Between two looks at the memory."""
_ENDING_S = 20
"""How long a process has to end its workers."""
_QUIET_S = 0.5
"""Processes rest that take no processor time for so long."""


def peak(recipe: Recipe, system: System, data: Dataset) -> int | str:
    """Measures the most memory that a system holds beyond its imports, in bytes: while `BATCHES` are taken, and then as it reads ahead.

    It runs in a process that has imported the libraries and done nothing. That one, and all that it starts, are measured together: a
    page that they share counts once.

    Returns:
        The bytes, or why they are not known.
    """
    if not processes.PROC.exists():
        return "it is read from /proc, which Linux has"
    context = multiprocessing.get_context("spawn")  # a fork shares pages with the first process until it writes to them
    here, there = context.Pipe()
    process = context.Process(target=_run, args=(there, recipe, system.name, data))
    process.start()
    there.close()
    try:
        return _watch(here, process.pid or 0)
    except EOFError:
        return "its process died"
    finally:
        here.close()
        process.join(_ENDING_S)
        process.kill()


def _watch(pipe: Connection, root: int) -> int | str:
    """Looks at the memory until the batches are there and the processes rest."""
    end = time.monotonic() + LONGEST_S
    problem = pipe.recv()
    if problem is not None:
        return str(problem)
    before = highest = processes.memory(root)
    pipe.send(None)
    taken, spent, quiet = False, -1.0, end
    while not taken or time.monotonic() < quiet:
        if time.monotonic() > end:
            return f"no end after {LONGEST_S} s"
        if pipe.poll(_BETWEEN_S) and not taken:
            problem, taken = pipe.recv(), True
            if problem is not None:
                return str(problem)
        highest = max(highest, processes.memory(root))
        now = processes.processor_s(root) or 0.0
        if now > spent:
            spent, quiet = now, time.monotonic() + _QUIET_S
    return highest - before


def _run(pipe: Connection, recipe: Recipe, name: str, data: Dataset) -> None:
    """Takes the batches of a system, once the memory before has been seen; then waits for its end."""
    import pipegen

    prepare()
    pipegen.build  # noqa: B018 (its modules are imported when they are used)
    if name.startswith("DataLoader"):  # the server that its workers are forked from has imported the libraries as well
        idle = multiprocessing.get_context("forkserver").Process(target=int)
        idle.start()
        idle.join()
    system = next(each for each in SYSTEMS if each.name == name)
    if recipe.data == "arrays":
        data.arrays  # noqa: B018 (the user's own memory, so it is there before)
    try:
        system.refuse(recipe, data)
        pipe.send(None)
        pipe.recv()
        batches = system.batches(recipe, data)
        for _ in range(1 + BATCHES):
            next(batches)
    except UnavailableError as error:
        pipe.send(first_line(error))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {first_line(error)}")
    else:
        pipe.send(None)
        pipe.poll(None)  # until the other end is closed
        close(batches)
