"""The rules of a well-formed plan, checked after every pass that changes one."""

from __future__ import annotations

from collections.abc import Callable

from pipegen.errors import InternalError
from pipegen.ops.kinds.base import kind_of
from pipegen.plan import stages as s
from pipegen.plan.followers import unmarked
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Plan, Prefetch, Read, Send, Shard, Shuffle
from pipegen.plan.recipe import decided_by
from pipegen.spec.models import received

Rule = Callable[[Plan], "str | None"]


def verify(plan: Plan, after: str) -> None:
    """Checks all rules; raises `InternalError` with the broken rule, the cause and the plan."""
    for rule in RULES:
        problem = rule(plan)
        if problem is not None:
            from pipegen.plan.plan_text import render_plan

            raise InternalError(f"after {after}: {(rule.__doc__ or '').splitlines()[0]} {problem}\n{render_plan(plan)}")


def _starts_and_ends(plan: Plan) -> str | None:
    """A plan starts with Index and Read, holds one Batch and one Emit, perhaps a Send between, and only Prefetch follows Emit."""
    kinds = [type(n) for n in plan.nodes]
    if kinds[:1] != [Index] or kinds.count(Read) != 1 or kinds.count(Batch) != 1 or kinds.count(Emit) != 1:
        return f"got {[k.__name__ for k in kinds]}."
    between = kinds[kinds.index(Batch) : kinds.index(Emit)]
    if kinds.count(Send) != between.count(Send) or kinds.count(Send) > 1:
        return f"{kinds.count(Send)} Send in {[k.__name__ for k in kinds]}."
    after = kinds[kinds.index(Emit) + 1 :]
    return None if after in ([], [Prefetch]) else f"{[k.__name__ for k in after]} follow Emit."


def _order_is_settled_once(plan: Plan) -> str | None:
    """A plan shuffles in one place: a Shuffle node, or the Index."""
    shuffles = sum(isinstance(n, Shuffle) for n in plan.nodes) + (plan.index.order != "stored")
    shards = sum(isinstance(n, Shard) for n in plan.nodes) + plan.index.shard
    return None if shuffles <= 1 and shards <= 1 else f"{shuffles} shuffles, {shards} shards."


def _shard_follows_shuffle(plan: Plan) -> str | None:
    """A shard is a block of the shuffled order, so it never comes before the shuffle."""
    kinds = [type(n) for n in plan.nodes]
    if Shuffle in kinds and (plan.index.shard or (Shard in kinds and kinds.index(Shard) < kinds.index(Shuffle))):
        return "the shard comes first."
    return None


def _stages_stand_where_they_work(plan: Plan) -> str | None:
    """Element stages come before the batch, kernels after it, and all of them after Read."""
    batched = read = False
    for node in plan.nodes:
        batched, read = batched or isinstance(node, Batch), read or isinstance(node, Read)
        if isinstance(node, (Element, Kernel, Cache)) and not read:
            return f"{type(node).__name__} comes before Read."
        if isinstance(node, Element) and batched:
            return "an Element follows Batch."
        if isinstance(node, Kernel) and (not batched or any(st.one_example for st in node.stages)):
            return "a Kernel before Batch, or one that holds an element stage."
        if isinstance(node, Element) and any(st.combines for st in node.stages):
            return "an Element that combines examples."
        if isinstance(node, (Element, Kernel)) and not node.stages:
            return "an empty node."
    return None


def _whole_images_come_first(plan: Plan) -> str | None:
    """Stages that read whole images come first in their kernel, unless it goes from example to example."""
    for node in plan.nodes:
        seen: set[str] = set()
        for stage in node.stages if isinstance(node, Kernel) and not node.rows else ():
            if stage.leads() and stage.feature in seen:
                return f"{type(stage).__name__} on `{stage.feature}` follows another stage."
            seen.add(stage.feature)
    return None


def _batch_is_static(plan: Plan) -> str | None:
    """Features have a fixed shape where they are batched."""
    for name, t in plan.batch.out.items():
        if not t.is_static and kind_of(t).storage != "dense":
            return f"`{name}` is {t}."
    return None


