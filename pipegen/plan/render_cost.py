"""The text and the JSON form of a plan's expected cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipegen.plan.cost import PlanCost, example_bytes, reads_rows
from pipegen.plan.nodes import Cache, Plan, Read
from pipegen.plan.render import plan_json
from pipegen.spec.units import format_bytes
from pipegen.types import times


def render_cost(plan: Plan, cost: PlanCost, *, dearest: int | None = None) -> str:
    """Returns the cost of each stage in their order, and the memory that each node holds, ending in a newline.

    With `dearest`, it is that of so many stages, the dearest first, and of the memory the sum alone.
    """
    given = cost.given
    read = next(n for n in plan.nodes if isinstance(n, Read))
    rows, stored = reads_rows(read), given.file_bytes
    if rows and given.assumed:
        stored = example_bytes(read.out)
    guess = given.assumed and not (rows and all(d is not None for _, t in read.out.items() for d in t.shape))
    size = ("rows of " if rows else "files of ") + format_bytes(stored) + (", which is a guess" if guess else "")
    parts = [(us, text) for us, text in _parts(plan, cost) if us >= _LEAST_US]
    shown = sorted(parts, key=lambda part: -part[0])[:dearest] if dearest is not None else parts
    what = "expected cost" if len(shown) == len(parts) else f"expected cost of the {len(shown)} most expensive stages"
    fitted = "; fitted to this machine" if given.factors else ""
    fitted += f"; in the bucket {times(plan.index.buckets[0])}" if plan.index.buckets else ""
    lines = [f"{what}, in µs of one core for an image ({size}{fitted})"]
    lines += [f"  {us:>8,.1f}  {us / cost.first_us:>4.0%}  {text}" for us, text in shown]
    lines += _totals(plan, cost)
    open_end = given.examples is None and any(isinstance(n, Cache) and not n.disk for n in plan.nodes)
    lines.append(f"expected memory: {format_bytes(cost.bytes)}{' and the cache' if open_end else ''}, beside TensorFlow itself")
    if dearest is None:
        lines += _memory(plan, cost, open_end)
    return "\n".join(lines) + "\n"


def _memory(plan: Plan, cost: PlanCost, open_end: bool) -> Iterator[str]:
    for cost_of, node, shown in zip(cost.nodes, plan.nodes, plan_json(plan)["nodes"], strict=True):
        if open_end and isinstance(node, Cache):
            yield f"  {format_bytes(example_bytes(node.out)):>10}  {shown['text']}, times the examples"
        elif cost_of.bytes:
            yield f"  {format_bytes(cost_of.bytes):>10}  {shown['text']}"


_LEAST_US = 0.05
"""What rounds to nothing has no line of its own."""


def _totals(plan: Plan, cost: PlanCost) -> list[str]:
    if not any(isinstance(n, Cache) for n in plan.nodes):
        rate = f": {1e6 / cost.us:,.0f} images/s on each core" if cost.us else ""  # a table of numbers costs next to nothing
        return [f"  {cost.us:>8,.1f}        in all{rate}"]
    return [
        f"  {cost.first_us:>8,.1f}        in all while the cache fills",
        f"  {cost.us:>8,.1f}        in all from then on: {1e6 / cost.us:,.0f} images/s on each core",
    ]


def _parts(plan: Plan, cost: PlanCost) -> Iterator[tuple[float, str]]:
    """The microseconds and the text of each stage, and of each node that does something of its own."""
    for node, shown in zip(cost.nodes, plan_json(plan)["nodes"], strict=True):
        own = node.us - sum(node.stages)
        if own:
            yield own, shown["text"]
        for us, stage in zip(node.stages, shown.get("stages", ()), strict=True):
            yield us, stage["text"]


def cost_json(plan: Plan, cost: PlanCost) -> dict[str, Any]:
    """The expected cost as plain values: microseconds of one core per image, and bytes."""
    return {
        "file_bytes": round(cost.given.file_bytes),
        "assumed": cost.given.assumed,
        **({"fitted": True} if cost.given.factors else {}),
        "threads": cost.given.threads,
        "examples": cost.given.examples,
        "first_us": round(cost.first_us, 2),
        "us": round(cost.us, 2),
        "bytes": cost.bytes,
        "nodes": [
            {"node": type(n).__name__.lower(), "us": round(c.us, 2), "stages_us": [round(x, 2) for x in c.stages], "bytes": c.bytes}
            for n, c in zip(plan.nodes, cost.nodes, strict=True)
        ],
    }
