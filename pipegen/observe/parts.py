"""The measured times of a plan's nodes and stages, and the expected gains of other settings of `runtime:`."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.frozen import dataclass
from pipegen.memory import available_cores, ram_budget
from pipegen.ops.families.custom import CustomTransform
from pipegen.phases.compilation import optimise
from pipegen.physical.facts import BATCH, CACHE, INDEX, READ, called, scopes
from pipegen.physical.nodes import Examples, Fill, Filter, Map, SliceOwnRows
from pipegen.plan.cost import example_bytes, plan_cost
from pipegen.plan.nodes import Batch, Cache, Element, Index, Kernel, Read
from pipegen.plan.plan_text import stage_text
from pipegen.spec.models import DiskCache
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pipegen.api.pipeline import Pipeline
    from pipegen.observe.measured import Recording
    from pipegen.ops.stage import Stage
    from pipegen.physical.nodes import Physical
    from pipegen.plan.cost import Circumstances, NodeCost
    from pipegen.plan.nodes import Node, Plan


_OWN = {Index: (INDEX, "order and random numbers"), Read: (READ, "reading"), Cache: (CACHE, "the cache"), Batch: (BATCH, "batches")}
"""The scope and the name of a node's own time, beside its stages."""

_UNLIKE = 2.0
"""The largest plausible ratio of made examples to those handed over; beyond it, the part runs at times of its own."""


@dataclass(frozen=True)
class Part:
    """The measured time of one node or stage.

    Attributes:
        name: The names of its steps.
        text: Its line in `explain`.
        us: Microseconds of a thread per example; the cost model has `expected` so many.
        share: Its share of all measured time.
        estimated: The cost model divided the time of a compiled kernel.
    """

    name: str
    text: str
    us: float
    share: float
    estimated: bool
    stage: Stage | None
    node: Node
    expected: float

    @property
    def calls_python(self) -> bool:
        """It calls a function of the user."""
        return self.stage is not None and any(isinstance(ref.step, CustomTransform) for ref in self.stage.uses())


def measured_parts(plan: Plan, recorded: Recording, sizes: Collection[int], given: Circumstances) -> list[Part]:
    """Computes the time of each node and stage of the plan that ran, in order; the cost model divides compiled kernels.

    `sizes` are the plan's `run_sizes`.
    """
    us = {scope: 1e6 * seconds / max(_made(recorded, scope, sizes), 1) for scope, seconds in recorded.trace.busy.items()}
    total = sum(us.values()) or 1.0
    found: list[Part] = []
    for node, cost in zip(plan.nodes, plan_cost(plan, given).nodes, strict=True):
        own = _OWN.get(type(node))
        if own is not None:
            took = us.get(own[0], 0.0)
            found.append(Part(own[1], own[1], took, took / total, False, None, node, cost.us - sum(cost.stages)))
        for stage, took, estimated, expected in _stages(plan, node, cost, us):
            found.append(Part(called(stage), stage_text(stage), took, took / total, estimated, stage, node, expected))
    return found


def run_sizes(ran: Physical) -> tuple[int, ...]:
    """Lists the possible numbers of examples, below a batch, in a run of a part.

    Empty if a plan makes more examples than it hands over, or an epoch at once: then runs do not tell the number of examples.
    """
    more = any(isinstance(o, Filter) or (isinstance(o, Map) and o.grain == "epoch") for o in ran.operations)
    more = more or any(isinstance(function, (Fill, SliceOwnRows)) for function in ran.functions)
    return () if more else tuple({1, *(function.chunk for function in ran.functions if isinstance(function, Examples))})


def _made(found: Recording, scope: str, sizes: Collection[int]) -> float:
    """Estimates the number of examples of a part in the trace.

    It differs from the number handed over meanwhile: some of those were made before, and prefetched ones come later. But it is close
    enough to choose among the possible sizes of a run.
    """
    runs, handed = found.trace.runs.get(scope, 0), found.traced_examples
    if not runs or not handed or not sizes:
        return handed
    possible = [runs * size for size in (*sizes, handed / max(found.traced_batches, 1))]
    nearest = min(possible, key=lambda made: abs(math.log(made / handed)))
    return nearest if 1 / _UNLIKE < nearest / handed < _UNLIKE else handed


def _stages(plan: Plan, node: Node, cost: NodeCost, us: Mapping[str, float]) -> Iterator[tuple[Stage, float, bool, float]]:
    """Yields the stages of a node, with the time of each, true if it is an estimate, and the expected time."""
    if not isinstance(node, (Element, Kernel)):
        return
    names = scopes(plan)
    seen = [us.get(names[id(stage)], 0.0) for stage in node.stages]
    around = us.get(names[id(node)], 0.0) if isinstance(node, Kernel) else 0.0
    estimated = isinstance(node, Kernel) and around > sum(seen) and len(node.stages) > 1
    weights = list(cost.stages) if around > sum(seen) else seen
    whole = sum(weights)
    for stage, own, weight, expected in zip(node.stages, seen, weights, cost.stages, strict=True):
        yield stage, own + around * (weight / whole if whole else 1 / len(node.stages)), estimated, expected


