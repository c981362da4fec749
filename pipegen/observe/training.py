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
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.observe.measured import WARM, Recording, about, measuring
from pipegen.observe.watch import HOUR, Child
from pipegen.terminal import note

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pipegen.api.pipeline import Pipeline
    from pipegen.backend.running.execute import Executor
    from pipegen.waiting import Waiting


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


class Watch:
    """A watcher that waits for the pipeline to be warm, measures the split without and with a trace, and writes the report."""

    def __init__(self, report: Path, form: str, spec_hash: str, split: str) -> None:
        self._report, self._form, self._hash, self._split = report, form, spec_hash, split
        self._lock = threading.Lock()
        self._watched: tuple[Pipeline, Executor] | None = None
        self._measuring: tuple[Recording, Generator[None, None, None]] | None = None
        self._done = False
        self.notes: list[str] = []

    def __call__(self, waiting: Waiting) -> None:
        """Called with each batch of any pipeline; an error here does not stop the script."""
        try:
            with self._lock:
                self._look(waiting)
        except Exception as error:
            self._done = True
            note(f"pipegen: profiling failed; the script continues: {type(error).__name__}: {error}")

    def _look(self, waiting: Waiting) -> None:
        import tensorflow as tf

        if self._done or waiting.split != self._split or (executor := self._find(waiting)) is None or waiting.batches <= WARM:
            return
        if self._measuring is None:
            found = about(executor)
            self._measuring = found, measuring(found, executor)
        try:
            is_over = next(self._measuring[1], True)
        except tf.errors.OpError:
            self.notes.append("the script runs TensorFlow's profiler itself, so nothing could be traced")
            self._done = True
            return
        if is_over:
            self.finish()

    def _find(self, waiting: Waiting) -> Executor | None:
        """Finds the executor of the watched pipeline, the first that hands over batches of the split, if a count belongs to it."""
        from pipegen.api.pipeline import LIVE

        for pipe in list(LIVE) if self._watched is None else ():
            for executor in (x for x in pipe._engine.executors() if x.waiting is waiting):
                self._watched = pipe, executor
                if pipe.spec_hash != self._hash:
                    self.notes.append("the measured pipeline of the script has another spec than the one that was named")
        return self._watched[1] if self._watched is not None and self._watched[1].waiting is waiting else None

    def finish(self) -> None:
        """Ends the measurement, and writes the report; also called at the end of the script."""
        self._done = True
        if self._measuring is None or self._watched is None:
            return
        (found, run), self._measuring = self._measuring, None
        run.close()
        if not found.traced_examples:
            return
        found.model_ms = 1000 * (found.seconds - found.waited) / found.batches
        found.notes += self.notes
        from pipegen.observe.profile import analyse

        made = analyse(self._watched[0], found)
        self._report.write_text(json.dumps([made.rendered(self._form), made.sentence]), encoding="utf-8")


def _main(arguments: list[str]) -> None:
    from pipegen.waiting import WATCHERS

    report, form, spec_hash, split, script, *given = arguments
    watch = Watch(Path(report), form, spec_hash, split)
    WATCHERS.append(watch)

    def end() -> None:
        with contextlib.suppress(Exception):
            watch.finish()

    atexit.register(end)
    sys.argv = [script, *given]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    _main(sys.argv[1:])
