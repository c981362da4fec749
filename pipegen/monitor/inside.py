"""Watches the process that it runs in, on a thread of its own."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pipegen.monitor.record import Record, Row, Steps
from pipegen.monitor.sampler import Sampler
from pipegen.monitor.summary import Summary, live_line
from pipegen.monitor.watch import merged, require
from pipegen.waiting import Wait


class Inside:
    """Watches this process and its descendants until it is stopped.

    Args:
        out: The file of the record, or `None`.
        every: Seconds between samples.
        live: Seconds between lines; 0 for none.
        tell: Called with each line.

    Attributes:
        summary: What the run has come to so far.

    Raises:
        MissingLibrary: Without psutil. `OSError` if the record cannot be made.
    """

    def __init__(self, out: Path | None, every: float, live: float = 0.0, tell: Callable[[str], None] | None = None) -> None:
        require("psutil")
        self.summary = Summary()
        self._record, self._steps = Record(out), Steps()
        self._live, self._tell = live, tell or (lambda _line: None)
        self._waits: list[Wait] = []
        self._lock, self._over = threading.Lock(), threading.Event()
        self._sampler = Sampler(every, clock=time.thread_time)
        self._sampler.start(os.getpid())
        self._cpu_s = 0.0
        self._write([{**self._sampler.about(), "command": sys.argv, "pid": os.getpid()}])
        self._thread = threading.Thread(target=self._run, name="pipegen monitor", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # what ends in an exception has a record, too

    def waited(self, wait: Wait) -> None:
        """Takes note of a wait; on the thread that waited."""
        self._waits.append(wait)

    def mark(self, event: str, **what: int) -> None:
        """Writes that something has begun, such as an epoch."""
        self._write([{"event": event, "t": round(self._sampler.seconds, 3), **what}])

    def stop(self) -> None:
        """Ends the record; a second time it does nothing."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join(10)
        seconds = self._sampler.seconds
        share = self._cpu_s / max(seconds, 1e-9)
        end = {"event": "end", "t": round(seconds, 3), "monitor_cpu_s": round(self._cpu_s, 3), "monitor_share": round(share, 5)}
        self._write([*self._rows_of_waits(seconds), end])
        self._record.close()
        atexit.unregister(self.stop)

    def _run(self) -> None:
        begin, told, pause, lately = time.thread_time(), 0.0, self._sampler.pause(), list[Row]()
        while not self._over.wait(pause):
            row = self._sampler.sample()
            steps = self._rows_of_waits(row["t"])
            self._write([row, *steps])
            lately += steps if self._live else []
            if self._live and row["t"] - told >= self._live:
                self._tell(live_line(row, merged(lately), self.summary.start))
                told, lately = row["t"], []
            self._cpu_s = time.thread_time() - begin
            pause = self._sampler.pause()

    def _rows_of_waits(self, at: float) -> list[Row]:
        waits, self._waits = self._waits, []
        return self._steps.rows(waits, at)

    def _write(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self.summary.add(row)
            self._record.write(rows)
