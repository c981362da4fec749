"""Hands each wait for a batch on to a monitor: one in this process, or `pipegen monitor` in another, by a pipe that `PIPEGEN_WAITS` names.

Measured they are elsewhere, in `__next__` of our iterators.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

VARIABLE = "PIPEGEN_WAITS"
"""Names the pipe of a monitor to the processes that it watches."""


class Count(Protocol):
    """Counts the waits of one split in this process."""

    split: str
    seconds: float
    batches: int


class Wait(NamedTuple):
    """Holds one batch's wait.

    Attributes:
        pid: The process that waited.
        ended: When the batch was there, in seconds since 1970.
        seconds: How long it was waited for.
        step_seconds: The time of the whole step: since the batch before, of whichever split, was there; for a process's first, its wait.
        split: The split.
    """

    pid: int
    ended: float
    seconds: float
    step_seconds: float
    split: str

    def as_line(self) -> bytes:
        """Returns it as a line of the pipe."""
        return f"{self.pid} {self.ended:.4f} {self.seconds:.6f} {self.step_seconds:.6f} {self.split}\n".encode()


class Waits:
    """Turns counts that grow into single waits; to be called with a split's count after each batch.

    Args:
        tell: Called with each wait, on the thread that waited.
    """

    def __init__(self, tell: Callable[[Wait], object]) -> None:
        self._tell = tell
        self._seen: dict[str, float] = {}
        self._there: float | None = None

    def __call__(self, count: Count) -> None:
        """Takes note of a batch."""
        now, earlier, before = time.perf_counter(), self._there, self._seen.get(count.split)
        self._seen[count.split], self._there = count.seconds, now
        if before is None and count.batches > 1:  # those before came while nobody asked
            return
        seconds = max(0.0, count.seconds - (before or 0.0))
        self._tell(Wait(os.getpid(), time.time(), seconds, seconds if earlier is None else max(seconds, now - earlier), count.split))


def for_monitor() -> Waits | None:
    """Returns what writes each wait into the monitor's pipe, or `None` where none watches.

    Where nobody reads any more, or the pipe is full, training goes on as if there were no monitor.
    """
    try:
        pipe = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (KeyError, OSError):
        return None

    def write(wait: Wait) -> None:
        try:
            os.write(pipe, wait.as_line())  # less than PIPE_BUF, so whole, whichever processes write
        except OSError:
            return

    return Waits(write)
