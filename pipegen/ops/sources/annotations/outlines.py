"""Packs the outlines of COCO annotations (polygons and runs) into arrays while reading, then by image."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from pipegen.lazy import np
from pipegen.ops.fields.strings import Ints
from pipegen.ops.lowering.array_formats import COUNTS, LONG, SCALE, SHORT, TEXT, counts_of
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.sources.annotations.files import DamagedError

NO_OUTLINE = -1
FARTHEST = 100_000  # largest distance of an outline from the corner of its image, in pixels
_BLOCK = 1 << 20
_POLYGONS = "use polygons, lists [x, y, x, y, …] of three points or more"
_RUNS = "runs: `counts`, a list of integers or COCO's text, and `size`, the height and the width of the image"


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
