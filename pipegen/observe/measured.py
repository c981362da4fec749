"""Runs a split while it is measured: how fast it is by itself or beside a model, and, traced, what its threads do."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
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


WARM = 6
"""Batches before a clock starts: they pay for compiling, and for what TensorFlow finds out about the graph."""
SECONDS = 4.0
"""How long each of the two measurements lasts, without and with a trace."""
_LEAST = 8
"""Batches that each of them has."""


@dataclass
class Recording:
    """Holds what was measured of one split; plain values, which another process may have written.

    Attributes:
        split: The split.
        spec_hash: The meaning of its spec.
        threads: Threads of the pipeline's pool.
        examples_in_split: Examples that the split has.
        file_bytes: The mean size of a stored record, 0 where unknown.
        batches: Batches that were measured without a trace.
        examples: Examples in them.
        seconds: How long they took.
        waited: How long Python waited for them.
        traced_examples: Examples that were handed over while the trace ran.
        traced_batches: Batches of them.
        trace: What its threads did meanwhile.
        model_ms: How long a training step of the model takes; `None` where nothing but the pipeline ran.
        notes: What to know about it.
    """

    split: str
    spec_hash: str
    threads: int
    examples_in_split: int
    file_bytes: float
    batches: int = 0
    examples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    traced_examples: int = 0
    traced_batches: int = 0
    trace: Trace = field(default_factory=Trace)
    model_ms: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def wait_share(self) -> float:
        """The share of the time that the model, or whoever took the batches, waited."""
        return min(1.0, self.waited / self.seconds) if self.seconds else 0.0

    @property
    def rate(self) -> float:
        """Examples per second."""
        return self.examples / self.seconds if self.seconds else 0.0

    def took(self, waiting: Waiting, seconds: float) -> None:
        """Notes what was measured without a trace."""
        self.batches, self.examples, self.seconds, self.waited = waiting.batches, waiting.examples, seconds, waiting.seconds

    def traced(self, waiting: Waiting, trace: Trace) -> None:
        """Notes what was measured with a trace."""
        self.traced_batches, self.traced_examples, self.trace = waiting.batches, waiting.examples, trace


def about(executor: Executor, spec_hash: str) -> Recording:
    """Returns a recording of an executor's split in which nothing is measured yet."""
    records = executor.records
    return Recording(executor.plan.split, spec_hash, executor.setting.threads, len(records), records.mean_bytes)


def record(
    pipe: Pipeline, split: str, *, model_ms: float | None = None, steps: int | None = None, tick: Callable[[int], None] = lambda _: None
) -> Recording:
    """Runs a split, epoch after epoch, first as it is and then traced.

    Args:
        pipe: The pipeline.
        split: The split.
        model_ms: Sleep so long after each batch, as a model on a device would work; without it batches are thrown away at once.
        steps: Batches of each of the two measurements; by default what four seconds allow.
        tick: Called with how many batches are done.

    Raises:
        DataError: If the split has no batch.
    """
    if pipe.steps(split) == 0:
        raise DataError(f"split `{split}` has no batch to measure")
    executor = pipe._engine.executor(split)
    found = about(executor, pipe.spec_hash)
    found.model_ms = model_ms
    batches = _steps(pipe, split, (model_ms or 0.0) / 1000, tick)
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
    """Returns how many batches pass before a clock starts: a few, or all examples once where they fill a cache."""
    return WARM + filling_steps(executor)


def filling_steps(executor: Executor) -> int:
    """Returns in how many batches all examples pass once where they fill a cache; 0 without one."""
    cached = any(isinstance(n, Cache) for n in executor.plan.nodes)
    return -(-len(executor.records) // executor.order.local_batch) if cached else 0


def _some(batches: Iterator[Any], steps: int | None) -> None:
    """Takes so many batches, or what fits into the time."""
    start, done = time.perf_counter(), 0
    while done < (steps or _LEAST) or (steps is None and time.perf_counter() - start < SECONDS):
        next(batches)
        done += 1


def _steps(pipe: Pipeline, split: str, nap: float, tick: Callable[[int], None]) -> Iterator[None]:
    """Takes batches for ever, working on each for so many seconds."""
    dataset, done = pipe[split], 0
    while True:
        for _ in dataset:
            if nap:
                time.sleep(nap)
            done += 1
            tick(done)
            yield
