"""Read, random_resized_crop, random_flip, Batch → Batch, Read canvases, crop and mirror the batch.

Images stored by `pipegen prepare` are on canvases of one size, so a batch of them can be read as one and cropped by a compiled
kernel. Every bit is that of a crop of single images.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.ops.families.crops import CanvasCrop
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.stage import Stage
from pipegen.ops.step_bases import GeometricTransform
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan


@rewrite("E0", "a compiled crop of a batch takes a third of the time of single ones")
def crop_batches(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Turns crops of images on canvases into crops of batches, if there are no other element stages."""
    items, read = unpack(plan), plan.reader
    begin, end = items.index(read), items.index(plan.batch)
    between = [item for item in items[begin + 1 : end] if isinstance(item, Placed)]
    if not context.canvases or len(between) < end - begin - 1:
        return plan
    first = {name: next((p for p in between if p.stage.feature == name), None) for name in read.out}
    turned = {name: made for name, placed in first.items() if (made := _on_canvas(name, placed, context)) is not None}
    rest = [p for p in between if not (p.stage.feature in turned and p is first[p.stage.feature])]
    loose = any(not t.is_static and name not in turned and kind_of(t).storage != "dense" for name, t in read.out.items())
    if not turned or loose or any(p.stage.one_example for p in rest):
        return plan
    edge = read.out.replace(**{name: read.out[name].with_(shape=(*c.canvas, read.out[name].shape[2])) for name, c in turned.items()})
    changed: list[Node | Placed] = [replace(read, out=edge)]
    for placed in between:
        stage = placed.stage
        name = stage.feature
        if name in turned and placed is first[name]:
            stage = turned[name]
        elif name in turned and isinstance(changed[-1], Placed) and _absorbs(changed[-1].stage, stage):
            before = changed.pop()
            assert isinstance(before, Placed)  # noqa: S101 - checked above
            mirrors = (ref.of(GeometricTransform) for ref in stage.uses())
            stage, edge = replace(turned[name], mirrors=(*turned[name].mirrors, *mirrors)), before.before
            turned[name] = stage
        after = edge.replace(**{name: placed.after[name]})
        changed.append(Placed(stage, edge, after))
        edge = after
    for made in turned.values():
        note(f"`{made.ref.id}` crops and resizes whole batches, read from canvases of {made.canvas[0]}×{made.canvas[1]}")
    return pack(plan, [*items[:begin], *changed, *items[end:]])


def _on_canvas(name: str, placed: Placed | None, context: PassContext) -> CanvasCrop | None:
    """The crop of whole batches that equals a stage, if possible."""
    canvas = context.canvases.get(name)
    if canvas is None or placed is None or not isinstance(placed.stage, s.Crop):
        return None
    ref, before, after = placed.stage.ref, placed.before[name], placed.after[name]
    fits = before.dtype == "uint8" and ref.step.traits(before).bilinear and not ref.conditional
    size = after.height, after.width
    if not fits or size[0] is None or size[1] is None or before.channels is None:
        return None
    return CanvasCrop(name, ref, canvas, before.channels, (size[0], size[1]))


def _absorbs(before: Stage, stage: Stage) -> bool:
    """Tests if a stage only mirrors the output of the crop before it."""
    return isinstance(before, CanvasCrop) and before.feature == stage.feature and isinstance(stage, s.Warp) and stage.mirrors
