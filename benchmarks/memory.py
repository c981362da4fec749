"""The peak memory of pipegen on each recipe, above the imported TensorFlow, in a process of its own."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import UnavailableError
from benchmarks.systems.pipegen_system import PipegenSystem

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe

STATUS = Path("/proc/self/status")
LONGEST_S = 300
LEAST_BATCHES = 20
"""More than are ever on their way at a time, so that every buffer has been full."""


def peak(recipe: Recipe, data: Dataset, seconds: float) -> int | str:
    """Bytes, or why they are not known. The recipe runs for so many seconds after its first batch, and `LEAST_BATCHES`.

    The process is forked from one that has imported TensorFlow and done nothing.
    """
    if not STATUS.exists():
        return "it is read from /proc, which Linux has"
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(sender, recipe, data, seconds), daemon=True)
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(LONGEST_S) else f"no end after {LONGEST_S} s"
    except EOFError:
        return "its process died"
    finally:
        process.kill()
        process.join()


def _measure(sender: Connection, recipe: Recipe, data: Dataset, seconds: float) -> None:
    """Run pipegen, and send the peak."""
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    if recipe.data == "arrays":
        data.arrays  # noqa: B018 (the user's own memory, so it is there before)
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    try:
        batches = PipegenSystem().batches(recipe, data)
        next(batches)
        taken, end = 0, time.perf_counter() + seconds
        while taken < LEAST_BATCHES or time.perf_counter() < end:
            next(batches)
            taken += 1
    except UnavailableError as error:
        sender.send(str(error).partition("\n")[0])
        return
    sender.send(1024 * (_kilobytes("VmHWM") - before))


def _kilobytes(name: str) -> int:
    """A line of this process's status."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])
