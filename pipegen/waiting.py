"""Measures how long Python waits for batches, where it waits: in `__next__` of our iterators.

Keras fetches each batch inside of its `train_function`, so its callbacks, which run before and after that, never see the wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any


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
