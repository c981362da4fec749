"""The choice of the kernels that an accelerator runs, on stored features and parameters from the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pipegen.frozen import dataclass
from pipegen.ops.families.combining import GROUP
from pipegen.ops.stage import Stage
from pipegen.plan.cost import Circumstances, plan_cost
from pipegen.plan.nodes import Kernel, Node, Plan, one_pass_each
from pipegen.spec.models import received
from pipegen.types import ElementType

US_PER_BYTE = 1e-4  # microseconds to send a byte to an accelerator: 10 GB/s


def divided(plan: Plan) -> Plan:
    """Splits compiled kernels of which a later kernel on the host needs some features, such as masks with the numbers of boxes.

    The stages on these features come first, so that the rest, such as those on the image, can run on a device.
    """
    if plan.buckets:
        return plan
    held: set[str] = set()
    nodes: list[Node] = []
    apart = (part for node in plan.nodes for part in (one_pass_each(node) if isinstance(node, Kernel) else (node,)))
    for entry, node in reversed(tuple(pairwise(apart))):
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
    """Chooses the kernels at the end of the plan that run on a device, so that the cost on the host is least.

    The cost of a cut is the time of the kernels on the host and that of the bytes sent. After the cut, the host still runs
    kernels that are not compiled, such as those on boxes, and earlier ones on the same features.

    Args:
        plan: The plan of a split, from `divided`.
        wide: The rows of a batch that is widened to whole combined groups, or `None`: the host cuts such a batch to its own rows.

    Returns:
        The kernels in their order; none if nothing can run on a device, for the reason in `obstacle`.
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
        cost = host + US_PER_BYTE * sum(edge[name].num_bytes or 0 for name, edge in crossing(plan, chosen).items())
        if not best[1] or cost < best[0]:
            best = cost, chosen
    return best[1]


def crossing(plan: Plan, kernels: Sequence[Kernel]) -> dict[str, ElementType]:
    """The features sent to the device, each with the edge it is taken from.

    That is the edge before the first kernel on the device that changes the feature, else the output.
    """
    found: dict[str, ElementType] = {}
    for entry, node in pairwise(plan.nodes):
        if node in kernels and isinstance(node, Kernel):
            for stage in node.stages:
                found.setdefault(stage.feature, entry.out)
    return found | {name: plan.emit.out for name in received(plan.emit.output) if name not in found}


def obstacle(plan: Plan) -> str:
    """Explains why no kernel of a plan from `divided` can run on a device, with the steps that prevent it."""
    if plan.buckets:
        return "with `batch: {buckets: …}` each batch has a program of its own"
    kernels = [node for node in plan.nodes if isinstance(node, Kernel)]
    if not kernels:
        return "no step works on whole batches"
    stages = [stage for node in kernels for stage in node.stages]
    if not any(node.compiled for node in kernels):
        said = "`runtime: {jit: never}` leaves its steps to plain TensorFlow"
        return said if any(stage.compilable for stage in stages) else f"XLA cannot compile {_named(kernels[-1])}"
    last = next(node for node in reversed(kernels) if node.compiled)
    if any(stage.from_memory for stage in last.stages):
        return f"{_named(last)} reads images from the memory of the host"
    behind = [node for node in kernels[kernels.index(last) + 1 :] if not _features(node.stages).isdisjoint(_features(last.stages))]
    if behind:
        known = [node for node in behind if any(stage.uses() for stage in node.stages)] or behind
        return f"XLA cannot compile {_named(known[-1])}, which works on the output of {_named(last)}"
    combining = ", ".join(dict.fromkeys(f"`{ref.step.op}`" for stage in stages if stage.combines for ref in stage.uses()))
    return f"{combining} combines examples with those of other hosts, unless each host has whole groups of {GROUP}"


def _apart(tail: Sequence[Kernel], wide: int | None) -> tuple[Kernel, ...]:
    """The compiled kernels of the end of a plan that can run apart from the others; none if one prevents that."""
    chosen: list[Kernel] = []
    held: set[str] = set()
    for node in reversed(tail):
        if wide is not None and any(stage.combines for stage in node.stages):
            return ()
        if not node.compiled or not held.isdisjoint(_features(node.stages)):
            held |= _features(node.stages)
        elif any(stage.from_memory for stage in node.stages):
            return ()
        else:
            chosen.append(node)
    return tuple(reversed(chosen))


def _held(stages: tuple[Stage, ...], held: set[str]) -> tuple[Stage, ...]:
    """The stages of a kernel that use `held` features, or features that such stages use."""
    found: tuple[Stage, ...] = ()
    while True:
        known = held | _features(found)
        more = tuple(stage for stage in stages if not known.isdisjoint(_features((stage,))))
        if more == found:
            return found
        found = more


def _features(stages: Iterable[Stage]) -> set[str]:
    return {name for stage in stages for name in (*stage.touches(), *stage.needs())}


def _named(node: Kernel) -> str:
    steps = dict.fromkeys(ref.step.op for stage in node.stages for ref in stage.uses())
    return " and ".join(f"`{name}`" for name in steps) or f'the stage "{node.stages[-1].says()}"'


@dataclass(frozen=True, slots=True)
class Sent:
    """The data sent to a device for each batch, finished or for a device stage."""

    rows: int  # examples of a full batch
    finished: int | None  # bytes of a finished batch; `None` if sizes are unknown, as for texts
    features: int | None  # bytes of the features for a device stage, or `None` if unknown
    kernels: int  # the number of kernels on the device; their parameters, a few numbers for each example, come on top
    host: int  # the number of kernels that stay on the host
    obstacle: str = ""  # why the device can run none; "" if it runs some

    def text(self) -> str:
        """Describes it in a line."""
        said = f"to a device: {_bytes(self.finished)} a batch of {self.rows} as it is"
        if self.obstacle:
            return f"{said}; `pipe.device_stage` would have no work there: {self.obstacle}"
        kernels = f"{self.kernels} kernel{'s' if self.kernels > 1 else ''}"
        left = f", {self.host} on the host before" if self.host else ""
        return f"{said}, or {_bytes(self.features)} and the parameters of {kernels} by `pipe.device_stage`{left}"

    def json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "batch_bytes": self.finished,
            "device_stage_bytes": self.features,
            "kernels": self.kernels,
            "kernels_on_host": self.host,
            "obstacle": self.obstacle or None,
        }


def sent(plan: Plan) -> Sent:
    """The data sent to a device for each batch of a plan; with buckets, of the first."""
    plan = divided(plan)
    if plan.buckets:
        return replace(sent(plan.buckets[0]), features=None, kernels=0, obstacle=obstacle(plan))
    rows, weights = plan.batch.size, 4 if plan.batch.remainder == "pad" else 0
    finished = _total([plan.emit.out[name].num_bytes for name in received(plan.emit.output)], weights, rows)
    kernels = device_kernels(plan)
    host = sum(isinstance(n, Kernel) for n in plan.nodes) - len(kernels)
    if not kernels:
        return Sent(rows, finished, None, 0, host, obstacle(plan))
    features = _total([edge[name].num_bytes for name, edge in crossing(plan, kernels).items()], weights, rows)
    return Sent(rows, finished, features, len(kernels), host)


def _total(sizes: Sequence[int | None], weights: int, rows: int) -> int | None:
    known = [size for size in sizes if size is not None]
    return (sum(known) + weights) * rows if len(known) == len(sizes) else None


def _bytes(count: int | None) -> str:
    return f"{count:,} bytes" if count is not None else "bytes that depend on the data"
