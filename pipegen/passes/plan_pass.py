"""`Pass`, a rewrite of a plan, and the function that runs passes and verifies the plan after each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Literal, TypeVar

from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.ops.stage import Stage
from pipegen.plan.nodes import Batch, Element, Kernel, Node, Plan, Read, for_buckets
from pipegen.plan.plan_rules import same_output, verify
from pipegen.spec.models import Runtime
from pipegen.types import ElementType

S = TypeVar("S", bound=Stage)
E = TypeVar("E", bound=Stage)
Note = Callable[[str], None]  # a callback for notes on what a pass did
RewriteClass = Literal["E0", "E1"]  # E0 keeps every bit; E1 rounds, by at most 1e-6 of the width of the edge's interval


@dataclass(frozen=True, slots=True)
class PassContext:
    """The circumstances that a pass may use beside the plan."""

    runtime: Runtime  # the spec's runtime section
    num_examples: int | None = None  # examples in the split, or `None` without data
    ram_budget: int | None = None  # bytes for caches and buffers, or `None` if unknown
    replaces_damaged: bool = False  # whether damaged records are replaced, which needs stored records
    file_bytes: float | None = None  # the mean size of a stored record, or `None` without data
    epoch_examples: int | None = None  # examples in an epoch of the split, or `None` without data
    factors: Mapping[str, float] = field(default_factory=dict)  # this machine's measured costs; see `Circumstances`
    prefers: str | None = None  # the faster setting of `cache: auto` by `pipegen tune`: `memory`, `none`, or `None` if unknown
    canvases: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Height and width of the canvases that images of several sizes are stored on, by feature."""


Run = Callable[[Plan, PassContext, Note], Plan]


@dataclass(frozen=True, slots=True)
class Pass:
    """A rewrite. Its name is a verb phrase, that of its file; the reason is the benefit, in one line."""

    name: str
    rewrite_class: RewriteClass
    reason: str
    run: Run


@dataclass(frozen=True, slots=True)
class PassRecord:
    """The effect of one pass on one plan."""

    name: str
    rewrite_class: RewriteClass
    reason: str
    before: Plan
    after: Plan
    notes: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether the plan differs."""
        return self.before != self.after


@dataclass(slots=True)
class Compiled:
    """A plan after its passes."""

    plan: Plan
    records: list[PassRecord] = field(default_factory=list)


def run_passes(plan: Plan, passes: tuple[Pass, ...], context: PassContext) -> Compiled:
    """Runs the passes in order and verifies each changed plan; with buckets, runs them on each bucket's plan. Raises `InternalError` if a
    pass breaks the plan or changes the output."""
    if plan.buckets:
        each = [run_passes(own, passes, context) for own in plan.buckets]
        records = []
        for own in zip(*(done.records for done in each), strict=True):
            before, after = (for_buckets(plans) for plans in ([r.before for r in own], [r.after for r in own]))
            notes = dict.fromkeys(note for record in own for note in record.notes)
            records.append(replace(own[0], before=before, after=after, notes=tuple(notes)))
        return Compiled(for_buckets([done.plan for done in each]), records)
    verify(plan, "build")
    done = Compiled(plan)
    for step in passes:
        said: list[str] = []
        after = step.run(done.plan, context, said.append)
        if after != done.plan:  # most passes change nothing, and the plan is verified already
            verify(after, step.name)
            if not same_output(done.plan, after):
                raise InternalError(f"{step.name} changed the output from {done.plan.out} to {after.out}")
        done.records.append(PassRecord(step.name, step.rewrite_class, step.reason, done.plan, after, tuple(said)))
        done.plan = after
    return done


@dataclass(frozen=True, slots=True)
class Placed:
    """A stage out of its node, with the types of the edges around it."""

    stage: Stage
    before: ElementType
    after: ElementType


def unpack(plan: Plan) -> list[Node | Placed]:
    """Takes stages out of their nodes; other nodes stay. Raises `InternalError` if a node has several stages, as the types between these
    are unknown."""
    items: list[Node | Placed] = []
    current = plan.nodes[0].out
    for node in plan.nodes:
        if isinstance(node, (Element, Kernel)):
            if len(node.stages) != 1:
                raise InternalError("stages were grouped before a pass that looks between them")
            items.append(Placed(node.stages[0], current, node.out))
        else:
            items.append(node)
        current = node.out
    return items


def retyped(items: list[Placed], entry: ElementType) -> list[Placed]:
    """Computes the edges of stages in a new order, each of which changes the features that it touches."""
    placed: list[Placed] = []
    for item in items:
        after = item.stage.edge(entry, item.after)
        placed.append(Placed(item.stage, entry, after))
        entry = after
    return placed


def rewrite(rewrite_class: RewriteClass, reason: str, *, in_parts: bool = False) -> Callable[[Run], Pass]:
    """Makes a pass of a function, which names it; with `in_parts`, it also rewrites the stages that each part of a mix has alone."""
    return lambda run: Pass(run.__name__, rewrite_class, reason, _in_parts(run) if in_parts else run)


def _in_parts(rewrite: Run) -> Run:
    def run(plan: Plan, context: PassContext, note: Note) -> Plan:
        done = rewrite(plan, context, note)

        def rewritten(part: tuple[Read | Element, ...]) -> tuple[Read | Element, ...]:
            nodes = rewrite(Plan(plan.split, (done.index, *part)), context, note).nodes
            return tuple(node for node in nodes if isinstance(node, (Read, Element)))

        def in_read(node: Node) -> Node:
            return replace(node, parts=tuple(map(rewritten, node.parts))) if isinstance(node, Read) else node

        return done.with_nodes(list(map(in_read, done.nodes)))

    return run


def pack(plan: Plan, items: list[Node | Placed]) -> Plan:
    """Makes a plan of nodes and stages, one stage a node; stages after the batch become kernels."""
    nodes: list[Node] = []
    batched = False
    for item in items:
        if isinstance(item, Placed):
            nodes.append(Kernel(item.after, (item.stage,)) if batched else Element(item.after, (item.stage,)))
        else:
            batched = batched or isinstance(item, Batch)
            nodes.append(item)
    return plan.with_nodes(nodes)


def joined(plan: Plan, join: Callable[[Placed, Placed], Placed | None]) -> Plan:
    """Joins neighbouring stages for which `join` gives a joint one."""
    kept: list[Node | Placed] = []
    for item in unpack(plan):
        previous = kept[-1] if kept else None
        both = join(previous, item) if isinstance(previous, Placed) and isinstance(item, Placed) else None
        if both is None:
            kept.append(item)
        else:
            kept[-1] = both
    return pack(plan, kept)


def segments_fused(plan: Plan, part: type[S], end: type[E], fuse: Callable[[list[tuple[Placed, S]], E], Stage]) -> Plan:
    """Replaces each segment, its parts and the stage that ends it, by the one stage that `fuse` makes."""
    kept: list[Node | Placed] = []
    pending: list[tuple[Placed, S]] = []
    for item in unpack(plan):
        if isinstance(item, Placed) and isinstance(item.stage, part):
            pending.append((item, item.stage))
        elif isinstance(item, Placed) and isinstance(item.stage, end):
            kept.append(Placed(fuse(pending, item.stage), pending[0][0].before, item.after))
            pending = []
        else:
            kept.append(item)
    return pack(plan, kept)
