"""Measures how long Python waits for batches, and hands each wait on to a monitor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol


@dataclass(eq=False)
class Waiting:
    """Adds up what Python has taken of one split in this process, by whichever iterators, and how long it waited for that.

    Attributes:
        split: The split.
        seconds: From asking for a batch to having it, over all batches.
        batches: How many there were.
        examples: Examples in them.
    """

    split: str = ""
    seconds: float = 0.0
    batches: int = 0
    examples: int = 0

    def add(self, seconds: float, batch: Any) -> None:
        """Counts a batch; one that a `tf.function` is traced with is none."""
        first = _first(batch)
        if not hasattr(first, "numpy"):
            return
        self.seconds += seconds
        self.batches += 1
        self.examples += _length(first)
        for watch in WATCHERS:
            watch(self)

    def since(self, earlier: Waiting) -> Waiting:
        """Returns what has come since `earlier`, a copy of this."""
        return Waiting(self.split, self.seconds - earlier.seconds, self.batches - earlier.batches, self.examples - earlier.examples)


WATCHERS: list[Callable[[Waiting], None]] = []
"""Called after each batch that any pipeline of this process hands over to Python, with the count that it went into."""


def num_rows(batch: Any) -> int:
    """Returns how many examples a batch has: the length of its first tensor."""
    return _length(_first(batch))


def _first(batch: Any) -> Any:
    while isinstance(batch, (tuple, list, Mapping)):
        batch = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0]
    return batch


def _length(tensor: Any) -> int:
    shape = tensor.shape
    return int(shape[0] or 0) if len(shape) else 1


class EpochRate:
    """Measures one epoch of a training loop: the share of its time that it waits for batches, and the examples that it takes per second."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self.start()

    def start(self) -> None:
        """Begins an epoch."""
        self._earlier, self._begin = replace(self._waiting), time.perf_counter()
        self._end = self._begin

    def step(self) -> None:
        """Notes that a training step is done; what follows the last one, such as validation, is not measured."""
        self._end = time.perf_counter()

    def logs(self) -> dict[str, float]:
        """Returns `wait_share`, from 0 to 1, and `examples_per_second`; nothing where Python has not seen a batch pass."""
        taken, seconds = self._waiting.since(self._earlier), self._end - self._begin
        if not taken.batches or seconds <= 0:
            return {}
        return {"wait_share": min(1.0, taken.seconds / seconds), "examples_per_second": taken.examples / seconds}


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
