"""Passes that make one stage of several."""

from __future__ import annotations

from dataclasses import replace

from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.ops.stage import StepRef
from pipegen.passes.plan_pass import Note, PassContext, Placed, joined, pack, rewrite, segments_fused, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan
from pipegen.types import FLOATING


@rewrite("E0", "pixels outside the window are never decoded", in_parts=True)
def fuse_decode_crop(plan: Plan, context: PassContext, note: Note) -> Plan:
    """decode, random_resized_crop → decode only the window.

    A JPEG decoder can skip everything outside a window. Exact, because `decode` is defined without fancy upsampling, so pixels of the
    window depend on nothing outside it.
    """

    def decodes_windows(placed: Placed, ref: StepRef) -> bool:
        return ref.step.traits(placed.before[placed.stage.feature]).decodes_windows

    def fuse(first: Placed, second: Placed) -> Placed | None:
        a, b = first.stage, second.stage
        if not (isinstance(a, Decode) and isinstance(b, s.Crop) and a.feature == b.feature and a.like is None):
            return None
        traits = b.ref.step.traits(second.before[b.feature])
        if traits.pads or traits.chosen or not decodes_windows(first, a.ref):  # the window depends on draws alone, and lies inside
            return None
        note(f"`{b.ref.id}` decodes its window alone")
        return Placed(DecodeWindow(b.feature, a.ref, b.ref, None), first.before, second.after)

    kept: list[Node | Placed] = []
    for item in unpack(plan):
        previous = kept[-1] if kept else None
        if (
            isinstance(item, Placed)
            and isinstance(stage := item.stage, DecodeWindow)
            and stage.whole
            and decodes_windows(item, stage.decode)
        ):
            note(f"`{stage.crop.id}` decodes its window alone")
            kept.append(Placed(replace(stage, whole=False), item.before, item.after))
        elif isinstance(item, Placed) and isinstance(previous, Placed) and (fused := fuse(previous, item)) is not None:
            kept[-1] = fused
        else:
            kept.append(item)
    return pack(plan, kept)


@rewrite("E0", "one resampling for a run of geometric steps", in_parts=True)
def fuse_geometry(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Matrix of rotation, matrix of flip, resample → warp once: rotation · flip.

    By definition a geometric segment resamples once; this pass makes it one stage, so that it can move and be compiled as a whole. The
    matrices are multiplied in the same order, in float64, so every bit stays.
    """

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


@rewrite("E0", "one matrix and one clip for a run of colour steps", in_parts=True)
def fuse_colour(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Matrix of brightness, matrix of contrast, apply → one colour matrix: brightness · contrast.

    By definition a colour segment multiplies and clips once; this pass makes it one stage. The matrices are multiplied in the same order,
    in float64.
    """

    def fuse(parts: list[tuple[Placed, s.ComposeColour]], end: s.ApplyColour) -> s.Colour:
        refs = tuple(part.ref for _, part in parts)
        what = f"{len(refs)} colour steps" if len(refs) > 1 else f"`{refs[0].id}`"
        note(f"{what} became one matrix on `{end.feature}`")
        return s.Colour(end.feature, refs, parts[0][1].channels, end.clip, end.uses_mean, end.exact)

    return segments_fused(plan, s.ComposeColour, s.ApplyColour, fuse)


@rewrite("E0", "one look-up for a run of tables", in_parts=True)
def fold_tables(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Table of solarization, table of equalization → one table: solarization · equalization.

    Tables compose into a table, so a chain of them costs one look-up. Exact: entries are integers, and a table that needs the histogram of
    an image gets it mapped through the tables before it.
    """

    def fold(first: Placed, second: Placed) -> Placed | None:
        a, b = first.stage, second.stage
        if not (isinstance(a, LookupTable) and isinstance(b, LookupTable) and a.feature == b.feature):
            return None
        return Placed(LookupTable(a.feature, a.refs + b.refs, a.reads_histogram or b.reads_histogram), first.before, second.after)

    folded = joined(plan, fold)
    for stage in folded.stages():
        if isinstance(stage, LookupTable) and len(stage.refs) > 1:
            note(f"{len(stage.refs)} tables on `{stage.feature}` became one look-up")
    return folded


@rewrite("E1", "one multiply and one add instead of several", in_parts=True)
def fold_constants(plan: Plan, context: PassContext, note: Note) -> Plan:
    """`rescale: {scale: 1/255}`, `normalize: {mean, std}` → one scale and one offset for each channel.

    Adjacent arithmetic with a float32 value in between becomes one multiply and one add. E1: values are rounded once, not twice.
    """

    def fold(first: Placed, second: Placed) -> Placed | None:
        a, b = first.stage, second.stage
        if not (isinstance(a, s.Pointwise) and isinstance(b, s.Pointwise) and a.feature == b.feature):
            return None
        # Values that are rounded to integers later would show the difference in rounding.
        if a.exact or a.arithmetic.dtype != "float32" or b.arithmetic.dtype not in FLOATING:
            return None
        note(f"two steps of arithmetic on `{a.feature}` became one")
        return Placed(s.Pointwise(a.feature, a.arithmetic.then(b.arithmetic), a.refs + b.refs), first.before, second.after)

    return joined(plan, fold)
