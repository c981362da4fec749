"""`random_rotation: {degrees: 0}` → nothing.

Drops stages that provably change no value: steps that declare it, arithmetic of scale 1 and offset 0 that keeps the dtype,
and the resampling of a segment with no steps left.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan
from pipegen.types import FeatureType


@rewrite("E0", "steps that change nothing cost nothing", in_parts=True)
def drop_identities(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Removes stages that change nothing."""
    kept: list[Node | Placed] = []
    emptied: set[str] = set()
    pending: dict[str, FeatureType] = {}
    for item in unpack(plan):
        if not isinstance(item, Placed):
            kept.append(item)
            continue
        stage, feature = item.stage, item.stage.feature
        if isinstance(stage, s.Composes):
            x = item.before[feature] if stage.opens else pending[feature]
            pending[feature] = stage.ref.step.infer(x)
            opens = stage.opens or feature in emptied
            if pending[feature] == x and stage.ref.step.is_identity(x):
                emptied |= {feature} if opens else set()
                note(f"`{stage.ref.id}` changes nothing")
                continue
            emptied.discard(feature)
            kept.append(Placed(replace(stage, opens=opens), item.before, item.after))
        elif isinstance(stage, (s.Resample, s.ApplyColour)) and feature in emptied:
            emptied.discard(feature)
        elif feature in item.before and feature in item.after and stage.is_identity(item.before[feature], item.after[feature]):
            note(_said(stage))
        else:
            kept.append(item)
    return pack(plan, kept)


def _said(stage: Stage) -> str:
    used = stage.uses()
    return f"`{used[-1].id}` changes nothing" if used else f"arithmetic on `{stage.feature}` changes nothing"
