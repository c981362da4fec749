"""image, mask, depth; the model gets image and mask → image, mask.

A feature that the model does not receive, and on whose file nothing depends that it does receive, is not read, decoded, worked on or
cached. An image that is not received stays where a mask in a file is aligned with it: the two have to be of one size, which only the
image's file can tell. The vector of draws stays as it is, so that every step finds its own numbers where they were.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.ops.kinds.registry import kind_of
from pipegen.passes.base import Note, Pass, PassContext, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Node, Plan, Read
from pipegen.plan.outputs import received


def drop_unused(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Remove the features that nothing comes of."""
    left = without_unused(plan)
    gone = [f"`{name}`" for name in plan.read if name not in left.read]
    if gone:
        note(f"the model does not receive {' and '.join(gone)}")
    return left


def without_unused(plan: Plan) -> Plan:
    """The plainest plan of a split, one stage a node, less the features that nothing comes of."""
    needed = _needed(plan)
    unused = tuple(name for name in plan.read if name not in needed)
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
            kept.append(Placed(item.stage, item.before.without(*unused), item.after.without(*unused)))
    return pack(plan, kept)


def _part(part: tuple[Read | Element, ...], needed: set[str], unused: tuple[str, ...]) -> tuple[Read | Element, ...]:
    """Removes them from what one part of a mix does alone."""
    works = [node for node in part if isinstance(node, Read) or node.stages[0].feature in needed]
    return tuple(replace(node, out=node.out.without(*unused)) for node in works)


def _needed(plan: Plan) -> set[str]:
    """Returns what the model receives, and what has to be at hand to decode that."""
    needed = set(received(plan.emit.output))
    # The items of a padded feature and what says which of them are there are one thing.
    valid = {name: t.of or name for name, t in plan.read.items() if kind_of(t).valid}
    needed |= {other for name, of in valid.items() if {name, of} & needed for other in (name, of)}
    looks = [
        stage for stage in (*plan.part_stages(), *plan.stages()) if isinstance(stage, (s.Decode, s.Measure)) and stage.feature in needed
    ]
    return needed | {stage.like[0] for stage in looks if stage.like}


DROP_UNUSED = Pass("drop_unused", "E0", "what nobody sees need not be made", drop_unused)
