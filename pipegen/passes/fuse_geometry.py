"""matrix of rotation, matrix of flip, resample → warp once: rotation · flip.

The language says that a geometric segment resamples once; this pass makes the segment one stage, so that it can move
and be compiled as a whole. The matrices multiply in the same order, in float64, so every bit stays.
"""

from __future__ import annotations

from collections.abc import Callable

from pipegen.passes.base import Pass, PassContext, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan


def fuse_geometry(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Merge each geometric segment into one Warp."""
    kept: list[Node | Placed] = []
    pending: list[Placed] = []
    for item in unpack(plan):
        if isinstance(item, Placed) and isinstance(item.stage, s.Compose):
            pending.append(item)
        elif isinstance(item, Placed) and isinstance(item.stage, s.Resample):
            kept.append(_warp(pending, item, note))
            pending = []
        else:
            kept.append(item)
    return pack(plan, kept)


def _warp(pending: list[Placed], end: Placed, note: Callable[[str], None]) -> Placed:
    composed = [(p, p.stage) for p in pending if isinstance(p.stage, s.Compose)]
    stage = end.stage
    assert isinstance(stage, s.Resample)  # noqa: S101
    refs = tuple(c.ref for _, c in composed)
    mirrors = all(c.ref.step.traits(p.before[c.feature]).mirrors for p, c in composed)
    if len(refs) > 1:
        note(f"{len(refs)} geometric steps resample `{stage.feature}` once")
    elif mirrors:
        note(f"`{refs[0].id}` only mirrors, so `{stage.feature}` is reversed and not resampled")
    else:
        note(f"`{refs[0].id}` resamples `{stage.feature}` once")
    how = stage.fill, stage.interpolation, composed[0][1].canvas, stage.size
    warp = s.Warp(stage.feature, refs, *how, mirrors, stage.projective, stage.exact)
    return Placed(warp, pending[0].before, end.after)


FUSE_GEOMETRY = Pass("fuse_geometry", "E0", "one resampling for a run of geometric steps", fuse_geometry)
