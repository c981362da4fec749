"""`OutlinedSource`, the base of sources whose boxes may have outlines, which are packed while reading, then by image."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.families.decoder import OutlineDecoder
from pipegen.ops.fields.columns import Packed, within
from pipegen.ops.fields.notes import Note, count
from pipegen.ops.lowering.array_formats import COUNTS, LONG, SCALE, SHORT, TEXT, counts_of
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.sources.annotations.files import DamagedError
from pipegen.ops.sources.annotations.source import NO_OUTLINE, NUMBERS, OPEN, BoxedSource, Found
from pipegen.types import MOST_INSTANCES, ElementType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.transform import Transform

FARTHEST = 100_000  # largest distance of an outline from the corner of its image, in pixels
_BLOCK = 1 << 20
_POLYGONS = "use polygons, lists [x, y, x, y, …] of three points or more"
_RUNS = "runs: `counts`, a list of integers or COCO's text, and `size`, the height and the width of the image"


class OutlinedSource(BoxedSource):
    """Images with boxes, each of which may have an outline."""

    masks: Literal["instances", "classes"] | None = None
    """Adds a `mask` to each image, drawn from the outlines (`segmentation`) of the kept boxes: polygons, or COCO's run-length encoding.
    `instances`: the number of the box whose outline covers a pixel. `classes`: 0 is background, 1 the first class; pixels of crowds only
    are 255, the mask's `ignore`. Smaller objects cover larger ones, and all cover crowds. Masks are drawn in Python each time an image is
    read, as by pycocotools."""

    def _type(self, found: Found | None) -> ElementType:
        type_ = super()._type(found)
        classes = type_["labels"].classes
        return self._with_mask(type_, classes and classes + 1, OPEN if self.masks == "classes" else 0)

    def decoders(self) -> Mapping[str, Transform]:
        return {"mask": OutlineDecoder(format="coco")} if self.masks else {}

    def finished(self, found: Found) -> Found:
        """Keeps the boxes that a mask can distinguish, and packs the outlines of each image; see `BoxedSource.finished`."""
        found = super().finished(found)
        if self.masks == "classes" and len(found.names) > MOST_INSTANCES:
            message = f"a mask can hold {MOST_INSTANCES} classes, but there are {len(found.names):,}"
            raise OpError("PG478", message, field="masks", help="choose fewer by `classes`, or merge some by `map`")
        if self.masks == "instances":
            found = _told_apart(found)
        if found.outlines is None:
            return found
        own, outlines = found.outlines
        bare, notes = np.flatnonzero(own == NO_OUTLINE), found.notes
        if len(own) and len(bare) == len(own):
            message = f"none of {count(len(own), 'box', 'boxes')} has an outline: the annotations have no outlines"
            raise OpError("PG475", message, field="masks", help="remove `masks`, or use a file with outlines")
        if len(bare):
            first = f"{found.places(int(bare[0]))} has no outline, so its mask does not show it"
            message = f"{first}; {len(bare):,} of {len(own):,} boxes lack an outline"
            notes = (*notes, Note("PG477", message, "annotate their outlines, or remove their images"))
        firsts = np.concatenate([[0], np.cumsum(found.lengths())])
        numbers: Ints = within(found.lengths()) + 1
        crowds = found.items["crowd"] > 0 if "crowd" in found.items else np.zeros(len(own), bool)
        values = numbers if self.masks == "instances" else np.where(crowds, OPEN, found.classes + 1)
        objects = list(zip(own.tolist(), values.tolist(), crowds.tolist(), strict=True))
        ends = firsts.tolist()
        packed = [
            outlines.packed(int(height), int(width), objects[start:end])
            for (width, height), start, end in zip(found.sides.tolist(), ends, ends[1:], strict=False)
        ]
        items = dict(found.items) | ({NUMBERS: numbers.astype(np.float32)} if self.masks == "instances" else {})
        return replace(found, items=items, own={**found.own, "mask": Packed.hold(packed)}, notes=notes)


def _told_apart(found: Found) -> Found:
    """Keeps, of each image, the largest boxes that a mask can distinguish."""
    edges, lengths = found.boxes, found.lengths()
    areas = (edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])
    order = np.lexsort((-areas, found.records))
    rank: Ints = np.empty(len(order), np.int64)
    rank[order] = within(lengths)
    left = int((rank >= MOST_INSTANCES).sum())
    if not left:
        return found
    most = int(lengths.argmax())
    first = f"{found.keys[most]} has {int(lengths[most])} boxes; a mask can hold {MOST_INSTANCES}"
    many = count(int((lengths > MOST_INSTANCES).sum()), "image")
    message = f"{first}; the smallest are left out, {count(left, 'box', 'boxes')} of {many}"
    return found.only(np.flatnonzero(rank < MOST_INSTANCES), Note("PG477", message, "remove `masks` to keep all boxes", "masks"))


class Outlines:
    """The outlines of all annotations of a file, by number: some bytes each, no objects.

    An outline has several parts: the polygons of an object, or its runs.
    """

    def __init__(self) -> None:
        self._corners = array("d")
        self._rounded: list[Any] = []
        self._held = 0
        self._runs = bytearray()
        self._forms, self._sizes, self._first = array("b"), array("q"), array("q", [0])
        self._far: list[int] = []

    def take(self, segmentation: Any) -> Any:
        """Stores the polygons of an annotation; runs are returned, to be stored once the image size is known. Returns the number of the
        outline, `NO_OUTLINE` without any, a description of an error, or the runs."""
        if segmentation in (None, [], [[]]):
            return NO_OUTLINE
        if isinstance(segmentation, dict):
            return segmentation
        if not isinstance(segmentation, list) or not all(isinstance(one, list) for one in segmentation):
            return f"has an invalid `segmentation`: {_POLYGONS}, or {_RUNS}"
        held = len(self._corners)
        for number, one in enumerate(segmentation):
            wrong = f"`segmentation[{number}]` has {len(one)} numbers" if len(one) < 6 or len(one) % 2 else None
            try:
                self._corners.extend(one)
            except TypeError:
                wrong = f"`segmentation[{number}]` holds values that are not numbers"
            if wrong is not None:
                del self._corners[held:]
                return f"has an invalid polygon: {wrong}; {_POLYGONS}"
        for one in segmentation:
            self._add(SHORT, len(one))
        if len(self._corners) > _BLOCK:
            self._round()
        return self._end()

    def take_runs(self, runs: dict[str, Any], height: int, width: int) -> int:
        """Stores the runs of an annotation; `DamagedError` describes invalid ones."""
        counts, size = runs.get("counts"), runs.get("size")
        if size != [height, width]:
            raise DamagedError(f"has runs whose `size` is {size}, but its image has the height {height} and the width {width}")
        try:
            text = counts.encode("ascii") if isinstance(counts, str) else None
            found = counts_of(text) if text is not None else np.array(counts)
        except (UnreadableError, ValueError):
            found = np.zeros(0)
        if found.ndim != 1 or found.dtype.kind != "i" or not len(found) or found.min() < 0:
            raise DamagedError(f"has invalid `counts`: use {_RUNS}")
        if found.sum() != height * width:
            raise DamagedError(f"has runs of {int(found.sum()):,} pixels, but its image has {height}×{width} = {height * width:,}")
        data = text if text is not None else found.astype(np.int32).tobytes()
        self._runs += data
        self._add(COUNTS if text is None else TEXT, len(data))
        return self._end()

    def _add(self, form: int, size: int) -> None:
        self._forms.append(form)
        self._sizes.append(size)

    def _end(self) -> int:
        self._first.append(len(self._sizes))
        return len(self._first) - 2

    def _round(self) -> None:
        """Rounds the stored corners to fifths of a pixel, as pycocotools does."""
        corners: Any = np.frombuffer(self._corners, np.float64)
        far = ~(np.abs(corners) <= FARTHEST)
        self._far += (np.flatnonzero(far) + self._held).tolist()
        self._held += len(corners)
        self._rounded.append(np.trunc(SCALE * np.where(far, 0, corners) + 0.5).astype(np.int32))
        del corners
        self._corners = array("d")

    def finish(self) -> Ints:
        """Finishes storing; returns the numbers of outlines beyond any image."""
        self._round()
        corners: Ints = np.concatenate(self._rounded)
        short = bool(np.abs(corners).max(initial=0) < 1 << 15)
        self._form = SHORT if short else LONG
        self._polygons = corners.astype(np.int16) if short else corners
        self._rounded = []
        forms, sizes = np.frombuffer(self._forms, np.int8), np.frombuffer(self._sizes, np.int64)
        of_polygon = forms == SHORT
        starts = np.where(of_polygon, np.cumsum(np.where(of_polygon, sizes, 0)), np.cumsum(np.where(of_polygon, 0, sizes))) - sizes
        self._starts: Ints = starts
        self._ends = starts + sizes
        parts = np.searchsorted(self._ends[of_polygon], self._far, side="right")
        return np.unique(np.searchsorted(np.frombuffer(self._first, np.int64), np.flatnonzero(of_polygon)[parts], side="right") - 1)

    def packed(self, height: int, width: int, objects: Iterable[tuple[int, int, bool]]) -> bytes:
        """Packs the outlines of an image of a size in pixels for `array_formats.coco`; an object is the number of its outline, the value of
        its pixels, and whether others cover it."""
        table: list[int] = []
        data: list[bytes] = []
        for number, (outline, value, below) in enumerate(objects):
            for part in range(self._first[outline], self._first[outline + 1]) if outline != NO_OUTLINE else ():
                start, end = int(self._starts[part]), int(self._ends[part])
                of_polygon = self._forms[part] == SHORT
                own = self._polygons[start:end].tobytes() if of_polygon else bytes(self._runs[start:end])
                table += (number, value, below, self._form if of_polygon else self._forms[part], len(own))
                data.append(own + bytes(-len(own) % 4))
        return b"".join([np.array([height, width, len(data), *table], np.int32).tobytes(), *data])
