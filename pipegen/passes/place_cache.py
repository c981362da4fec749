"""decode, resize, [random steps] → decode, resize, Cache, [random steps].

A memory cache stands after the last deterministic step before the batch, where examples have a fixed shape. `auto`
places it when the whole split fits into half of the RAM budget; what is cached equals what is not, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.passes.base import Pass
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Element
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.passes.base import PassContext
    from pipegen.plan.nodes import Plan
    from pipegen.types import ElementType

_BYTES = {"uint8": 1, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4, "int64": 8, "float64": 8, "bool": 1}


def place_cache(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Insert a Cache before the batch, where that is legal and wanted."""
    wanted = context.runtime.cache
    if wanted == "none":
        return plan
    at = next(i for i, n in enumerate(plan.nodes) if isinstance(n, Batch))
    before = [st for n in plan.nodes[:at] if isinstance(n, Element) for st in n.stages]
    problem = _obstacle(before, context)
    if problem is not None:
        note(f"no cache: {problem}")
        return plan
    size = cached_bytes(plan.nodes[at - 1].out)
    if wanted == "auto":
        if context.num_examples is None or context.ram_budget is None:
            note(f"whether to cache is decided when the data is there: {format_bytes(size)} an example")
            return plan
        total = size * context.num_examples
        if 2 * total > context.ram_budget:
            note(f"no cache: {format_bytes(total)} is more than half of the RAM budget of {format_bytes(context.ram_budget)}")
            return plan
        note(f"{format_bytes(total)} in memory, of a RAM budget of {format_bytes(context.ram_budget)}")
    else:
        note(f"{format_bytes(size)} an example in memory, as the spec asks")
    return plan.with_nodes([*plan.nodes[:at], Cache(plan.nodes[at - 1].out), *plan.nodes[at:]])


def _obstacle(before: list[s.Stage], context: PassContext) -> str | None:
    if any(s.is_random(st) for st in before):
        return "a random step comes before examples have a fixed shape"
    if not before:
        return "nothing is computed before the batch"
    if context.replaces_damaged:
        return "`errors: skip` replaces records, which a cache would freeze"
    return None


def cached_bytes(out: ElementType) -> int:
    """Bytes of one cached example."""
    total = 0
    for t in dict(out.items()).values():
        count = 1
        for d in t.shape:
            count *= d or 0
        total += count * _BYTES.get(t.dtype, 0) if t.kind != "label" else 0
    return total


PLACE_CACHE = Pass("place_cache", "E0", "what is decoded once is not decoded again", place_cache)