def predict_us(plan: Plan, parts: list[Part], given: Circumstances) -> float:
    """Predicts the microseconds of a thread per example of a plan with a full cache.

    Uses the measured times of another plan of the same spec; parts that this plan lacks come from the cost model, corrected by its
    error there.
    """
    known = {(_key(p.stage) if p.stage is not None else (type(p.node).__name__,)): p.us for p in parts}
    sound = [part for part in parts if part.us and part.expected and not part.calls_python]
    error = min(5.0, max(0.2, sum(p.us for p in sound) / sum(p.expected for p in sound))) if sound else 1.0
    total = 0.0
    for node, cost in zip(plan.nodes, plan_cost(plan, given).nodes, strict=True):
        if cost.cached:
            continue
        own = cost.us - sum(cost.stages)
        total += known.get((type(node).__name__,), error * own) if own else 0.0
        if isinstance(node, (Element, Kernel)):
            total += sum(known.get(_key(stage), error * us) for stage, us in zip(node.stages, cost.stages, strict=True))
    return total


def _key(stage: Stage) -> tuple[object, ...]:
    """Identifies a stage or a kernel in other plans of the spec."""
    return type(stage).__name__, stage.feature, tuple(ref.id for ref in stage.uses())


WORTH = 1.1
"""The least expected speed-up of a remedy."""
_MOST_TIMES = 8
"""The most times as many threads that are advised, since other limits are unknown."""
_STAYS = 0.75
"""The share of the time outside of operations that stays when a cache saves operations. Measurements gave a quarter to three quarters;
the highest is used, so that promises are kept."""
_BLOCKED = 0.5
"""The share of time in which threads of a blocked pipeline neither run nor wait for a core."""


@dataclass(frozen=True)
class Remedy:
    """A change of `runtime:`, such as `cache: memory`; the expected speed-up of the pipeline, and the bytes of memory or disk it needs."""

    setting: str
    times: float
    bytes: int = 0

    def __str__(self) -> str:
        size = f", {format_bytes(self.bytes)}" if self.bytes else ""
        return f"`{self.setting}` would make it {self.times:.1f} × faster{size}"


def remedies(pipe: Pipeline, found: Recording, parts: list[Part], given: Circumstances) -> list[Remedy]:
    """Lists the changes with a worthwhile gain, the best first.

    Memory is preferred to a disk. The model's own time bounds every gain.
    """
    every = [*_caches(pipe, found, parts, given), *_threads(found)]
    worth = [remedy for remedy in every if remedy.times >= WORTH]
    return sorted(worth, key=lambda remedy: -remedy.times)


def blocked_share(found: Recording) -> float:
    """The share of measured time in which threads waited for storage, locks or sleeps, not for a core."""
    busy = sum(found.trace.busy.values())
    return min(1.0, max(0.0, 1 - (found.trace.cpu + found.trace.queued) / busy)) if busy else 0.0


def is_blocked(found: Recording) -> bool:
    """Decides if threads mostly wait, and not for a lock that lets only one of them run."""
    return blocked_share(found) > _BLOCKED and found.trace.cpu < 0.7 * found.trace.seconds * min(found.threads, available_cores())


def _bounded(found: Recording, times: float) -> float:
    """Limits a speed-up of the pipeline by the model's own time."""
    if not found.examples:
        return 1.0
    now = found.seconds / found.examples
    least = (found.model_ms or 0.0) / 1000 * found.batches / found.examples
    return now / max(now / times, least) if least < now else 1.0


def _caches(pipe: Pipeline, found: Recording, parts: list[Part], given: Circumstances) -> Iterator[Remedy]:
    """Yields a cache in memory if it fits, else on a disk; none if there is one already."""
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
    """The microseconds of threads per example outside of operations and of waits for cores: TensorFlow's own overhead.

    `measured` is the time of the operations, without waits for a core that another program had.
    """
    own = max(found.trace.seconds * found.threads - found.trace.queued, found.trace.cpu)
    return max(0.0, 1e6 * own / max(found.traced_examples, 1) - measured)


def _threads(found: Recording) -> Iterator[Remedy]:
    """Yields more threads if cores are left, or if threads wait for something else than a core."""
    cores, busy = available_cores(), sum(found.trace.busy.values())
    if not busy:
        return
    if found.threads < cores:
        yield Remedy("threads: auto", _bounded(found, _with_threads(found, cores, cores)))
    elif is_blocked(found):
        wanted = min(_MOST_TIMES * found.threads, max(found.threads + 1, round(found.threads * busy / max(found.trace.cpu, 0.05 * busy))))
        yield Remedy(f"threads: {wanted}", _bounded(found, _with_threads(found, wanted, cores)))


def _with_threads(found: Recording, threads: int, cores: int) -> float:
    """Computes the speed-up of a number of threads: they share the waits, but the number of cores bounds processor time."""
    busy, cpu = sum(found.trace.busy.values()), found.trace.cpu
    now = max(busy / found.threads, cpu / min(cores, found.threads))
    return now / max(busy / threads, cpu / min(cores, threads))
