"""Shares the measured time of a plan out to its nodes and stages, and predicts from that what another plan of the same spec would take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.ops.families.custom import CustomTransform
from pipegen.physical.facts import BATCH, CACHE, INDEX, READ, called, scopes
from pipegen.physical.nodes import Examples, Fill, Filter, Map, Own
from pipegen.plan.cost import plan_cost
from pipegen.plan.nodes import Batch, Cache, Element, Index, Kernel, Read
from pipegen.plan.render import stage_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pipegen.physical.nodes import Physical
    from pipegen.plan.cost import Circumstances, NodeCost
    from pipegen.plan.nodes import Node, Plan
    from pipegen.plan.stages import Stage
    from pipegen.profiling.record import Recording

_OWN = {Index: (INDEX, "order and random numbers"), Read: (READ, "reading"), Cache: (CACHE, "the cache"), Batch: (BATCH, "batches")}
"""What is measured of a node beside its stages: in which scope, and what it is called."""

_UNLIKE = 2.0
"""How many times as many examples as were handed over nobody makes in the meantime: the part then runs at times of its own."""

Key = tuple[object, ...]
"""What makes a stage, or a kernel, the same one in another plan of the spec."""


@dataclass(frozen=True)
class Part:
    """Holds what one node or stage took.

    Attributes:
        name: What users call it: its steps.
        text: The line that `explain` has for it.
        us: Microseconds of a thread per example.
        share: The share of all that was measured.
        estimated: Whether it is a share of a compiled kernel, which the cost model made.
        stage: The stage, or `None`.
        node: The node.
        expected: What the cost model says that it takes.
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
        """Returns whether it calls a function of the user."""
        return self.stage is not None and any(isinstance(ref.step, CustomTransform) for ref in self.stage.uses())


def measured_parts(plan: Plan, recorded: Recording, sizes: Collection[int], given: Circumstances) -> list[Part]:
    """Returns what each node and stage took, in their order.

    Args:
        plan: The plan that ran.
        recorded: What was measured of it.
        sizes: What `run_sizes` says of it.
        given: What the cost model goes by within compiled kernels.
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
    """Returns of how many examples, less than a batch, a run of a part may be.

    Nothing where a plan makes more examples than it hands over, or an epoch at once: then runs do not say how many were made.
    """
    more = any(isinstance(o, Filter) or (isinstance(o, Map) and o.grain == "epoch") for o in ran.operations)
    more = more or any(isinstance(function, (Fill, Own)) for function in ran.functions)
    return () if more else tuple({1, *(function.chunk for function in ran.functions if isinstance(function, Examples))})


def _made(found: Recording, scope: str, sizes: Collection[int]) -> float:
    """Returns of how many examples the trace has seen a part.

    They are not those that were handed over meanwhile: some of these were begun, or done, before, and what is made ahead comes later.
    Which of the sizes a run has, and whether it has any, is plain all the same.
    """
    runs, handed = found.trace.runs.get(scope, 0), found.traced_examples
    if not runs or not handed or not sizes:
        return handed
    possible = [runs * size for size in (*sizes, handed / max(found.traced_batches, 1))]
    nearest = min(possible, key=lambda made: abs(math.log(made / handed)))
    return nearest if 1 / _UNLIKE < nearest / handed < _UNLIKE else handed


def _stages(plan: Plan, node: Node, cost: NodeCost, us: Mapping[str, float]) -> Iterator[tuple[Stage, float, bool, float]]:
    """The stages of a node, what each took, whether that is an estimate, and what the cost model says."""
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
    """Predicts the microseconds of a thread per example that a plan takes once a cache is full.

    What was measured of another plan of the same spec is taken as it was; what that plan did not have comes from the cost model,
    times what the cost model was wrong by there.
    """
    known, error, total = _by_key(parts), _error(parts), 0.0
    for node, cost in zip(plan.nodes, plan_cost(plan, given).nodes, strict=True):
        if cost.cached:
            continue
        own = cost.us - sum(cost.stages)
        total += known.get((type(node).__name__,), error * own) if own else 0.0
        if isinstance(node, (Element, Kernel)):
            total += sum(known.get(_key(stage), error * us) for stage, us in zip(node.stages, cost.stages, strict=True))
    return total


def _by_key(parts: list[Part]) -> dict[Key, float]:
    return {(_key(p.stage) if p.stage is not None else (type(p.node).__name__,)): p.us for p in parts}


def _key(stage: Stage) -> Key:
    return type(stage).__name__, stage.feature, tuple(ref.id for ref in stage.uses())


def _error(parts: list[Part]) -> float:
    """Returns by which factor the cost model was wrong, beside functions of the user."""
    known = [part for part in parts if part.us and part.expected and not part.calls_python]
    return min(5.0, max(0.2, sum(p.us for p in known) / sum(p.expected for p in known))) if known else 1.0
