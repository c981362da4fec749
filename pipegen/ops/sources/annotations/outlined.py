"""`OutlinedSource`, the base of sources whose boxes may have outlines: polygons and runs, which are packed, and drawn into masks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.families.decoder import OutlineDecoder
from pipegen.ops.fields.columns import Packed, within
from pipegen.ops.fields.notes import Note, count
from pipegen.ops.sources.annotations.outlines import NONE
from pipegen.ops.sources.annotations.source import NUMBERS, BoxedSource, Found
from pipegen.types import MOST_INSTANCES, ElementType, FeatureType

if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.transform import Transform


_CROWD = 255  # the value of pixels of a crowd in a mask of classes


class OutlinedSource(BoxedSource):
    """Images with boxes, each of which may have an outline."""

    masks: Literal["instances", "classes"] | None = None
    """Adds a `mask` to each image, drawn from the outlines (`segmentation`) of the kept boxes: polygons, or COCO's run-length encoding.
    `instances`: the number of the box whose outline covers a pixel. `classes`: 0 is background, 1 the first class; pixels of crowds only
    are 255, the mask's `ignore`. Smaller objects cover larger ones, and all cover crowds. Masks are drawn in Python each time an image is
    read, as by pycocotools."""

    def _type(self, found: Found | None) -> ElementType:
        type_ = super()._type(found)
        if self.masks == "classes":
            classes = type_["labels"].classes
            return type_.replace(mask=FeatureType("mask", "string", (), of="image", ignore=_CROWD, classes=classes and classes + 1))
        return self._with_instances(type_) if self.masks else type_

    def decoders(self) -> Mapping[str, Transform]:
        return {"mask": OutlineDecoder(format="coco")} if self.masks else {}

    def finished(self, found: Found) -> tuple[Found, builtins.list[Note]]:
        """Keeps the boxes that a mask can distinguish, and packs the outlines of each image; see `BoxedSource.finished`."""
        found, notes = super().finished(found)
        if found.outlines is None:
            return found, notes
        if self.masks == "classes" and len(found.names) > MOST_INSTANCES:
            message = f"a mask can hold {MOST_INSTANCES} classes, but there are {len(found.names):,}"
            raise OpError("PG478", message, field="masks", help="choose fewer by `classes`, or merge some by `map`")
        if self.masks == "instances":
            found, left = _told_apart(found)
            notes += left
        assert found.outlines is not None  # noqa: S101 - the outlines stay
        own, outlines = found.outlines
        bare = np.flatnonzero(own == NONE)
        if len(own) and len(bare) == len(own):
            message = f"none of {count(len(own), 'box', 'boxes')} has an outline: the annotations have no outlines"
            raise OpError("PG475", message, field="masks", help="remove `masks`, or use a file with outlines")
        if len(bare):
            first = f"{found.places(int(bare[0]))} has no outline, so its mask does not show it"
            message = f"{first}; {len(bare):,} of {len(own):,} boxes lack an outline"
            notes.append(Note("PG477", message, "annotate their outlines, or remove their images"))
        firsts = np.concatenate([[0], np.cumsum(found.lengths())])
        numbers: Ints = within(found.lengths()) + 1
        crowds = found.items["crowd"] > 0 if "crowd" in found.items else np.zeros(len(own), bool)
        values = numbers if self.masks == "instances" else np.where(crowds, _CROWD, found.classes + 1)
        objects = list(zip(own.tolist(), values.tolist(), crowds.tolist(), strict=True))
        ends = firsts.tolist()
        packed = [
            outlines.packed(int(height), int(width), objects[start:end])
            for (width, height), start, end in zip(found.sides.tolist(), ends, ends[1:], strict=False)
        ]
        items = dict(found.items) | ({NUMBERS: numbers.astype(np.float32)} if self.masks == "instances" else {})
        return replace(found, items=items, own={**found.own, "mask": Packed.hold(packed)}), notes


def _told_apart(found: Found) -> tuple[Found, list[Note]]:
    """Keeps, of each image, the largest boxes that a mask can distinguish."""
    edges, lengths = found.boxes, found.lengths()
    areas = (edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])
    order = np.lexsort((-areas, found.records))
    rank: Ints = np.empty(len(order), np.int64)
    rank[order] = within(lengths)
    left = int((rank >= MOST_INSTANCES).sum())
    if not left:
        return found, []
    most = int(lengths.argmax())
    first = f"{found.keys[most]} has {int(lengths[most])} boxes; a mask can hold {MOST_INSTANCES}"
    many = count(int((lengths > MOST_INSTANCES).sum()), "image")
    message = f"{first}; the smallest are left out, {count(left, 'box', 'boxes')} of {many}"
    return found.only(np.flatnonzero(rank < MOST_INSTANCES)), [Note("PG477", message, "remove `masks` to keep all boxes", "masks")]
