"""Predicts what other settings of `runtime:` would gain, from what was measured."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipegen.memory import available_cores, ram_budget
from pipegen.phases.compilation import optimise
from pipegen.plan.cost import example_bytes
from pipegen.plan.nodes import Cache
from pipegen.profiling.parts import predict_us
from pipegen.spec.models import DiskCache
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.api.pipeline import Pipeline
    from pipegen.plan.cost import Circumstances
    from pipegen.profiling.parts import Part
    from pipegen.profiling.record import Recording

WORTH = 1.1
"""What is promised to gain less is not worth a word."""
_MOST_TIMES = 8
"""How many times as many threads are advised at most: what else there is to share is not known."""
_STAYS = 0.75
"""The share of what no operation accounts for that stays when a cache spares operations: the most of what was measured, a quarter to three
quarters, so that no more is promised than is kept."""
_BLOCKED = 0.5
"""The share of its threads' time in which a pipeline that is blocked neither runs nor waits for a core."""


@dataclass(frozen=True)
class Remedy:
    """Holds a change of `runtime:`.

    Attributes:
        setting: What to write, such as `cache: memory`.
        times: How many times as fast the pipeline would be, as the model of this file says.
        bytes: What it takes in memory or on the disk.
    """

    setting: str
    times: float
    bytes: int = 0

    def __str__(self) -> str:
        size = f", {format_bytes(self.bytes)}" if self.bytes else ""
        return f"`{self.setting}` would make it {self.times:.1f} × faster{size}"


def remedies(pipe: Pipeline, found: Recording, parts: list[Part], given: Circumstances) -> list[Remedy]:
    """Returns the changes that would gain something, the best first.

    Of two that gain nearly the same, memory comes before a disk. What the model takes bounds every gain.
    """
    every = [*_caches(pipe, found, parts, given), *_threads(found)]
    worth = [remedy for remedy in every if remedy.times >= WORTH]
    return sorted(worth, key=lambda remedy: -remedy.times)


def blocked_share(found: Recording) -> float:
    """Returns the share of the measured time in which threads waited for something else than a core: storage, a lock, a sleep."""
    busy = sum(found.trace.busy.values())
    return min(1.0, max(0.0, 1 - (found.trace.cpu + found.trace.queued) / busy)) if busy else 0.0


def is_blocked(found: Recording) -> bool:
    """Returns whether threads are mostly waiting, and not because one lock lets one of them run at a time."""
    return blocked_share(found) > _BLOCKED and found.trace.cpu < 0.7 * found.trace.seconds * min(found.threads, available_cores())


def _bounded(found: Recording, times: float) -> float:
    """Returns what is gained of a speed-up of the pipeline where the model's own time stays."""
    if not found.examples:
        return 1.0
    now = found.seconds / found.examples
    least = (found.model_ms or 0.0) / 1000 * found.batches / found.examples
    return now / max(now / times, least) if least < now else 1.0


def _caches(pipe: Pipeline, found: Recording, parts: list[Part], given: Circumstances) -> Iterator[Remedy]:
    """A cache in memory where it fits, or else on a disk; none where there is one."""
    model, manifest, split = pipe.spec.model, pipe._manifest, found.split
    if any(isinstance(n, Cache) for n in pipe._compiled.splits[split].plan.nodes):
        return
    budget = ram_budget(model.runtime)
    for wanted in ("memory", DiskCache(disk=os.devnull)):
        with_cache = model.model_copy(update={"runtime": model.runtime.model_copy(update={"cache": wanted})})
        count = manifest.num_examples(split)
        plan = optimise(with_cache, pipe._plans[split], num_examples=count, ram_budget=budget, file_bytes=found.file_bytes or None).plan
        node = next((n for n in plan.nodes if isinstance(n, Cache)), None)
        if node is None:
            continue
        size = example_bytes(node.out) * sum(manifest.num_examples(name) for name in pipe.splits)
        if wanted == "memory" and size > budget:
            continue
        alone = [replace(part, us=found.trace.undisturbed * part.us) for part in parts]
        before = sum(part.us for part in alone)
        hidden = _hidden_us(found, before)
        after = predict_us(plan, alone, given) + _STAYS * hidden
        times = _bounded(found, (before + hidden) / max(after, 1e-9))
        yield Remedy("cache: memory" if wanted == "memory" else "cache: {disk: FOLDER}", times, size)
        return


def _hidden_us(found: Recording, measured: float) -> float:
    """Returns the microseconds of threads per example that neither operations nor other programs account for: TensorFlow between them.

    `measured` is the time of the operations, less what they waited for a core that another program had.
    """
    own = max(found.trace.seconds * found.threads - found.trace.queued, found.trace.cpu)
    return max(0.0, 1e6 * own / max(found.traced_examples, 1) - measured)


def _threads(found: Recording) -> Iterator[Remedy]:
    """More threads, where there are cores left, or where threads wait for something else than a core."""
    cores, busy = available_cores(), sum(found.trace.busy.values())
    if not busy:
        return
    if found.threads < cores:
        yield Remedy("threads: auto", _bounded(found, _with_threads(found, cores, cores)))
    elif is_blocked(found):
        wanted = min(_MOST_TIMES * found.threads, max(found.threads + 1, round(found.threads * busy / max(found.trace.cpu, 0.05 * busy))))
        yield Remedy(f"threads: {wanted}", _bounded(found, _with_threads(found, wanted, cores)))


def _with_threads(found: Recording, threads: int, cores: int) -> float:
    """Returns how many times as fast so many threads are: more of them share their time, but no more cores share the processor's."""
    busy, cpu = sum(found.trace.busy.values()), found.trace.cpu
    now = max(busy / found.threads, cpu / min(cores, found.threads))
    return now / max(busy / threads, cpu / min(cores, threads))
