"""warp, colour, normalise, Batch → Batch, warp, colour, normalise.

As soon as examples have a fixed shape they are stacked, and what remains works on whole batches, where it can be
compiled. Where that is so from the start, a batch is read as one: Read, Batch → Batch, Read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.passes.base import Pass, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Read

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.passes.base import PassContext
    from pipegen.plan.nodes import Node, Plan


def batch_early(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Move the batch in front of the stages that can work on one, and of Read where records have one shape."""
    items = unpack(plan)
    at = next(i for i, item in enumerate(items) if isinstance(item, Batch))
    batch = items[at]
    assert isinstance(batch, Batch)  # noqa: S101
    start = at
    while start > 0 and _works_on_batches(items[start - 1]):
        start -= 1
    if start == at:
        return plan
    moved = items[start:at]
    count = sum(isinstance(m, Placed) for m in moved)
    if count:
        note(f"{count} stages work on whole batches" if count > 1 else "1 stage works on whole batches")
    if isinstance(moved[0], Read):
        note("records have one shape, so those of a batch are read together")
    axis = batch.out.batch
    previous = items[start - 1]
    entry = previous.after if isinstance(previous, Placed) else previous.out
    early: list[Node | Placed] = [replace(batch, out=entry.with_batch(axis))]
    for item in moved:
        if isinstance(item, Placed):
            early.append(Placed(item.stage, item.before.with_batch(axis), item.after.with_batch(axis)))
        else:
            early.append(replace(item, out=item.out.with_batch(axis)))
    return pack(plan, [*items[:start], *early, *items[at + 1 :]])


def _works_on_batches(item: Node | Placed) -> bool:
    if isinstance(item, Read):
        return all(t.is_static and t.kind != "encoded" for t in dict(item.out.items()).values())
    if not isinstance(item, Placed) or isinstance(item.stage, s.ElementStage):
        return False
    return all(t.is_static for t in dict(item.before.items()).values() if not t.indexed)


BATCH_EARLY = Pass("batch_early", "E1", "whole batches of fixed shape can be compiled", batch_early)
