"""Runs a training script in a separate process, and profiles the pipeline in it.

The process is `python -m pipegen.observe.training REPORT FORM HASH SPLIT SCRIPT ARGUMENT...`. Apart from the measuring it is the user's
program: it has the terminal, the working directory, the arguments and the environment, and its exit code is the command's.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import runpy
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.observe.measured import WARM, about, measuring
from pipegen.observe.watch import HOUR, Child
from pipegen.terminal import note
from pipegen.waiting import Waiting

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.backend.running.execute import Executor


Said = tuple[str, str]  # a report, and its sentence


def profile_script(script: str, given: Sequence[str], *, spec_hash: str, split: str, form: str) -> tuple[int, Said | None]:
    """Runs a Python script with its arguments, and profiles the split of the pipeline in it. Returns the exit code of the script, as a
    shell has it; and the report as `text`, `json` or `html`, `None` after too few batches."""
    with tempfile.TemporaryDirectory(prefix="pipegen-profile-") as folder:
        report = Path(folder) / "report.json"
        child = Child([sys.executable, "-m", __name__, str(report), form, spec_hash, split, script, *given], os.environ)
        try:
            code = child.wait(lambda: HOUR, HOUR).code
        finally:
            child.released()
        try:
            said: Said | None = tuple(json.loads(report.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            said = None
    return code, said


def _profiled(report: Path, form: str, spec_hash: str, split: str) -> Generator[None, Waiting, None]:
    """Waits for the pipeline to be warm, measures the split without and with a trace, and writes the report.

    It is sent the count of each batch of any pipeline, and watches the first that hands over batches of the split. When it is closed, it
    writes what was measured so far.
    """
    watched = None
    while watched is None:
        waiting = yield
        watched = _owner(waiting) if waiting.split == split else None
    pipe, executor = watched
    found = about(executor)
    if pipe.spec_hash != spec_hash:
        found.notes.append("the measured pipeline of the script has another spec than the one that was named")
    import tensorflow as tf

    run = measuring(found, executor)
    try:
        while waiting is not executor.waiting or waiting.batches <= WARM or next(run, True) is None:
            waiting = yield
    except tf.errors.OpError:
        found.notes.append("the script runs TensorFlow's profiler itself, so nothing could be traced")
    finally:
        run.close()
        if found.traced_examples:
            from pipegen.observe.profile import analyse

            found.model_ms = 1000 * (found.seconds - found.waited) / found.batches
            made = analyse(pipe, found)
            report.write_text(json.dumps([made.rendered(form), made.sentence]), encoding="utf-8")


def _owner(waiting: Waiting) -> tuple[Pipeline, Executor] | None:
    """Finds the pipeline and its executor that a count of batches belongs to."""
    from pipegen.api.pipeline import LIVE

    every = ((pipe, executor) for pipe in list(LIVE) for executor in pipe._engine.executors())
    return next(((pipe, executor) for pipe, executor in every if executor.waiting is waiting), None)


def _main(arguments: list[str]) -> None:
    from pipegen.waiting import WATCHERS

    report, form, spec_hash, split, script, *given = arguments
    profiled, lock = _profiled(Path(report), form, spec_hash, split), threading.Lock()
    next(profiled)

    def look(waiting: Waiting) -> None:
        """Sends the count of a batch; an error here does not stop the script."""
        try:
            with lock, contextlib.suppress(StopIteration):  # it has ended
                profiled.send(waiting)
        except Exception as error:
            note(f"pipegen: profiling failed; the script continues: {type(error).__name__}: {error}")

    def end() -> None:
        with contextlib.suppress(Exception):
            profiled.close()

    WATCHERS.append(look)
    atexit.register(end)
    sys.argv = [script, *given]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    _main(sys.argv[1:])
