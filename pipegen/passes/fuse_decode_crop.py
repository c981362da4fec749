"""decode, random_resized_crop → decode only the window.

A JPEG decoder can skip everything outside a window. Exact, because `decode` is defined without fancy upsampling, so pixels of
the window depend on nothing outside it.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.stage import StepRef
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan
from pipegen.types import FeatureType


@rewrite("E0", "pixels outside the window are never decoded", in_parts=True)
def fuse_decode_crop(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Merges a decode and the crop that follows it."""
    kept: list[Node | Placed] = []
    for item in unpack(plan):
        previous = kept[-1] if kept else None
        if isinstance(item, Placed) and isinstance(item.stage, DecodeWindow) and item.stage.whole and _can(item, item.stage.decode):
            note(f"`{item.stage.crop.id}` decodes its window alone")
            kept.append(Placed(replace(item.stage, whole=False), item.before, item.after))
        elif (
            isinstance(item, Placed)
            and isinstance(item.stage, s.Crop)
            and isinstance(previous, Placed)
            and isinstance(previous.stage, Decode)
            and previous.stage.feature == item.stage.feature
            and previous.stage.like is None
            and _can(previous, previous.stage.ref)
            and _lies_within(item.stage, item.before[item.stage.feature])
        ):
            fused = DecodeWindow(item.stage.feature, previous.stage.ref, item.stage.ref, None)
            note(f"`{item.stage.ref.id}` decodes its window alone")
            kept[-1] = Placed(fused, previous.before, item.after)
        else:
            kept.append(item)
    return pack(plan, kept)


def _lies_within(stage: s.Crop, x: FeatureType) -> bool:
    """Tests if the window depends on draws alone and lies inside the image."""
    traits = stage.ref.step.traits(x)
    return not traits.pads and not traits.chosen


def _can(decoding: Placed, ref: StepRef) -> bool:
    return ref.step.traits(decoding.before[decoding.stage.feature]).decodes_windows
