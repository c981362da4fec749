"""Recordings: the speed of a split alone or with a model, and a trace of its threads."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.observe.trace import Trace, traced
from pipegen.physical.facts import scopes
from pipegen.plan.nodes import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipegen.api.pipeline import Pipeline
    from pipegen.backend.running.execute import Executor
    from pipegen.waiting import Waiting


WARM = 6  # batches before the clock starts, during which TensorFlow compiles and optimises the graph
SECONDS = 4.0  # seconds of each of the two measurements, without and with a trace
_LEAST = 8  # the least number of batches of each measurement


@dataclass
class Recording:
    """The measurements of one split, as plain values."""

    split: str
    spec_hash: str
    threads: int  # threads of the pipeline's pool
    examples_in_split: int
    file_bytes: float  # the mean size of a stored record, 0 if unknown
    batches: int = 0  # batches measured without a trace, with so many `examples` in so many `seconds`, for which Python `waited` in part
    examples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    traced_examples: int = 0
    traced_batches: int = 0  # batches handed over while the trace ran
    trace: Trace = field(default_factory=Trace)
    model_ms: float | None = None  # the time of the model's training step in ms; `None` if only the pipeline ran
    notes: list[str] = field(default_factory=list)

    @property
    def wait_share(self) -> float:
        """The share of the time that the consumer of the batches waited."""
        return min(1.0, self.waited / self.seconds) if self.seconds else 0.0

    @property
    def rate(self) -> float:
        """Examples per second."""
        return self.examples / self.seconds if self.seconds else 0.0

    def took(self, waiting: Waiting, seconds: float) -> None:
        """Stores the measurement without a trace."""
        self.batches, self.examples, self.seconds, self.waited = waiting.batches, waiting.examples, seconds, waiting.seconds

    def traced(self, waiting: Waiting, trace: Trace) -> None:
        """Stores the traced measurement."""
        self.traced_batches, self.traced_examples, self.trace = waiting.batches, waiting.examples, trace


def about(executor: Executor, spec_hash: str) -> Recording:
    """Makes an empty recording of an executor's split."""
    records = executor.records
    return Recording(executor.plan.split, spec_hash, executor.setting.threads, len(records), records.mean_bytes)


def record(
    pipe: Pipeline, split: str, *, model_ms: float | None = None, steps: int | None = None, tick: Callable[[int], None] = lambda _: None
) -> Recording:
    """Runs a split, epoch after epoch, first without and then with a trace: `steps` batches each, or four seconds of them.

    `model_ms` are slept after each batch, in place of a model on a device. `tick` is called with the number of batches done.
    """
    if pipe.steps(split) == 0:
        raise DataError(f"split `{split}` has no batch to measure")
    executor = pipe._engine.executor(split)
    found = about(executor, pipe.spec_hash)
    found.model_ms = model_ms
    batches = endless(pipe, split, (model_ms or 0.0) / 1000, tick)
    for _ in range(warm_steps(executor)):
        next(batches)
    before, start = replace(executor.waiting), time.perf_counter()
    _some(batches, steps)
    found.took(executor.waiting.since(before), time.perf_counter() - start)
    before = replace(executor.waiting)
    with traced(frozenset(scopes(executor.plan).values())) as trace:
        _some(batches, steps)
    found.traced(executor.waiting.since(before), trace)
    return found


def warm_steps(executor: Executor) -> int:
    """Counts the batches before the clock starts: a few, and all examples once to fill a cache."""
    return WARM + filling_steps(executor)


def filling_steps(executor: Executor) -> int:
    """Counts the batches of all examples that fill a cache; 0 without one."""
    cached = any(isinstance(n, Cache) for n in executor.plan.nodes)
    return -(-len(executor.records) // executor.order.local_batch) if cached else 0


def _some(batches: Iterator[Any], steps: int | None) -> None:
    """Takes a number of batches, or as many as fit into the time."""
    start, done = time.perf_counter(), 0
    while done < (steps or _LEAST) or (steps is None and time.perf_counter() - start < SECONDS):
        next(batches)
        done += 1


def endless(pipe: Pipeline, split: str, nap: float = 0.0, tick: Callable[[int], None] = lambda _: None) -> Iterator[Any]:
    """Yields batches for ever, sleeping for some seconds after each; `tick` is called with the number of batches so far."""
    for done, batch in enumerate(chain.from_iterable(repeat(pipe[split])), 1):
        if nap:
            time.sleep(nap)
        tick(done)
        yield batch
