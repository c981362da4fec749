"""The rules of a well-formed physical plan."""

from __future__ import annotations

from collections.abc import Callable

from pipegen.errors import InternalError
from pipegen.physical import nodes as p
from pipegen.plan.nodes import Cache, Element, Emit, Kernel, Read

Rule = Callable[[p.Physical], "str | None"]


def verify(plan: p.Physical) -> None:
    """Checks all rules. Raises `InternalError` with the broken rule, the cause and the plan."""
    for rule in RULES:
        problem = rule(plan)
        if problem is not None:
            from pipegen.physical.physical_text import render_physical

            raise InternalError(f"{(rule.__doc__ or '').splitlines()[0]} {problem}\n{render_physical(plan)}")


def _grains_follow(plan: p.Physical) -> str | None:
    """Each operation takes what the one before gives, and batches leave the last."""
    grain, cut = "", False
    for name, operation in plan.named():
        match operation:
            case p.Enter() if not grain:
                grain = operation.grain
            case p.Steps() if grain == "epoch":
                grain = "step"
            case p.Map() if operation.grain == grain:
                cut = any(isinstance(f, p.Cut) for f in operation.functions)
                whole = isinstance(operation.functions[-1], (p.Emit, p.SplitForDevice, p.Send, p.Receive))
                grain = "batch" if whole else "example" if grain == "record" else grain
            case p.Unbatch() if grain in ("epoch", "step"):
                grain = "chunk" if cut else "example"
            case p.Filter() if grain == "example":
                pass
            case p.Stack() if grain == "example" or (grain == "chunk" and not operation.held):
                grain = "epoch" if operation.held else "batch"
            case p.Prefetch() if grain == "batch" or (grain == "step" and operation.steps):
                grain = "" if operation.device else grain
            case _:
                return f"{name} has {grain or 'nothing'} before it."
    wanted = "example" if plan.form is p.SHOWN else "" if plan.form.device else "batch"
    return None if grain == wanted else f"the last gives {grain}."


