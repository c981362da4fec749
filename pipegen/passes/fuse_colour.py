"""matrix of brightness, matrix of contrast, apply → one colour matrix: brightness · contrast.

By definition a colour segment multiplies and clips once; this pass makes it one stage. The matrices are multiplied in the same
order, in float64.
"""

from __future__ import annotations

from pipegen.passes.plan_pass import Note, PassContext, Placed, rewrite, segments_fused
from pipegen.plan import stages as s
from pipegen.plan.nodes import Plan


@rewrite("E0", "one matrix and one clip for a run of colour steps", in_parts=True)
def fuse_colour(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Merges each colour segment into one Colour."""

    def fuse(parts: list[tuple[Placed, s.ComposeColour]], end: s.ApplyColour) -> s.Colour:
        refs = tuple(part.ref for _, part in parts)
        what = f"{len(refs)} colour steps" if len(refs) > 1 else f"`{refs[0].id}`"
        note(f"{what} became one matrix on `{end.feature}`")
        return s.Colour(end.feature, refs, parts[0][1].channels, end.clip, end.uses_mean, end.exact)

    return segments_fused(plan, s.ComposeColour, s.ApplyColour, fuse)
