"""rescale, random_flip → random_flip, rescale.

Bytes are four times smaller than floats, so arithmetic moves after steps that only move pixels: flips and crops. It stays
before steps that interpolate, whose rounding would change.
"""

from __future__ import annotations

from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Plan
from pipegen.types import FLOATING


@rewrite("E0", "bytes are four times smaller than floats")
def defer_cast(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Moves arithmetic to the latest place where it is exact."""
    items = unpack(plan)
    moved = True
    while moved:
        moved = False
        for i in range(len(items) - 1):
            first, second = items[i], items[i + 1]
            if isinstance(first, Placed) and isinstance(second, Placed) and _commutes(first, second):
                items[i], items[i + 1] = _swap(first, second)
                behind = " and ".join(f"`{r.id}`" for r in second.stage.uses())
                note(f"arithmetic on `{first.stage.feature}` moved after {behind}")
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


def _swap(first: Placed, second: Placed) -> tuple[Placed, Placed]:
    feature = first.stage.feature
    before, shape = first.before, second.after[feature].shape
    between = before.replace(**{feature: before[feature].with_(shape=shape)})
    return Placed(second.stage, before, between), Placed(first.stage, between, second.after)
