"""`random_rotation: {degrees: 0}` → nothing.

Drops what provably changes no value: a step whose op says so, an arithmetic of scale 1 and offset 0 that keeps the
dtype, and the resampling of a segment of which nothing is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.passes.base import Pass, Placed, pack, unpack
from pipegen.plan import stages as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.passes.base import PassContext
    from pipegen.plan.nodes import Node, Plan

_OPENING = (s.Compose, s.ComposeColour)
_CLOSING = (s.Resample, s.ApplyColour)


def drop_identities(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Remove stages that change nothing."""
    kept: list[Node | Placed] = []
    reopened: set[str] = set()
    for item in unpack(plan):
        if not isinstance(item, Placed):
            kept.append(item)
            continue
        stage, feature = item.stage, item.stage.feature
        identity = _is_identity(item)
        if isinstance(stage, _OPENING):
            opens = stage.opens or feature in reopened
            if identity:
                if opens:
                    reopened.add(feature)
                note(f"`{stage.ref.id}` changes nothing")
                continue
            reopened.discard(feature)
            stage = _with_opens(stage, opens)
            kept.append(Placed(stage, item.before, item.after))
        elif isinstance(stage, _CLOSING) and feature in reopened:
            reopened.discard(feature)
            if item.before[feature] != _entry(kept, feature, item):
                kept.append(item)
        elif identity:
            note(f"{type(stage).__name__.lower()} of `{feature}` changes nothing")
        else:
            kept.append(item)
    return pack(plan, kept)


def _with_opens(stage: s.Compose | s.ComposeColour, opens: bool) -> s.Compose | s.ComposeColour:
    if isinstance(stage, s.Compose):
        return s.Compose(stage.feature, stage.ref, stage.canvas, opens)
    return s.ComposeColour(stage.feature, stage.ref, stage.channels, opens)


def _entry(kept: list[Node | Placed], feature: str, item: Placed) -> object:
    """The type of the feature as it now arrives."""
    for earlier in reversed(kept):
        out = earlier.after if isinstance(earlier, Placed) else earlier.out
        if feature in out:
            return out[feature]
    return item.before[feature]


def _is_identity(item: Placed) -> bool:
    stage, feature = item.stage, item.stage.feature
    before, after = item.before[feature], item.after[feature]
    if isinstance(stage, s.Pointwise):
        return stage.arithmetic.is_identity(before) and before == after
    if isinstance(stage, (s.Apply, s.Crop, s.Compose)):
        return before == after and stage.ref.step.is_identity(before)
    if isinstance(stage, s.ComposeColour):
        return before.dtype == after.dtype and stage.ref.step.is_identity(before)
    return False


DROP_IDENTITIES = Pass("drop_identities", "E0", "what changes nothing costs nothing", drop_identities)
