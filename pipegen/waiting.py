"""The time that Python waits for batches, and its report to a monitor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


@dataclass(eq=False)
class Waiting:
    """The batches of a split that Python has taken in this process, by any iterator, and the time that it waited for them.

    `seconds` go from the request of a batch to its arrival, summed over all batches.
    """

    split: str = ""
    seconds: float = 0.0
    batches: int = 0
    examples: int = 0

    def add(self, seconds: float, batch: Any) -> None:
        """Counts a batch; ignores symbolic ones, with which a `tf.function` is traced."""
        first = first_part(batch)
        if not hasattr(first, "numpy"):
            return
        self.seconds += seconds
        self.batches += 1
        self.examples += _length(first)
        for watch in WATCHERS:
            watch(self)

    def since(self, earlier: Waiting) -> Waiting:
        """Subtracts an earlier copy."""
        return Waiting(self.split, self.seconds - earlier.seconds, self.batches - earlier.batches, self.examples - earlier.examples)


WATCHERS: list[Callable[[Waiting], None]] = []
"""Functions called after each batch that a pipeline of this process hands over to Python, with the updated count."""


def num_rows(batch: Any) -> int:
    """Number of examples in a batch: the length of its first tensor."""
    return _length(first_part(batch))


def first_part(batch: Any) -> Any:
    """First part of a batch, or of its spec: mostly the images."""
    while isinstance(batch, (tuple, list, Mapping)):
        batch = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0]
    return batch


def _length(tensor: Any) -> int:
    shape = tensor.shape
    return int(shape[0] or 0) if len(shape) else 1


class EpochRate:
    """Measurement of an epoch of a training loop: the share of time spent waiting for batches, and the examples per second."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self.start()

    def start(self) -> None:
        self._earlier, self._begin = replace(self._waiting), time.perf_counter()
        self._end = self._begin

    def step(self) -> None:
        """Records the end of a training step; time after the last one, such as validation, is not measured."""
        self._end = time.perf_counter()

    def logs(self) -> dict[str, float]:
        """Computes `wait_share`, from 0 to 1, and `examples_per_second`; empty if Python has seen no batch."""
        taken, seconds = self._waiting.since(self._earlier), self._end - self._begin
        if not taken.batches or seconds <= 0:
            return {}
        return {"wait_share": min(1.0, taken.seconds / seconds), "examples_per_second": taken.examples / seconds}


VARIABLE = "PIPEGEN_WAITS"  # environment variable with the path of a monitor's pipe, for the processes that it watches


class Wait(NamedTuple):
    """The wait of a process for one batch."""

    pid: int
    ended: float  # the time when the batch arrived, in seconds since 1970
    seconds: float
    step_seconds: float  # the time of the whole step, since the previous batch of any split arrived; for the first of a process, its wait
    split: str


class Waits:
    """Converts growing counts into single waits; call it with a split's count after each batch.

    `tell` is called with each wait, on the thread that waited.
    """

    def __init__(self, tell: Callable[[Wait], object]) -> None:
        self._tell = tell
        self._seen: dict[str, float] = {}
        self._there: float | None = None

    def __call__(self, count: Waiting) -> None:
        """Reports the wait for the latest batch."""
        now, earlier, before = time.perf_counter(), self._there, self._seen.get(count.split)
        self._seen[count.split], self._there = count.seconds, now
        if before is None and count.batches > 1:  # earlier batches came before this object was installed
            return
        seconds = max(0.0, count.seconds - (before or 0.0))
        self._tell(Wait(os.getpid(), time.time(), seconds, seconds if earlier is None else max(seconds, now - earlier), count.split))


def for_monitor() -> Waits | None:
    """Makes an object that writes each wait to the monitor's pipe; `None` without a monitor.

    If the pipe is full or has no reader, the wait is dropped, and training continues.
    """
    try:
        pipe = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (KeyError, OSError):
        return None

    def write(wait: Wait) -> None:
        line = f"{wait.pid} {wait.ended:.4f} {wait.seconds:.6f} {wait.step_seconds:.6f} {wait.split}\n"
        try:
            os.write(pipe, line.encode())  # less than PIPE_BUF, so whole, whichever processes write
        except OSError:
            return

    return Waits(write)
