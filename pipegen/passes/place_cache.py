"""decode, resize, [random steps] → decode, resize, Cache, [random steps].

A cache is placed before the first random step or the batch, where examples have a fixed shape; on a disk, also before the
first step whose code may change between processes. Cached values are equal bit for bit. A cache that the spec asks for is
placed if possible. `auto` caches in memory if that saves time and the whole split fits into half of the RAM budget. It never
writes to a disk, since a copy of the data there outlives the run, takes space, and may be in a place where the data must not
be: only the spec can ask for it.
"""

from __future__ import annotations

from pipegen.ops.kinds.base import kind_of
from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan import stages as s
from pipegen.plan.cost import ASSUMED_FILE, Circumstances, example_bytes, gather_us, plan_cost
from pipegen.plan.nodes import Batch, Cache, CacheKind, Element, Plan, wanted_kind
from pipegen.spec.units import format_bytes

_WORTH = 2.0  # the least ratio of the cost of computing an example to that of reading it, for which `auto` caches


@rewrite("E0", "no file is decoded twice")
def place_cache(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Inserts a Cache, if it is possible and wanted."""
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
    listed = {name: (t.dtype, t.shape) for name, t in plan.index.out.items()}
    columns = tuple(name for name, t in out.items() if listed.get(name) == (t.dtype, t.shape))
    return plan.with_nodes([*plan.nodes[:at], Cache(out, kind, columns), *plan.nodes[at:]])


def cache_point(plan: Plan, kind: CacheKind) -> int:
    """The number of the node to place a cache before: the first random one, a fork, or the batch.

    For a cache that outlives the process, also the first node whose results may differ in another process.
    """

    def stops(stage: Stage) -> bool:
        return s.is_random(stage) or isinstance(stage, s.Fork) or (kind.outlives and not s.is_lasting(stage))

    return next(i for i, n in enumerate(plan.nodes) if isinstance(n, Batch) or (isinstance(n, Element) and any(map(stops, n.stages))))


def _choose(plan: Plan, at: int, context: PassContext) -> tuple[str, bool]:
    """Decides for `auto`: a note, and whether to cache in memory."""
    out = plan.nodes[at - 1].out
    size = example_bytes(out)
    if context.num_examples is None or context.ram_budget is None:
        return f"decided once the data is listed: {format_bytes(size)} an example", False
    given = Circumstances(context.file_bytes or ASSUMED_FILE, factors=context.factors)
    spared, fetched = sum(n.us for n in plan_cost(plan, given).nodes[1:at]), gather_us(out, together=isinstance(plan.nodes[at], Batch))
    fetched *= context.factors.get("cache", 1.0)
    if context.prefers == "none":
        return "no cache, which `pipegen tune` found to be faster on this machine", False
    if context.prefers is None and spared < _WORTH * fetched:
        return f"no cache: it would save about {spared:.0f} µs an example, and cost about {fetched:.0f}", False
    total, budget = size * context.num_examples, format_bytes(context.ram_budget)
    if 2 * total > context.ram_budget:
        more = f"no cache: {format_bytes(total)} is more than half of the RAM budget of {budget}"
        return f"{more}; `cache: {{disk: FOLDER}}` would keep it on a disk", False
    return f"{format_bytes(total)} in memory, of a RAM budget of {budget}", True


def _obstacle(plan: Plan, at: int, kind: CacheKind, context: PassContext) -> str | None:
    """Explains why a plan cannot be cached, if so."""
    node, alone = plan.nodes[at], plan.part_stages()
    if any(map(s.is_random, alone)):
        return "a random step of one part of the mix comes before the common steps"
    if kind.outlives and not all(map(s.is_lasting, alone)):
        return "a step of one part of the mix calls a Python function without a `version`"
    if not alone and not any(isinstance(n, Element) for n in plan.nodes[: at + 1]):
        return "nothing is computed before the batch"
    if any(t.num_bytes is None for _, t in plan.nodes[at - 1].out.items() if kind_of(t).storage != "dense"):
        if not isinstance(node, Element):
            return "examples have no fixed shape"
        first = "a random step" if any(map(s.is_random, node.stages)) else "a Python function without a `version`"
        return f"{first} comes before examples have a fixed shape"
    if context.replaces_damaged:
        return "`errors: skip` replaces damaged records, and a cache would keep the replacements"
    return None
