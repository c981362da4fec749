"""Passes that move nodes and stages to where they cost less."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.families.crops import CanvasCrop
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.step_bases import GeometricTransform
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, retyped, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.cost import ASSUMED_FILE, Circumstances, plan_cost
from pipegen.plan.nodes import Batch, Cache, Node, Plan, Read, Shard, Shuffle
from pipegen.types import FLOATING

RARE = 0.7
"""The share of examples up to which a branch is cheaper than running the stage on all."""


@rewrite("E0", "an order of positions needs no buffer")
def shuffle_before_read(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Read, Shuffle(global) → Index(global shuffle), Read.

    A shuffle of positions costs no memory, a shuffle of records holds all of them. The order is a function of (seed, epoch, position), so
    nothing else changes.
    """
    shuffle = next((n for n in plan.nodes if isinstance(n, Shuffle)), None)
    if shuffle is None:
        return plan
    index = replace(plan.index, order=shuffle.order, window_bytes=shuffle.window_bytes, blocks=shuffle.blocks)
    note(f"the {shuffle.order} shuffle permutes positions and holds no examples")
    return plan.with_nodes([index, *(n for n in plan.nodes[1:] if n is not shuffle)])


@rewrite("E0", "a host reads only its own examples")
def shard_before_read(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Read, Shard → Index(this host's block), Read.

    A host then reads only its own examples, unless a shuffle is in between. The block is a range of positions of the global batch, so the
    examples stay the same.
    """
    shard = next((n for n in plan.nodes if isinstance(n, Shard)), None)
    if shard is None or any(isinstance(n, Shuffle) for n in plan.nodes):
        return plan
    note("a host reads only its own block")
    return plan.with_nodes([replace(plan.index, shard=True), *(n for n in plan.nodes[1:] if n is not shard)])


@rewrite("E0", "bytes are four times smaller than floats")
def defer_cast(plan: Plan, context: PassContext, note: Note) -> Plan:
    """rescale, random_flip → random_flip, rescale.

    Bytes are four times smaller than floats, so arithmetic moves after steps that only move pixels: flips and crops. It stays before steps
    that interpolate, whose rounding would change.
    """
    items = unpack(plan)
    moved = True
    while moved:
        moved = False
        for i in range(len(items) - 1):
            first, second = items[i], items[i + 1]
            if isinstance(first, Placed) and isinstance(second, Placed) and _commutes(first, second):
                feature, before = first.stage.feature, first.before
                between = before.replace(**{feature: before[feature].with_(shape=second.after[feature].shape)})
                items[i], items[i + 1] = Placed(second.stage, before, between), Placed(first.stage, between, second.after)
                behind = " and ".join(f"`{r.id}`" for r in second.stage.uses())
                note(f"arithmetic on `{feature}` moved after {behind}")
                moved = True
    return pack(plan, items)


def _commutes(first: Placed, second: Placed) -> bool:
    a, b = first.stage, second.stage
    if not isinstance(a, s.Pointwise) or a.feature != b.feature:
        return False
    if first.before[a.feature].dtype in FLOATING and first.after[a.feature].dtype not in FLOATING:
        return False  # it converts to bytes, and bytes are cheaper to move
    if isinstance(b, s.Warp):
        return b.copies() and not isinstance(b.fill, ConstantFill)
    return isinstance(b, s.Crop) and b.ref.step.traits(first.after[a.feature]).moves_pixels_only


@rewrite("E0", "a compiled crop of a batch takes a third of the time of single ones")
def crop_batches(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Read, random_resized_crop, random_flip, Batch → Batch, Read canvases, crop and mirror the batch.

    Images stored by `pipegen prepare` are on canvases of one size, so a batch of them can be read as one and cropped by a compiled kernel,
    if there are no other element stages. Every bit is that of a crop of single images.
    """
    items = unpack(plan)
    begin, read = next((i, item) for i, item in enumerate(items) if isinstance(item, Read))
    end = next(i for i, item in enumerate(items) if isinstance(item, Batch))
    between = [item for item in items[begin + 1 : end] if isinstance(item, Placed)]
    if not context.canvases or len(between) < end - begin - 1:
        return plan
    first = {name: next((p for p in between if p.stage.feature == name), None) for name in read.out}
    turned = {name: made for name, placed in first.items() if (made := _on_canvas(name, placed, context)) is not None}
    rest = [p for p in between if not (p.stage.feature in turned and p is first[p.stage.feature])]
    loose = any(not t.is_static and name not in turned and not kind_of(t).indexed for name, t in read.out.items())
    if not turned or loose or any(p.stage.one_example for p in rest):
        return plan
    edge = read.out.replace(**{name: read.out[name].with_(shape=(*c.canvas, read.out[name].shape[2])) for name, c in turned.items()})
    changed: list[Node | Placed] = [replace(read, out=edge)]
    for placed in between:
        stage, previous = placed.stage, changed[-1]
        name = stage.feature
        cropped = isinstance(previous, Placed) and isinstance(previous.stage, CanvasCrop) and previous.stage.feature == name
        if name in turned and placed is first[name]:
            stage = turned[name]
        elif isinstance(previous, Placed) and cropped and isinstance(stage, s.Warp) and stage.mirrors:  # the crop absorbs it
            changed.pop()
            mirrors = (ref.of(GeometricTransform) for ref in stage.uses())
            stage, edge = replace(turned[name], mirrors=(*turned[name].mirrors, *mirrors)), previous.before
            turned[name] = stage
        after = edge.replace(**{name: placed.after[name]})
        changed.append(Placed(stage, edge, after))
        edge = after
    for made in turned.values():
        note(f"`{made.ref.id}` crops and resizes whole batches, read from canvases of {made.canvas[0]}×{made.canvas[1]}")
    return pack(plan, [*items[:begin], *changed, *items[end:]])


def _on_canvas(name: str, placed: Placed | None, context: PassContext) -> CanvasCrop | None:
    """The crop of whole batches that equals a stage, if possible."""
    canvas = context.canvases.get(name)
    if canvas is None or placed is None or not isinstance(placed.stage, s.Crop):
        return None
    ref, before, after = placed.stage.ref, placed.before[name], placed.after[name]
    fits = before.dtype == "uint8" and ref.step.traits(before).bilinear and not ref.conditional
    size = after.height, after.width
    if not fits or size[0] is None or size[1] is None or before.channels is None:
        return None
    return CanvasCrop(name, ref, canvas, before.channels, (size[0], size[1]))


@rewrite("E1", "whole batches of fixed shape can be compiled")
def batch_early(plan: Plan, context: PassContext, note: Note) -> Plan:
    """warp, colour, normalise, Batch → Batch, warp, colour, normalise.

    Examples are stacked as soon as they have a fixed shape; later stages work on whole batches, where they can be compiled. If records have
    a fixed shape from the start, a batch is read as one: Read, Batch → Batch, Read.
    """
    items = unpack(plan)
    at, batch = next((i, item) for i, item in enumerate(items) if isinstance(item, Batch))
    behind = [*takewhile(lambda item: isinstance(item, Placed), reversed(items[:at]))]
    stays, moves = _parted([item for item in reversed(behind) if isinstance(item, Placed)])
    first = at - len(behind)
    read = items[first - 1]
    fixed = isinstance(read, Read) and all(t.is_static and not t.encoded for _, t in read.out.items())
    reads = fixed and not stays and not plan.index.parts
    if not moves and not reads:
        return plan
    if moves:
        note(f"{len(moves)} stages work on whole batches" if len(moves) > 1 else "1 stage works on whole batches")
    if reads:
        note("records have one shape, so a batch is read as one")
        first -= 1
    axis = batch.out.batch
    before = items[first - 1]
    assert not isinstance(before, Placed)  # noqa: S101
    early = retyped(stays, before.out)
    entry = (early[-1].after if early else before.out).with_batch(axis)
    late: list[Node | Placed] = [replace(batch, out=entry)]
    if reads and isinstance(read, Read):
        entry = read.out.with_batch(axis)
        late.append(replace(read, out=entry))
    return pack(plan, [*items[:first], *early, *late, *retyped(moves, entry), *items[at + 1 :]])


def _parted(items: list[Placed]) -> tuple[list[Placed], list[Placed]]:
    """Splits stages into those that have to stay before the batch and those that can follow it.

    Stages on single examples stay, with all earlier ones on their feature.
    """
    last: dict[str, int] = {}
    for i, p in enumerate(items):
        if p.stage.one_example:
            last |= dict.fromkeys(p.stage.touches(), i)
        elif not p.before[p.stage.feature].is_static:
            last[p.stage.feature] = i
    for i, p in reversed([*enumerate(items)]):  # a fork comes before all stages on its views
        if isinstance(p.stage, s.Fork) and any(name in last for name in p.stage.names):
            last[p.stage.feature] = max(last.get(p.stage.feature, -1), i)
    stays = [item for i, item in enumerate(items) if i <= last.get(item.stage.feature, -1)]
    return stays, [item for i, item in enumerate(items) if i > last.get(item.stage.feature, -1)]


@rewrite("E1", "examples do not pay for stages that few need")
def branch_rare(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Batch, sharpness for 1 example in 14 → branch(sharpness), Batch.

    A costly stage that only some examples need, such as a filter or a table of the histogram, runs on those alone: in the element stage,
    under a branch, in a small kernel of its own. In a batch every example would pay for it, since a kernel computes both sides of a choice.
    A cheap conditional table before such a stage moves with it, to keep the order. All of them have to come first after the batch, since no
    batch stage can be before an element stage. A mirror before them swaps places with them if that is exact.

    If a batch of records is read as one (Batch, Read), branches need single reads, which pays for large images alone: the plan with the
    lower expected cost is taken.
    """
    items = unpack(plan)
    at, batch = next((i, item) for i, item in enumerate(items) if isinstance(item, Batch))
    read = items[at + 1]
    reads = isinstance(read, Read)
    first = at + 1 + reads
    behind = [item for item in takewhile(lambda item: isinstance(item, Placed), items[first:]) if isinstance(item, Placed)]
    mirrors, rare = _rare(behind)
    if not rare or any(isinstance(item, Cache) for item in items):
        return plan
    moved = []
    for item in rare:
        stage = item.stage
        compiled = context.runtime.jit != "never" and stage.compilable
        branch = s.Branch(stage.feature, stage, item.before[stage.feature], compiled)
        moved.append(Placed(branch, item.before.with_batch(None), item.after.with_batch(None)))
    early: list[Node] = []
    if isinstance(read, Read):  # Batch, Read → Read, Batch
        early, batch = [Read(read.out.with_batch(None))], replace(batch, out=read.out.with_batch(batch.out.batch))
    branched = pack(plan, [*items[:at], *early, *moved, batch, *behind[:mirrors], *items[first + mirrors + len(rare) :]])
    given = Circumstances(context.file_bytes or ASSUMED_FILE)  # without the machine's factors, on which no number may depend
    if reads and plan_cost(branched, given).us >= plan_cost(plan, given).us:
        note("no branch: reading record by record would cost more than it saves")
        return plan
    for item in rare:
        ids = " and ".join(dict.fromkeys(f"`{ref.id}`" for ref in item.stage.uses()))
        note(f"{ids} runs on the {min(1.0, sum(ref.share for ref in item.stage.uses())):.0%} of the examples that need it")
    return branched


def _rare(behind: list[Placed]) -> tuple[int, list[Placed]]:
    """The number of mirrors that are first after the batch, and the stages after them to branch, up to the last costly one."""
    mirrors = sum(1 for _ in takewhile(lambda item: item.stage.mirrors_only(), behind))

    def conditional(item: Placed) -> bool:
        """Tests if a stage leaves some examples exactly as they are, and can swap with the mirrors."""
        x, stage = item.before[item.stage.feature], item.stage
        same = stage.branches and x == item.after[stage.feature] and all(ref.conditional for ref in stage.uses())
        return same and (not mirrors or stage.commutes_with_mirrors(x))

    run = list(takewhile(conditional, behind[mirrors:]))
    dear = [i for i, item in enumerate(run) if item.stage.leads() and sum(ref.share for ref in item.stage.uses()) <= RARE]
    return mirrors, run[: dear[-1] + 1] if dear else []
