"""Runs a training script in a separate process, and profiles the pipeline in it.

The process is `python -m pipegen.observe.training REPORT FORM HASH SPLIT SCRIPT ARGUMENT...`. Apart from the measuring it is the user's
program: it has the terminal, the working directory, the arguments and the environment, and its exit code is the command's.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.observe.measured import SECONDS, WARM, Recording
from pipegen.terminal import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.api.pipeline import Pipeline
    from pipegen.observe.trace import Tracing
    from pipegen.waiting import Waiting


Said = tuple[str, str]  # a report, and its sentence
_LEAST = 4  # the least number of batches of each of the two measurements


def profile_script(script: str, given: Sequence[str], *, spec_hash: str, split: str, form: str) -> tuple[int, Said | None]:
    """Runs a Python script with its arguments, and profiles the split of the pipeline in it. Returns the exit code of the script, as a
    shell has it; and the report as `text`, `json` or `html`, `None` after too few batches."""
    with tempfile.TemporaryDirectory(prefix="pipegen-profile-") as folder:
        report = Path(folder) / "report.json"
        code = _run([sys.executable, "-m", __name__, str(report), form, spec_hash, split, script, *given])
        try:
            said: Said | None = tuple(json.loads(report.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            said = None
    return code, said


def _run(command: list[str]) -> int:
    """Runs a process to its end; Ctrl-C reaches it anyway, and SIGTERM and SIGHUP are forwarded."""
    child = subprocess.Popen(command)  # noqa: S603 - the user's own script
    earlier = {number: signal.signal(number, lambda number, _: child.send_signal(number)) for number in (signal.SIGTERM, signal.SIGHUP)}
    earlier[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = child.wait()
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


class Watch:
    """A watcher that waits for the pipeline to be warm, measures the split without and with a trace, and writes the report."""

    def __init__(self, report: Path, form: str, spec_hash: str, split: str) -> None:
        self._report, self._form, self._hash, self._split = report, form, spec_hash, split
        self._counts: dict[int, int] = {}
        self._pipe: Pipeline | None = None
        self._found: Recording | None = None
        self._before: Waiting | None = None
        self._start = 0.0
        self._tracing: Tracing | None = None
        self._done = False
        self.notes: list[str] = []

    def __call__(self, waiting: Waiting) -> None:
        """Called with each batch of any pipeline; an error here does not stop the script."""
        try:
            self._look(waiting)
        except Exception as error:
            self._done = True
            note(f"pipegen: profiling failed; the script continues: {type(error).__name__}: {error}")

    def _look(self, waiting: Waiting) -> None:
        if self._done or waiting.split != self._split or not self._is_ours(waiting):
            return
        if self._before is None:
            if waiting.batches > WARM:
                self._before, self._start = replace(waiting), time.perf_counter()
            return
        taken, seconds = waiting.since(self._before), time.perf_counter() - self._start
        if taken.batches < 2 * _LEAST or seconds < SECONDS:
            return
        if self._tracing is None:
            self._trace(waiting, taken, seconds)
        else:
            self.finish(waiting)

    def _is_ours(self, waiting: Waiting) -> bool:
        """Decides if a count belongs to the watched pipeline, which is the first that hands over batches of the split."""
        from pipegen.api.pipeline import LIVE

        if self._pipe is None:
            for pipe in list(LIVE):
                if any(executor.waiting is waiting for executor in pipe._engine.executors()):
                    self._pipe, self._waiting = pipe, waiting
                    if pipe.spec_hash != self._hash:
                        self.notes.append("the measured pipeline of the script has another spec than the one that was named")
        return self._pipe is not None and waiting is self._waiting

    def _trace(self, waiting: Waiting, taken: Waiting, seconds: float) -> None:
        import tensorflow as tf

        from pipegen.observe.measured import about
        from pipegen.observe.trace import Tracing
        from pipegen.physical.facts import scopes

        assert self._pipe is not None  # noqa: S101 - a batch of it has come
        executor = next(x for x in self._pipe._engine.executors() if x.waiting is waiting)
        self._found = about(executor, self._pipe.spec_hash)
        self._found.took(taken, seconds)
        self._found.model_ms = 1000 * (seconds - taken.seconds) / taken.batches
        tracing = Tracing(frozenset(scopes(executor.plan).values()))
        try:
            tracing.start()
        except tf.errors.OpError:
            self.notes.append("the script runs TensorFlow's profiler itself, so nothing could be traced")
            self._done = True
            return
        self._tracing, self._before, self._start = tracing, replace(waiting), time.perf_counter()

    def finish(self, waiting: Waiting | None = None) -> None:
        """Ends the trace, if one runs, and writes the report; also called at the end of the script."""
        self._done = True
        tracing, found, pipe = self._tracing, self._found, self._pipe
        if tracing is None or found is None or pipe is None or self._before is None:
            return
        self._tracing = None
        found.traced((waiting or self._waiting).since(self._before), tracing.stop())
        if not found.traced_examples:
            return
        found.notes += self.notes
        from pipegen.observe.profile import analyse

        made = analyse(pipe, found)
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
