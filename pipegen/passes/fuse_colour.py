"""matrix of brightness, matrix of contrast, apply → one colour matrix: brightness · contrast.

The language says that a colour segment multiplies and clips once; this pass makes it one stage. The matrices multiply
in the same order, in float64.
"""

from __future__ import annotations

from collections.abc import Callable

from pipegen.passes.base import Pass, PassContext, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan


def fuse_colour(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Merge each colour segment into one Colour."""
    kept: list[Node | Placed] = []
    pending: list[Placed] = []
    for item in unpack(plan):
        if isinstance(item, Placed) and isinstance(item.stage, s.ComposeColour):
            pending.append(item)
        elif isinstance(item, Placed) and isinstance(item.stage, s.ApplyColour):
            composed = [p.stage for p in pending if isinstance(p.stage, s.ComposeColour)]
            refs = tuple(c.ref for c in composed)
            what = f"{len(refs)} colour steps" if len(refs) > 1 else f"`{refs[0].id}`"
            note(f"{what} became one matrix on `{item.stage.feature}`")
            colour = s.Colour(item.stage.feature, refs, composed[0].channels, item.stage.clip, item.stage.uses_mean, item.stage.exact)
            kept.append(Placed(colour, pending[0].before, item.after))
            pending = []
        else:
            kept.append(item)
    return pack(plan, kept)


FUSE_COLOUR = Pass("fuse_colour", "E0", "one matrix and one clip for a run of colour steps", fuse_colour)
