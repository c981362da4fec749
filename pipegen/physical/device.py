"""Chooses the kernels of a plan that an accelerator can run, on what the host hands over: features as they are stored, and parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipegen.ops.families.mixing import GROUP
from pipegen.plan.cost import Circumstances, plan_cost
from pipegen.plan.nodes import Kernel, Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipegen.ops.stage import Stage
    from pipegen.plan.nodes import Node
    from pipegen.types import ElementType

US_PER_BYTE = 1e-4
"""Microseconds that a byte takes on its way to an accelerator: 10 GB/s."""


def divided(plan: Plan) -> Plan:
    """Returns the plan with each compiled kernel cut in two that works on features of which a later kernel on the host needs some, such as
    masks that get the numbers of boxes: what works on those comes first, so that the rest, such as the image, can go to a device."""
    if plan.buckets:
        return plan
    held: set[str] = set()
    nodes: list[Node] = []
    for entry, node in reversed(tuple(pairwise(plan.nodes))):
        parts: tuple[Node, ...] = (node,)
        if isinstance(node, Kernel):
            host = _held(node.stages, held) if node.compiled else node.stages
            held |= _features(host)
            rest = tuple(stage for stage in node.stages if stage not in host)
            if host and rest:
                out = entry.out
                for stage in host:
                    out = stage.edge(out, node.out)
                parts = (replace(node, stages=rest), replace(node, out=out, stages=host))
        nodes += parts
    return plan.with_nodes((plan.nodes[0], *reversed(nodes)))


def device_kernels(plan: Plan, wide: int | None = None) -> tuple[Kernel, ...]:
    """Returns the kernels that are dearest to leave on the host: the end of the plan, from whichever of its kernels costs least.

    What the host pays for a cut is the time of the kernels before it and that of the bytes that cross there. Behind it, kernels run on the
    host that are not compiled, such as those of boxes, and what works on the same features before them.

    Args:
        plan: The plan of a split, from `divided`.
        wide: The rows of a batch that is widened to whole mix groups, or `None`: such a batch is cut to the host's own on the host.

    Returns:
        In their order; none where nothing can run on a device: `obstacle` says why.
    """
    if plan.buckets:
        return ()
    costs = plan_cost(plan, Circumstances()).nodes
    behind = [(n, entry.out, cost.us) for (entry, n), cost in zip(pairwise(plan.nodes), costs[1:], strict=True) if isinstance(n, Kernel)]
    best: tuple[float, tuple[Kernel, ...]] = 0.0, ()
    for cut in range(len(behind)):
        chosen = _apart([node for node, _, _ in behind[cut:]], wide)
        if behind[cut][0] not in chosen:
            continue
        host = sum(us for node, _, us in behind if node not in chosen)
        cost = host + US_PER_BYTE * sum(size for _, size in crossing_bytes(plan, chosen))
        if not best[1] or cost < best[0]:
            best = cost, chosen
    return best[1]


def crossing(plan: Plan, kernels: Sequence[Kernel]) -> dict[str, ElementType]:
    """Returns the features that go to the device, each with the edge that it is taken from: where the first of the kernels on the device
    that change it reads it, or else as the output has it."""
    found: dict[str, ElementType] = {}
    for entry, node in pairwise(plan.nodes):
        if node in kernels and isinstance(node, Kernel):
            for stage in node.stages:
                found.setdefault(stage.feature, entry.out)
    return found | {name: plan.emit.out for name in output_features(plan) if name not in found}


def crossing_bytes(plan: Plan, kernels: Sequence[Kernel]) -> Iterator[tuple[str, int]]:
    """Yields the bytes of one example of each feature that goes to the device; of those whose size nobody knows, none."""
    for name, edge in crossing(plan, kernels).items():
        yield name, edge[name].num_bytes or 0


def output_features(plan: Plan) -> tuple[str, ...]:
    """Returns the features that the model takes."""
    output = plan.emit.output
    parts = (output.x, output.y, output.sample_weight)
    named = [part if isinstance(part, list) else [*part.values()] if isinstance(part, dict) else [part] for part in parts if part]
    return tuple(dict.fromkeys(name for names in named for name in names))


def obstacle(plan: Plan) -> str:
    """Says in words why no kernel of a plan from `divided` can run on a device, with the steps that stand in the way."""
    if plan.buckets:
        return "with `batch: {buckets: …}` each batch has a program of its own"
    kernels = [node for node in plan.nodes if isinstance(node, Kernel)]
    if not kernels:
        return "nothing is done to whole batches"
    if not any(node.compiled for node in kernels):
        said = "`runtime: {jit: never}` leaves its steps to plain TensorFlow"
        return said if any(stage.compilable for stage in _stages(kernels)) else f"{_named(kernels[-1])} is not for XLA"
    last = next(node for node in reversed(kernels) if node.compiled)
    if any(stage.from_memory for stage in last.stages):
        return f"{_named(last)} reads images from the memory of the host"
    behind = [node for node in kernels[kernels.index(last) + 1 :] if not _features(node.stages).isdisjoint(_features(last.stages))]
    if behind:
        known = [node for node in behind if any(stage.uses() for stage in node.stages)] or behind
        return f"{_named(known[-1])} is not for XLA, and works on what {_named(last)} gives"
    mixing = ", ".join(dict.fromkeys(f"`{ref.step.op}`" for stage in _stages(kernels) if stage.mixes for ref in stage.uses()))
    return f"{mixing}: examples are mixed, of which some are other hosts', unless each host has whole groups of {GROUP}"


def _apart(tail: Sequence[Kernel], wide: int | None) -> tuple[Kernel, ...]:
    """Returns the compiled kernels of the end of a plan that can run apart from the others; none where one is in the way of all."""
    chosen: list[Kernel] = []
    held: set[str] = set()
    for node in reversed(tail):
        if wide is not None and any(stage.mixes for stage in node.stages):
            return ()
        if not node.compiled or not held.isdisjoint(_features(node.stages)):
            held |= _features(node.stages)
        elif any(stage.from_memory for stage in node.stages):
            return ()
        else:
            chosen.append(node)
    return tuple(reversed(chosen))


def _held(stages: tuple[Stage, ...], held: set[str]) -> tuple[Stage, ...]:
    """Returns those stages of a kernel that work on features that are `held`, or on such as these work on."""
    found: tuple[Stage, ...] = ()
    while True:
        known = held | _features(found)
        more = tuple(stage for stage in stages if not known.isdisjoint(_features((stage,))))
        if more == found:
            return found
        found = more


def _features(stages: Iterable[Stage]) -> set[str]:
    return {name for stage in stages for name in (*stage.touches(), *stage.needs())}


def _stages(kernels: Sequence[Kernel]) -> Iterator[Stage]:
    for node in kernels:
        yield from node.stages


def _named(node: Kernel) -> str:
    steps = dict.fromkeys(ref.step.op for stage in node.stages for ref in stage.uses())
    return " and ".join(f"`{name}`" for name in steps) or f'what the plan calls "{node.stages[-1].says()}"'


@dataclass(frozen=True, slots=True)
class Sent:
    """Says what crosses to a device of each batch, in either form.

    Attributes:
        rows: Examples of a full batch.
        finished: Bytes of a finished batch; `None` where sizes are not known, as for texts.
        features: Bytes of the features that a device stage is sent, or `None` likewise.
        kernels: How many kernels it runs; their parameters, a few numbers for each example, go with the features.
        host: How many kernels stay on the host.
        obstacle: Why it could run none; empty where it runs some.
    """

    rows: int
    finished: int | None
    features: int | None
    kernels: int
    host: int
    obstacle: str = ""

    def text(self) -> str:
        """Returns a line."""
        of = f"a batch of {self.rows}"
        said = f"to a device: {_bytes(self.finished)} {of} as it is"
        if self.obstacle:
            return f"{said}; `pipe.device_stage` would leave nothing to it: {self.obstacle}"
        kernels = f"{self.kernels} kernel{'s' if self.kernels > 1 else ''}"
        left = f", {self.host} on the host before" if self.host else ""
        return f"{said}, or {_bytes(self.features)} and the parameters of {kernels} by `pipe.device_stage`{left}"

    def json(self) -> dict[str, Any]:
        """Returns the same as plain values."""
        return {"batch_bytes": self.finished, "device_stage_bytes": self.features, **_counts(self)}


def sent(plan: Plan) -> Sent:
    """Returns what crosses to a device of each batch of a plan; where there are buckets, of the first."""
    plan = divided(plan)
    if plan.buckets:
        return replace(sent(plan.buckets[0]), features=None, kernels=0, obstacle=obstacle(plan))
    rows, weights = plan.batch.size, 4 if plan.batch.remainder == "pad" else 0
    finished = _total([plan.emit.out[name].num_bytes for name in output_features(plan)], weights, rows)
    kernels = device_kernels(plan)
    host = sum(isinstance(n, Kernel) for n in plan.nodes) - len(kernels)
    if not kernels:
        return Sent(rows, finished, None, 0, host, obstacle(plan))
    return Sent(
        rows, finished, _total([edge[name].num_bytes for name, edge in crossing(plan, kernels).items()], weights, rows), len(kernels), host
    )


def _total(sizes: Sequence[int | None], weights: int, rows: int) -> int | None:
    known = [size for size in sizes if size is not None]
    return (sum(known) + weights) * rows if len(known) == len(sizes) else None


def _bytes(count: int | None) -> str:
    return f"{count:,} bytes" if count is not None else "bytes that depend on the data"


def _counts(found: Sent) -> dict[str, Any]:
    return {"kernels": found.kernels, "kernels_on_host": found.host, "obstacle": found.obstacle or None}
