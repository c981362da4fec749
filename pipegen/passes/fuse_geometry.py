"""matrix of rotation, matrix of flip, resample → warp once: rotation · flip.

By definition a geometric segment resamples once; this pass makes it one stage, so that it can move and be compiled as a whole.
The matrices are multiplied in the same order, in float64, so every bit stays.
"""

from __future__ import annotations

from pipegen.passes.plan_pass import Note, PassContext, Placed, rewrite, segments_fused
from pipegen.plan import stages as s
from pipegen.plan.nodes import Plan


@rewrite("E0", "one resampling for a run of geometric steps", in_parts=True)
def fuse_geometry(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Merges each geometric segment into one Warp."""

    def fuse(parts: list[tuple[Placed, s.Compose]], end: s.Resample) -> s.Warp:
        refs = tuple(part.ref for _, part in parts)
        traits = [part.ref.step.traits(placed.before[part.feature]) for placed, part in parts]
        mirrors, turns = all(t.mirrors for t in traits), all(t.mirrors or t.turns for t in traits)
        if len(refs) > 1:
            note(f"{len(refs)} geometric steps resample `{end.feature}` once")
        elif mirrors:
            note(f"`{refs[0].id}` only mirrors, so `{end.feature}` is reversed, not resampled")
        elif turns:
            note(f"`{refs[0].id}` only turns, so axes of `{end.feature}` are reversed and swapped, not resampled")
        else:
            note(f"`{refs[0].id}` resamples `{end.feature}` once")
        how = end.fill, end.interpolation, parts[0][1].canvas, end.size
        return s.Warp(end.feature, refs, *how, mirrors, end.projective, end.exact, turns and not mirrors)

    return segments_fused(plan, s.Compose, s.Resample, fuse)