def _segments_are_closed(plan: Plan) -> str | None:
    """A composed matrix is applied before anything else touches its feature."""
    pending: dict[str, str] = {}
    for stage in plan.stages():
        if isinstance(stage, s.Composes):
            kind = type(stage).__name__
            if stage.opens == (stage.feature in pending) or pending.get(stage.feature, kind) != kind:
                return f"`{stage.feature}` has a segment that opens twice or never."
            pending[stage.feature] = kind
        elif isinstance(stage, (s.Resample, s.ApplyColour)):
            wanted = "Compose" if isinstance(stage, s.Resample) else "ComposeColour"
            if pending.pop(stage.feature, None) != wanted:
                return f"`{stage.feature}` is resampled or coloured without a matrix."
        elif stage.feature in pending:
            return f"{type(stage).__name__} touches `{stage.feature}` inside a segment."
    return f"`{next(iter(pending))}` is left pending." if pending else None


def _pending_steps_leave_the_image(plan: Plan) -> str | None:
    """Composing a matrix leaves the image itself as it is until the segment ends."""
    for before, node in zip(plan.nodes, plan.nodes[1:], strict=False):
        composes = isinstance(node, (Element, Kernel)) and all(isinstance(st, s.Composes) for st in node.stages)
        if composes and node.out != before.out:
            return f"{before.out} became {node.out}."
    return None


def _draws_are_in_range(plan: Plan) -> str | None:
    """Every step's draws are part of the vector that the index makes."""
    known = {(r.id, r.start): r.num_draws for r in plan.index.draws}
    alone = [[stage for node in part if isinstance(node, Element) for stage in node.stages] for part in plan.reader.parts]
    of_parts = [{(r.id, r.start): r.num_draws for r in part.draws} for part in plan.index.parts]
    for stages, own in [(plan.stages(), known), *zip(alone, of_parts, strict=False)]:
        for ref in (ref for stage in stages for use in stage.uses() for ref in decided_by(use)):
            if ref.num_draws > own.get((ref.id, ref.start), 0):
                return f"`{ref.id}` at {ref.start}."
    return None


def _parts_end_alike(plan: Plan) -> str | None:
    """Each part of a mix ends with the type that leaves Read."""
    read = plan.reader
    if read.parts and len(read.parts) != len(plan.index.parts):
        return f"{len(read.parts)} of {len(plan.index.parts)} parts are read."
    for end in (dict(part[-1].out.items()) for part in read.parts):
        wrong = [name for name, t in read.out.items() if name not in end or (end[name].dtype, end[name].shape) != (t.dtype, t.shape)]
        if wrong:
            return f"`{wrong[0]}` differs."
    return None


def _cache_is_deterministic(plan: Plan) -> str | None:
    """A cache holds nothing random, and nothing of unknown shape."""
    for position, node in enumerate(plan.nodes):
        if isinstance(node, Cache):
            before = [st for n in plan.nodes[:position] if isinstance(n, (Element, Kernel)) for st in n.stages]
            ragged = any(not t.is_static and kind_of(t).storage != "dense" for _, t in node.out.items())
            if ragged or any(map(s.is_random, (*before, *plan.part_stages()))):
                return "a random or ragged stage precedes Cache."
    return None


def _what_is_rounded_is_exact(plan: Plan) -> str | None:
    """Floats that are rounded to whole numbers later are computed exactly."""
    if any(isinstance(node, (Element, Kernel)) and len(node.stages) != 1 for node in plan.nodes):
        return None  # grouped: no pass changes a stage from there on
    lost = unmarked(plan.nodes)
    return f"{type(lost[0]).__name__} on `{lost[0].feature}` is not." if lost else None


RULES: tuple[Rule, ...] = (
    _starts_and_ends,
    _order_is_settled_once,
    _shard_follows_shuffle,
    _stages_stand_where_they_work,
    _whole_images_come_first,
    _batch_is_static,
    _segments_are_closed,
    _pending_steps_leave_the_image,
    _draws_are_in_range,
    _parts_end_alike,
    _cache_is_deterministic,
    _what_is_rounded_is_exact,
)


def same_output(before: Plan, after: Plan) -> bool:
    """Tests if a rewrite kept the output and its types."""
    output = before.emit.output
    return output == after.emit.output and all(before.out.get(name) == after.out.get(name) for name in received(output))
