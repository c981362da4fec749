"""Batch, sharpness for 1 example in 14 → branch(sharpness), Batch.

What only some examples get and costs much for each, a filter or a table that needs the histogram, runs on those alone: in
the element stage, under a branch, in a small kernel of its own. In a batch every example would pay for it, since a kernel
computes both sides of a choice. A cheap conditional table in front of such a stage goes with it, to keep the order; and
all of it has to come first behind the batch, for nothing that works on batches can stand before an element stage. A mirror
in front of it changes places with it where that is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.passes.base import Pass, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.passes.base import PassContext
    from pipegen.plan.nodes import Plan

RARE = 0.7
"""The share of examples up to which a branch is cheaper than doing it to all of them."""


def branch_rare(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Move the rare and dear stages that come first behind the batch before it, each under a branch."""
    items = unpack(plan)
    at = next(i for i, item in enumerate(items) if isinstance(item, Batch))
    behind = [item for item in items[at + 1 :] if isinstance(item, Placed)]
    mirrors = 0
    while mirrors < len(behind) and isinstance(stage := behind[mirrors].stage, s.Warp) and stage.mirrors:
        mirrors += 1
    run: list[Placed] = []
    dear = 0
    for item in behind[mirrors:]:
        if not _conditional(item) or (mirrors and not _commutes(item)):
            break
        run.append(item)
        dear = len(run) if _is_rare_and_dear(item) else dear
    if not dear or any(isinstance(item, Cache) for item in items):
        return plan
    for item in run[:dear]:
        ids = " and ".join(dict.fromkeys(f"`{ref.id}`" for ref in s.refs(item.stage)))
        note(f"{ids} runs on the {min(1.0, sum(ref.share for ref in s.refs(item.stage))):.0%} of the examples that need it")
    moved = [_branch(item, compiled=context.runtime.jit != "never") for item in run[:dear]]
    return pack(plan, [*items[:at], *moved, *items[at : at + 1 + mirrors], *items[at + 1 + mirrors + dear :]])


def _branch(item: Placed, *, compiled: bool) -> Placed:
    stage = item.stage
    assert isinstance(stage, (s.Curve, s.Neighbourhood))  # noqa: S101 - `_conditional` has asked
    branch = s.Branch(stage.feature, stage, item.before[stage.feature], compiled)
    return Placed(branch, item.before.with_batch(None), item.after.with_batch(None))


def _conditional(item: Placed) -> bool:
    """A table or a filter that leaves some examples exactly as they are."""
    if not isinstance(item.stage, (s.Curve, s.Neighbourhood)):
        return False
    same = item.before[item.stage.feature] == item.after[item.stage.feature]
    return same and all(ref.conditional for ref in s.refs(item.stage))


def _commutes(item: Placed) -> bool:
    """Returns whether mirroring before and after gives the same bits: values alone decide, or a filter is as wide to the left."""
    if isinstance(item.stage, s.Curve):
        return True
    steps = [ref.step for ref in s.refs(item.stage)]
    return item.before[item.stage.feature].dtype == "uint8" and all(isinstance(t, NeighbourhoodTransform) and t.symmetric for t in steps)


def _is_rare_and_dear(item: Placed) -> bool:
    stage = item.stage
    dear = stage.reads_histogram if isinstance(stage, s.Curve) else isinstance(stage, s.Neighbourhood) and stage.starts_kernel
    return dear and sum(ref.share for ref in s.refs(stage)) <= RARE


BRANCH_RARE = Pass("branch_rare", "E1", "what few examples need, the others do not pay for", branch_rare)