def _chunks_are_joined(plan: p.Physical) -> str | None:
    """Chunks keep their size until they are joined, and filled batches are trimmed."""
    sizes = [f.chunk for f in plan.functions if isinstance(f, (p.Cut, p.Examples, p.Join)) and f.chunk > 1]
    stacks = [o.size for o in plan.operations if isinstance(o, p.Stack) and not o.held]
    joined = [f.size // f.chunk for f in plan.functions if isinstance(f, p.Join)]
    if sizes and (len(sizes) != 3 or len(set(sizes)) != 1 or joined != stacks):
        return f"chunks of {sizes}, {stacks} stacked for {joined}."
    kinds = [type(f) for f in plan.functions]
    return None if kinds.count(p.Fill) == kinds.count(p.Trim) else "a batch stays filled up."


def _guards_see_single_records(plan: p.Physical) -> str | None:
    """A guard covers a record from its reading on, and in a cache one at a time."""
    for f in plan.functions:
        cached = isinstance(f, (p.FillCache, p.ReadCache))
        examples = f if isinstance(f, p.Examples) else f.examples if isinstance(f, (p.FillCache, p.ReadCache)) else None
        if examples is None or examples.guard == "none":
            continue
        if (cached and examples.chunk > 1) or not isinstance(examples.nodes[0], Read):
            return f"it is given {examples.chunk} records, from {type(examples.nodes[0]).__name__} on."
    return None


def _derived_holds_no_memory(plan: p.Physical) -> str | None:
    """A derived form reuses no memory, and guards its records."""
    if not plan.form.derived:
        return None
    if any(isinstance(f, p.Kernel) and f.depth for f in plan.functions):
        return "a kernel writes into the memory of earlier batches."
    held = any(isinstance(o, p.Stack) and o.held for o in plan.operations)
    read = [f for f in plan.functions if isinstance(f, p.Examples) and isinstance(f.nodes[0], Read)]
    return "a record is not guarded." if not held and any(f.guard == "none" for f in read) else None


def _position_is_noted_where_it_is_kept(plan: p.Physical) -> str | None:
    """The position is stored if epochs come from the variable, but not on a device, which takes batches ahead."""
    notes = any(isinstance(f, p.Deliver) and f.notes for f in plan.functions)
    kept = plan.form.enters == "variable" and plan.form.device is None
    return None if notes == kept else f"{plan.form.name} {'notes' if notes else 'does not note'} it."


def _single_steps_stay_apart(plan: p.Physical) -> str | None:
    """No requested step takes examples of the next."""
    short = [o for o in plan.operations if isinstance(o, p.Stack) and not o.full]
    return f"{len(short)} batches may be short." if plan.form.single and short else None


def _widened_batches_are_cut(plan: p.Physical) -> str | None:
    """Batches widened to whole combined groups are cut to the host's rows after the last kernel that combines, and not before."""
    kinds = [type(f) for f in plan.functions]
    wide = next((f.rows for f in plan.functions if isinstance(f, p.Index)), None)
    whole = p.Index in kinds and not plan.form.sent  # else the other part may cut them
    if (whole and (wide is not None) != (p.SliceOwnRows in kinds)) or kinds.count(p.SliceOwnRows) > 1:
        return f"{wide} rows are read, and {kinds.count(p.SliceOwnRows)} functions cut them."
    own = kinds.index(p.SliceOwnRows) if p.SliceOwnRows in kinds else -1
    sizes = [f.batch for f in plan.functions[:own] if isinstance(f, p.Kernel)] if wide is not None else []
    return f"{sizes} rows before that." if any(size != wide for size in sizes) else None


def _caches_are_filled_first(plan: p.Physical) -> str | None:
    """A cache is filled before it is read, and computes records from their reading on."""
    found = [f for f in plan.functions if isinstance(f, (p.FillCache, p.ReadCache))]
    in_order = [type(f) for f in found] == [p.FillCache, p.ReadCache]
    if found and (not in_order or any(not isinstance(f.examples.nodes[0], Read) for f in found)):
        return f"got {[type(f).__name__ for f in found]} of {[type(f.examples.nodes[0]).__name__ for f in found]}."
    return None


def _everything_runs_once(plan: p.Physical) -> str | None:
    """Every node of the plan that computes runs exactly once, in order."""
    run: list[object] = []
    for f in plan.functions:
        match f:
            case p.Examples() | p.MapRequest():
                run += f.nodes
            case p.FillCache():
                run += [*f.examples.nodes, f.cache]
            case p.Rows() | p.Kernel() | p.Prepare() | p.Emit() | p.SplitForDevice():
                run.append(f.node)
    all_kinds = (Read, Element, Cache, Kernel, Emit)
    kinds = {"record": (Read, Element), "batch": (Element, Kernel, Emit)}.get(plan.form.takes, all_kinds)
    wanted = [n for n in plan.nodes if isinstance(n, kinds)]
    return None if run == wanted else f"{[type(n).__name__ for n in run]} run."


def _parts_meet_at_one_edge(plan: p.Physical) -> str | None:
    """A part of a plan for workers ends with what they send, and that of the trainer begins with it."""
    sends, receives = (sum(isinstance(f, kind) for f in plan.functions) for kind in (p.Send, p.Receive))
    reads = any(isinstance(f, p.Index) for f in plan.functions)
    if sends != plan.form.sent or receives > 1 or (receives and reads):
        return f"{sends} send and {receives} receive, {'with' if reads else 'without'} an index."
    return None


def _what_is_sent_is_whole(plan: p.Physical) -> str | None:
    """A plan for a device prepares its kernels in order, and no later kernel on the host uses the features that they change."""
    prepared = [f for f in plan.functions if isinstance(f, p.Prepare)]
    sends = any(isinstance(f, p.SplitForDevice) for f in plan.functions)
    if sends != plan.form.sends or bool(prepared) != sends or [f.number for f in prepared] != list(range(len(prepared))):
        return f"{len(prepared)} kernels are prepared, and {'sent' if sends else 'not sent'}."
    changed: set[str] = set()
    for f in plan.functions:
        if isinstance(f, p.Prepare):
            changed |= {stage.feature for stage in f.node.stages}
        if isinstance(f, p.Kernel):
            read = {name for stage in f.node.stages for name in (*stage.touches(), *stage.needs())} & changed
            if read:
                return f"a kernel on the host uses {' and '.join(sorted(read))}."
    return None


RULES: tuple[Rule, ...] = (
    _grains_follow,
    _chunks_are_joined,
    _derived_holds_no_memory,
    _position_is_noted_where_it_is_kept,
    _single_steps_stay_apart,
    _widened_batches_are_cut,
    _caches_are_filled_first,
    _guards_see_single_records,
    _everything_runs_once,
    _what_is_sent_is_whole,
    _parts_meet_at_one_edge,
)
