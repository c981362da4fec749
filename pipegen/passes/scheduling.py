"""Passes that decide how nodes run: what is cached, compiled as one, called for several examples, run in parallel and ahead."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan import stages as s
from pipegen.plan.cost import ASSUMED_FILE, Circumstances, example_bytes, gather_us, plan_cost
from pipegen.plan.nodes import Batch, Cache, CacheKind, Element, Kernel, Node, Plan, Prefetch, Read, wanted_kind
from pipegen.spec.models import DevicePrefetch
from pipegen.spec.units import format_bytes

_WORTH = 2.0
"""The least ratio of the cost of computing an example to that of reading it, for which `auto` caches."""
CHUNK = 16
"""Examples in a call. Twice as many would gain 1 to 2 % of an ImageNet recipe, and cost 0.3 s at the start."""
LONG_EPOCH = 4096
"""Examples of an epoch that outweighs the larger graph, which costs some 0.7 s at the start and saves 0.1 to 0.3 ms an example."""
LARGE = 64 << 20
"""Bytes from which on a batch is large."""


@rewrite("E0", "no file is decoded twice")
def place_cache(plan: Plan, context: PassContext, note: Note) -> Plan:
    """decode, resize, [random steps] → decode, resize, Cache, [random steps].

    A cache is placed before the first random step or the batch, where examples have a fixed shape; on a disk, also before the first step
    whose code may change between processes. Cached values are equal bit for bit. A cache that the spec asks for is placed if possible.
    `auto` caches in memory if that saves time and the whole split fits into half of the RAM budget. It never writes to a disk, since a copy
    of the data there outlives the run, takes space, and may be in a place where the data must not be: only the spec can ask for it.
    """
    kind = wanted_kind(context.runtime)
    if kind is None:
        return plan

    def stops(stage: Stage) -> bool:
        return s.is_random(stage) or isinstance(stage, s.Fork) or (kind.outlives and not s.is_lasting(stage))

    at = next(i for i, n in enumerate(plan.nodes) if isinstance(n, Batch) or (isinstance(n, Element) and any(map(stops, n.stages))))
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
    if any(t.num_bytes is None for _, t in plan.nodes[at - 1].out.items() if not kind_of(t).indexed):
        if not isinstance(node, Element):
            return "examples have no fixed shape"
        first = "a random step" if any(map(s.is_random, node.stages)) else "a Python function without a `version`"
        return f"{first} comes before examples have a fixed shape"
    if context.replaces_damaged:
        return "`errors: skip` replaces damaged records, and a cache would keep the replacements"
    return None


@rewrite("E1", "a compiled kernel passes over memory once")
def form_kernels(plan: Plan, context: PassContext, note: Note) -> Plan:
    """warp, colour, normalise → kernel(warp), kernel(colour, normalise).

    Runs of batch stages are compiled together, and element stages before the batch are one node. XLA on a CPU recomputes a fused producer
    for every reader, so a kernel is cut before a stage that reads a pixel of the stage before more than once:

    - a matrix that mixes channels reads each channel for every output channel (even after a cheap mirror, two kernels take a quarter to a
      half of the time of one);
    - a matrix around the mean reads the image twice, and so does a table of the histogram;
    - a warp reads each pixel for four neighbours, and a filter for many more;
    - a mirror chooses between a pixel and its counterpart;
    - a combining step reads two examples, and recomputes even a mirror before it for each (three times the cost).

    A colour stage that does not mix channels reads a value once and is fused: warp, brightness and arithmetic in one kernel take 0.82 of
    the time of two. Some stages that read once are still faster apart: a plain table after a warp (0.87 of the sum of the parts, against
    1.19 in one kernel), and colour after a mirror or an erased rectangle (two kernels take 0.8 to 0.95 of one).
    """
    compiled = context.runtime.jit != "never"
    nodes: list[Node] = []
    for node in plan.nodes:
        previous = nodes[-1] if nodes else None
        if isinstance(node, Kernel):
            own = compiled and node.stages[0].compilable
            if isinstance(previous, Kernel) and previous.compiled == own and not _cut(previous.stages, node.stages[0]):
                nodes[-1] = Kernel(node.out, previous.stages + node.stages, own)
            else:
                nodes.append(Kernel(node.out, node.stages, own))
        elif isinstance(node, Element) and isinstance(previous, Element):
            nodes[-1] = Element(node.out, previous.stages + node.stages)
        else:
            nodes.append(node)
    count = sum(isinstance(n, Kernel) and n.compiled for n in nodes)
    if count:
        note(f"{count} kernel{'s' if count > 1 else ''} compiled by XLA")
    return plan.with_nodes(nodes)


def _cut(before: tuple[Stage, ...], stage: Stage) -> bool:
    """Tests if `stage` would make XLA recompute the stages before it."""
    same = [b for b in before if b.feature == stage.feature]
    return bool(same) if stage.leads() else stage.rereads([b for b in same if not b.cheap])


@rewrite("E0", "small operations run once for several examples")
def chunk_elements(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Element → Element, sixteen examples a call.

    The preparation of a decode (format, size of the image, window) is arithmetic on a few numbers, but TensorFlow takes a microsecond or
    more for each operation, however small. A call on several examples does that arithmetic once, on vectors; only decode and resize run for
    each. A chunk never spans two batches. Examples that are filtered, shuffled or cached one by one stay apart. So do those of a short
    epoch: the graph grows with the chunk, and TensorFlow scans it for each iterator.
    """
    before = list(takewhile(lambda node: not isinstance(node, Batch), plan.nodes[1:]))
    if not any(isinstance(n, Element) for n in before) or not all(isinstance(n, (Read, Element)) for n in before):
        return plan
    if any(isinstance(n, Read) and n.parts for n in before):
        note("steps of a single part run one example at a time")
        return plan
    if context.epoch_examples is not None and context.epoch_examples < LONG_EPOCH:
        note(f"an epoch of {context.epoch_examples} examples is too short to outweigh a larger graph")
        return plan
    note(f"up to {CHUNK} examples a call")
    return plan.with_nodes([replace(n, chunk=CHUNK) if isinstance(n, Element) else n for n in plan.nodes])


@rewrite("E0", "decoding and augmenting use every core")
def parallelise(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Element, Kernel → the same, on every thread of the pipeline's own pool.

    Results keep the order of their inputs, so no value depends on the number of threads.
    """
    threads = context.runtime.threads
    if threads == 1:
        note("the spec asks for one thread")
        return plan
    note("every core of this process" if threads == "auto" else f"{threads} threads")
    return plan.with_nodes([replace(n, parallel=True) if isinstance(n, (Element, Kernel)) else n for n in plan.nodes])


@rewrite("E0", "the model finds its next batch ready")
def prefetch_last(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Emit → Emit, Prefetch.

    Batches are made while the model trains. Two finished ones absorb variations in time; one is enough for large batches, which vary less,
    and on a device.
    """
    wanted = context.runtime.prefetch
    if wanted == "none":
        return plan
    device = wanted.device if isinstance(wanted, DevicePrefetch) else None
    note("batches are made while the model trains" + (f", and copied to device {device}" if device else ""))
    usual = 1 if device or example_bytes(plan.out) * plan.batch.size > LARGE else 2
    return plan.with_nodes([*plan.nodes, Prefetch(plan.out, device, wanted if isinstance(wanted, int) else usual)])
