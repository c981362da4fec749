"""decode, resize, [random steps] → decode, resize, Cache, [random steps].

A cache stands before the first random step, or before the batch if that comes first, where examples have a fixed shape; on a disk
also before the first step whose code may be other code when another process reads it. What is cached equals what is not, bit for bit.
What the spec asks for is done where it can be. `auto` caches in memory what saves time and fits: the whole split in half of the RAM
budget. It never writes to a disk: a copy of the data on a disk outlives the run, takes room that others count on, and may lie where
the data itself must not, so that is for the spec to say.
"""

from __future__ import annotations

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import Stage
from pipegen.passes.base import Note, Pass, PassContext
from pipegen.plan import stages as s
from pipegen.plan.caches import CacheKind, wanted_kind
from pipegen.plan.cost import ASSUMED_FILE, Circumstances, example_bytes, gather_us, plan_cost
from pipegen.plan.nodes import Batch, Cache, Element, Plan
from pipegen.spec.units import format_bytes

_WORTH = 2.0
"""`auto` caches what costs at least this many times what fetching it from the cache does."""


def place_cache(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Insert a Cache, where that is legal and wanted."""
    kind = wanted_kind(context.runtime)
    if kind is None:
        return plan
    at = cache_point(plan, kind)
    problem = _obstacle(plan, at, kind, context)
    if problem is not None:
        note(f"no cache: {problem}")
        return plan
    out = plan.nodes[at - 1].out
    if context.runtime.cache == "auto":
        said, chosen = _choose(plan, at, context)
        note(said)
        if not chosen:
            return plan
    else:
        note(f"{format_bytes(example_bytes(out))} an example {kind.where}, as the spec asks")
    return plan.with_nodes([*plan.nodes[:at], Cache(out, kind), *plan.nodes[at:]])


def cache_point(plan: Plan, kind: CacheKind) -> int:
    """The number of the first node that a cache has to stand before: the first random one, the one that makes views of an image, or the
    batch; of a cache that outlives the process also the first whose results are not known to be the same in another."""

    def stops(stage: Stage) -> bool:
        return s.is_random(stage) or isinstance(stage, s.Fork) or (kind.outlives and not s.is_lasting(stage))

    return next(i for i, n in enumerate(plan.nodes) if isinstance(n, Batch) or (isinstance(n, Element) and any(map(stops, n.stages))))


def _choose(plan: Plan, at: int, context: PassContext) -> tuple[str, bool]:
    """Says what `auto` does, and whether that is a cache in memory."""
    out = plan.nodes[at - 1].out
    size = example_bytes(out)
    if context.num_examples is None or context.ram_budget is None:
        return f"whether to cache is decided when the data is there: {format_bytes(size)} an example", False
    given = Circumstances(context.file_bytes or ASSUMED_FILE, factors=context.factors)
    spared, fetched = sum(n.us for n in plan_cost(plan, given).nodes[1:at]), gather_us(out, together=isinstance(plan.nodes[at], Batch))
    fetched *= context.factors.get("cache", 1.0)
    if context.prefers == "none":
        return "no cache, which `pipegen tune` found to be faster on this machine", False
    if context.prefers is None and spared < _WORTH * fetched:
        return f"no cache: what it would spare costs about {spared:.0f} µs an example, and fetching it about {fetched:.0f}", False
    total, budget = size * context.num_examples, format_bytes(context.ram_budget)
    if 2 * total > context.ram_budget:
        more = f"no cache: {format_bytes(total)} is more than half of the RAM budget of {budget}"
        return f"{more}; `cache: {{disk: FOLDER}}` would keep it on a disk", False
    return f"{format_bytes(total)} in memory, of a RAM budget of {budget}", True


def _obstacle(plan: Plan, at: int, kind: CacheKind, context: PassContext) -> str | None:
    """Why a plan cannot be cached, in words, or `None`."""
    node, alone = plan.nodes[at], plan.part_stages()
    if any(map(s.is_random, alone)):
        return "a step of one part of the mix is random, and comes before those that all parts share"
    if kind.outlives and not all(map(s.is_lasting, alone)):
        return "a step of one part of the mix calls a Python function without a `version`"
    if not alone and not any(isinstance(n, Element) for n in plan.nodes[: at + 1]):
        return "nothing is computed before the batch"
    if any(t.num_bytes is None for _, t in plan.nodes[at - 1].out.items() if not kind_of(t).indexed):
        if not isinstance(node, Element):
            return "no step makes sure that examples have a fixed shape"
        first = "a random step" if any(map(s.is_random, node.stages)) else "a Python function without a `version`"
        return f"{first} comes before examples have a fixed shape"
    if context.replaces_damaged:
        return "`errors: skip` replaces records, which a cache would freeze"
    return None


PLACE_CACHE = Pass("place_cache", "E0", "what is decoded once is not decoded again", place_cache)
