"""Watches a command from its start to its end."""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from pipegen.monitor.pipe import WaitPipe
from pipegen.monitor.record import Record, Row, Steps
from pipegen.monitor.sampler import Sampler
from pipegen.monitor.summary import Summary, live_line
from pipegen.monitor.supervise import Child, Ended

_HOUR = 3600.0


class MissingLibrary(ImportError):
    """Says which library a command needs, and how it is installed."""


def require(*libraries: str) -> None:
    """Makes sure that libraries are there, before anything runs that they are needed for.

    Raises:
        MissingLibrary: If one is not.
    """
    for name in libraries:
        if importlib.util.find_spec(name) is None:
            raise MissingLibrary(f"monitoring needs {name}, which is not installed here: pip install 'pipegen[monitor]'")
    if "psutil" in libraries:  # now, and not while the run is measured
        importlib.import_module("psutil")


class Watch:
    """Watches a command: samples go into a record, lines to whoever wants them, and the summary grows.

    Args:
        command: The program and its arguments.
        out: The file of the record, or `None`.
        every: Seconds between samples.
        live: Seconds between lines; 0 for none.
        tell: Called with each line.

    Attributes:
        summary: What the run has come to so far.
    """

    def __init__(
        self, command: Sequence[str], out: Path | None, *, every: float = 1.0, live: float = 0.0, tell: Callable[[str], None] | None = None
    ) -> None:
        require("psutil")
        self._command, self._out, self._every, self._live = list(command), out, every, live
        self._tell = tell or (lambda _line: None)
        self._steps, self.summary = Steps(), Summary()
        self._told_at = 0.0
        self._lately: list[Row] = []
        """Waits since the latest line."""

    def run(self) -> Ended:
        """Runs the command to its end.

        Raises:
            NotStarted: If it cannot be run. `OSError` if the record cannot be written.
        """
        with ExitStack() as stack:
            self._record = stack.enter_context(Record(self._out))
            self._pipe = WaitPipe()
            stack.callback(self._pipe.close)
            self._sampler: Sampler | None = Sampler(self._every)
            began, spent = time.monotonic(), time.process_time()
            child = Child(self._command, self._pipe.environment(os.environ))
            stack.callback(child.released)
            self._sampler.start(child.pid)
            self._write([{**self._sampler.about(), "command": self._command, "pid": child.pid}])
            ended = child.wait(self._work, self._every)
            seconds, spent = time.monotonic() - began, time.process_time() - spent
            self._end(ended, seconds, spent)
        return ended

    @property
    def whole(self) -> bool:
        """Returns whether all of the record could be written."""
        return self._record.failed is None

    def _work(self) -> float:
        """Takes a sample, and returns when to take the next."""
        if self._sampler is None:
            return _HOUR
        try:
            row = self._sampler.sample()
            steps = self._steps.rows(self._pipe.read(), row["t"])
            self._write([row, *steps])
            self._lately += steps
            if self._live and row["t"] - self._told_at >= self._live - 0.5 * self._every:
                self._say(live_line(row, merged(self._lately), self.summary.start))
                self._told_at, self._lately = row["t"], []
            return self._sampler.pause()
        except Exception as error:  # whatever it is, it is no reason to end somebody's training
            self._sampler = None
            self._say(f"pipegen monitor: no longer watching, and the run goes on: {type(error).__name__}: {error}")
            return _HOUR

    def _end(self, ended: Ended, seconds: float, spent: float) -> None:
        with suppress(Exception):
            self._write(self._steps.rows(self._pipe.read(), seconds))
        how = {"code": ended.code, "signal": ended.signal, "cpu_s": round(ended.cpu_s, 3)}
        own = {"monitor_cpu_s": round(time.process_time(), 3), "monitor_share": round(spent / max(seconds, 1e-9), 5)}
        self._write([{"event": "end", "t": round(seconds, 3), **how, **own}])
        self._record.close()
        if self._record.failed is not None:
            reason = self._record.failed.strerror or self._record.failed
            self._say(f"pipegen monitor: {self._out} is not whole: {str(reason).lower()}")

    def _write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.summary.add(row)
        self._record.write(rows)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._tell(line)


def merged(rows: Iterable[Row]) -> list[Row]:
    """Returns rows of waits as one for each split."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        steps = row["steps"]
        into = found.setdefault(steps["split"], {"split": steps["split"], "wait_ms": [], "step_ms": []})
        into["wait_ms"] += steps["wait_ms"]
        into["step_ms"] += steps["step_ms"]
    return [{"steps": steps} for steps in found.values()]


def temporary_record() -> Path:
    """Makes a file for the record of a run of which only pictures are kept."""
    file, name = tempfile.mkstemp(prefix="pipegen-monitor-", suffix=".jsonl")
    os.close(file)
    return Path(name)
