"""warp, colour, normalise, Batch → Batch, warp, colour, normalise.

As soon as examples have a fixed shape they are stacked, and what remains works on whole batches, where it can be
compiled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.passes.base import Pass, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.passes.base import PassContext
    from pipegen.plan.nodes import Node, Plan


def batch_early(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Move the batch in front of the stages that can work on one."""
    items = unpack(plan)
    at = next(i for i, item in enumerate(items) if isinstance(item, Batch))
    batch = items[at]
    assert isinstance(batch, Batch)  # noqa: S101
    start = at
    while start > 0 and _works_on_batches(items[start - 1]):
        start -= 1
    if start == at:
        return plan
    moved = [m for m in items[start:at] if isinstance(m, Placed)]
    note(f"{len(moved)} stages work on whole batches" if len(moved) > 1 else "1 stage works on whole batches")
    axis = batch.out.batch
    early: list[Node | Placed] = [replace(batch, out=moved[0].before.with_batch(axis))]
    early += [Placed(m.stage, m.before.with_batch(axis), m.after.with_batch(axis)) for m in moved]
    return pack(plan, [*items[:start], *early, *items[at + 1 :]])


def _works_on_batches(item: Node | Placed) -> bool:
    if not isinstance(item, Placed) or isinstance(item.stage, s.ElementStage):
        return False
    return all(t.is_static for t in dict(item.before.items()).values() if t.kind != "label")


BATCH_EARLY = Pass("batch_early", "E1", "whole batches of fixed shape can be compiled", batch_early)
