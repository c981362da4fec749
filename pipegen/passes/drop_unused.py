"""image, mask, depth; the model gets image and mask → image, mask.

A feature that the model does not receive is not read, decoded, processed or cached, unless a received feature depends on its
file. So an image stays if a received mask in a file is aligned with it: both have to be of one size, which is that of the
image's file. The vector of draws stays as it is, so that every step keeps its draws.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.ops.families.crops import ChooseWindow, window_name
from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.item_stages import Measure
from pipegen.ops.kinds.base import Presence, kind_of
from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Node, Plan, Read
from pipegen.spec.models import received
from pipegen.types import FeatureType


@rewrite("E0", "features that the model does not receive need no work")
def drop_unused(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Removes unused features."""
    left = without_unused(plan)
    gone = [f"`{name}`" for name in _types(plan) if name not in _types(left)]
    if gone:
        note(f"the model does not receive {' and '.join(gone)}")
    return left


def without_unused(plan: Plan) -> Plan:
    """Removes unused features from a plan with one stage a node."""
    if plan.buckets:
        return plan.each(without_unused)
    needed = _needed(plan)
    unused = tuple(name for name in _types(plan) if name not in needed)
    if not unused:
        return plan
    kept: list[Node | Placed] = []
    for item in unpack(plan):
        if isinstance(item, Read) and item.parts:
            parts = tuple(_part(part, needed, unused) for part in item.parts)
            kept.append(replace(item, out=item.out.without(*unused), parts=parts))
        elif not isinstance(item, Placed):
            kept.append(replace(item, out=item.out.without(*unused)))
        elif item.stage.feature in needed:
            kept.append(Placed(_less(item.stage, needed), item.before.without(*unused), item.after.without(*unused)))
    return pack(plan, kept)


def _part(part: tuple[Read | Element, ...], needed: set[str], unused: tuple[str, ...]) -> tuple[Read | Element, ...]:
    """Removes unused features from the nodes of one part of a mix."""
    works = [node for node in part if isinstance(node, Read) or node.stages[0].feature in needed]
    left = [node if isinstance(node, Read) else replace(node, stages=tuple(_less(st, needed) for st in node.stages)) for node in works]
    return tuple(replace(node, out=node.out.without(*unused)) for node in left)


def _less(stage: Stage, needed: set[str]) -> Stage:
    """Removes unused views from a fork, and unused riders from a stage on items."""
    riders = getattr(stage, "riders", ())
    if riders:
        return replace(stage, riders=tuple(name for name in riders if name in needed))
    if not isinstance(stage, s.Fork):
        return stage
    kept = [i for i, name in enumerate(stage.names) if name in needed]
    names, homes, besides = (tuple(several[i] for i in kept if several) for several in (stage.names, stage.homes, stage.besides))
    return replace(stage, names=names, homes=homes, besides=besides)


def _types(plan: Plan) -> dict[str, FeatureType]:
    """The features of all edges."""
    parts = (node for read in plan.nodes if isinstance(read, Read) for part in read.parts for node in part)
    return {name: t for node in (*plan.nodes, *parts) for name, t in node.out.items()}


def _needed(plan: Plan) -> set[str]:
    """The features that the model receives, and those that they depend on."""
    needed = set(received(plan.emit.output))
    # A padded feature and the mask of its valid items need each other; features beside them lose items with them.
    needed |= {t.beside for name, t in _types(plan).items() if name in needed and t.beside is not None}
    valid = [{name, t.of} for name, t in _types(plan).items() if t.of is not None and kind_of(t).has(Presence)]
    needed |= {name for pair in valid if pair & needed for name in pair}
    stages = (*plan.part_stages(), *plan.stages())
    before = 0
    while before != (before := len(needed)):  # a needed feature may be made from another one
        needed |= {name for st in stages if st.feature in needed for name in st.needs()}
    used = {window_name(ref) for st in stages if st.feature in needed for ref in st.uses()}
    needed |= {part for st in stages if isinstance(st, ChooseWindow) and window_name(st.ref) in used for part in st.touches()}
    needed |= {st.like[0] for st in stages if isinstance(st, (Decode, Measure)) and st.feature in needed and st.like}
    return needed | {st.feature for st in stages if isinstance(st, s.Fork) and needed & {*st.names}}
