"""warp, colour, normalise, Batch → Batch, warp, colour, normalise.

Examples are stacked as soon as they have a fixed shape; later stages work on whole batches, where they can be compiled. If
records have a fixed shape from the start, a batch is read as one: Read, Batch → Batch, Read.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, retyped, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan, Read


@rewrite("E1", "whole batches of fixed shape can be compiled")
def batch_early(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Moves the batch before the stages that can work on one, and before Read if records have one shape."""
    items, batch = unpack(plan), plan.batch
    first = at = items.index(batch)
    while first > 0 and isinstance(items[first - 1], Placed):
        first -= 1
    stays, moves = _parted([item for item in items[first:at] if isinstance(item, Placed)])
    read = items[first - 1]
    reads = (
        not stays and not plan.index.parts and isinstance(read, Read) and all(t.is_static and not t.encoded for _, t in read.out.items())
    )
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
        elif not all((p.before.get(name) or p.after[name]).is_static for name in (p.stage.feature, *p.stage.needs())):
            last[p.stage.feature] = i  # a stage may make a feature
    for i, p in reversed([*enumerate(items)]):  # a fork comes before all stages on its views
        if isinstance(p.stage, s.Fork) and any(name in last for name in p.stage.names):
            last[p.stage.feature] = max(last.get(p.stage.feature, -1), i)
        if any(last.get(name, -1) > i for name in p.stage.needs()):  # what reads another feature keeps its place among the stages of that
            last[p.stage.feature] = max(last.get(p.stage.feature, -1), i)
        if p.stage.needs() and i <= last.get(p.stage.feature, -1):
            last |= {name: max(last.get(name, -1), i) for name in (*p.stage.touches(), *p.stage.needs())}
    stays = [item for i, item in enumerate(items) if i <= last.get(item.stage.feature, -1)]
    return stays, [item for i, item in enumerate(items) if i > last.get(item.stage.feature, -1)]
