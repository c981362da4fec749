"""`coco`: a folder of images, and a COCO JSON file of their boxes."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.families.array_decoder import OutlineDecoder
from pipegen.ops.kinds.numbering import MOST_INSTANCES, number_name
from pipegen.ops.kinds.packed import Packed
from pipegen.ops.sources.annotations.files import MOST_BYTES, DamagedError, damaged, finite, numbers, read_json
from pipegen.ops.sources.annotations.found import Found
from pipegen.ops.sources.annotations.outlines import FARTHEST, NONE, Outlines
from pipegen.ops.sources.annotations.source import BoxedSource, known_sides, without_image, without_record
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import count, find_root, quoted
from pipegen.ops.sources.tables.table import find_table
from pipegen.types import LARGEST_SIDE, FeatureType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Parts
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.transform import Transform
    from pipegen.types import ElementType

_MOST_SAID = 1000
_CROWD = 255
"""The value of pixels of a crowd in a mask of classes."""


class _Annotation(NamedTuple):
    """The parts of an annotation that are kept; its outline is packed, if masks are asked for."""

    id: Any
    image: Any
    category: Any
    box: Any
    crowd: Any
    outline: Any = NONE


class Coco(BoxedSource):
    """Images in a folder, and a COCO JSON file with the boxes on each.

    Classes are ordered by category id: COCO's 80 categories, whose ids go up to 90, are 0 to 79. `crowd` is 1 for the box of a crowd.
    Several splits need one file each, by `by_split`.
    """

    op: ClassVar[str] = "coco"
    items: ClassVar[tuple[str, ...]] = ("crowd",)
    places: ClassVar[frozenset[str]] = frozenset({"images", "annotations"})

    images: Annotated[str, Field(min_length=1)]
    """Folder of the images, which each `file_name` is relative to; itself relative to the spec's file."""
    annotations: Annotated[str, Field(min_length=1)]
    """JSON file, such as `annotations/instances_train2017.json`, relative to the spec's file. Its boxes are `[left, top, width,
    height]` in pixels."""
    masks: Literal["instances", "classes"] | None = None
    """Adds a `mask` to each image, drawn from the outlines (`segmentation`) of the kept boxes: polygons, or COCO's run-length encoding.
    `instances`: the number of the box whose outline covers a pixel. `classes`: 0 is background, 1 the first class; pixels of crowds only
    are 255, the mask's `ignore`. Smaller objects cover larger ones, and all cover crowds. Masks are drawn in Python each time an image is
    read, as by pycocotools."""

    def _type(self, classes: int | None, most: int) -> ElementType:
        found = super()._type(classes, most)
        if self.masks == "classes":
            return found.replace(mask=FeatureType("mask", "string", (), of="image", ignore=_CROWD, classes=classes and classes + 1))
        return self._with_instances(found) if self.masks else found

    def decoders(self) -> Mapping[str, Transform]:
        return {"mask": OutlineDecoder(format="coco")} if self.masks else {}

    def drawn(self, found: Found) -> tuple[Found, Sequence[Note]]:
        """Keeps the boxes that a mask can distinguish, and packs the outlines of each image; see `BoxedSource.drawn`."""
        if found.outlines is None:
            return found, ()
        import numpy as np

        if self.masks == "classes" and len(found.names) > MOST_INSTANCES:
            message = f"a mask can hold {MOST_INSTANCES} classes, but there are {len(found.names):,}"
            raise OpError("PG478", message, field="masks", help="choose fewer by `classes`, or merge some by `map`")
        notes: list[Note] = []
        if self.masks == "instances":
            found, notes = _told_apart(found)
        assert found.outlines is not None  # noqa: S101 - the outlines stay
        own, outlines = found.outlines
        bare = np.flatnonzero(own == NONE)
        if len(own) and len(bare) == len(own):
            message = f"none of {count(len(own), 'box', 'boxes')} has an outline: the annotations have no `segmentation`"
            raise OpError("PG475", message, field="masks", help="remove `masks`, or use a file with outlines")
        if len(bare):
            first = f"{found.places(int(bare[0]))} has no outline, so its mask does not show it"
            message = f"{first}; {len(bare):,} of {len(own):,} boxes lack an outline"
            notes.append(Note("PG477", message, "annotate their outlines, or remove their images"))
        firsts = np.concatenate([[0], np.cumsum(found.lengths())])
        numbers = np.arange(len(own)) - np.repeat(firsts[:-1], found.lengths()) + 1
        crowds = found.items["crowd"] > 0
        values = numbers if self.masks == "instances" else np.where(crowds, _CROWD, found.classes + 1)
        objects = list(zip(own.tolist(), values.tolist(), crowds.tolist(), strict=True))
        ends = firsts.tolist()
        packed = [
            outlines.packed(int(height), int(width), objects[start:end])
            for (width, height), start, end in zip(found.sides.tolist(), ends, ends[1:], strict=False)
        ]
        items = dict(found.items) | ({number_name("boxes"): numbers.astype(np.float32)} if self.masks == "instances" else {})
        return replace(found, items=items, packed={"mask": Packed.hold(packed)}), notes

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        import numpy as np

        root = find_root(str(base), self.images, field="images")
        file = _file(str(base), self.annotations)
        try:
            content = _Content(file, Outlines() if self.masks else None)
        except DamagedError as error:
            raise damaged([str(error)], "annotations") from None
        if content.wrong:
            raise damaged(content.wrong, "annotations")
        ids = sorted(content.images, key=lambda i: content.images[i][0])
        keys = [content.images[i][0] for i in ids]
        gone = [number for number, key in enumerate(keys) if not os.path.isfile(f"{root}/{key}")]
        where = _where(root, [keys[number] for number in gone])
        if len(gone) == len(ids):
            more = f": it names {quoted(keys)}" if keys else ""
            raise OpError("PG402", f"no image of {file!r} is in {root!r}{more}", field="images", help=where)
        place = {i: number for number, i in enumerate(ids)}
        known = [a for a in content.annotations if a.image in place]
        order = sorted(range(len(known)), key=lambda k: place[known[k].image])
        known = [known[k] for k in order]
        foreign = list({a.image: None for a in content.annotations if a.image not in place})
        lost = [
            *without_image(gone, keys, lambda i: f"{file!r} names {keys[gone[i]]!r}, which is not in {root!r}", "images", where),
            *without_record(
                [f"image_id {i}" for i in foreign],
                lambda i: f"the `image_id` {foreign[i]!r} of {file!r} is not among its `images`",
                "annotations",
            ),
        ]
        categories = {i: number for number, i in enumerate(content.categories)}
        xywh = np.array([a.box for a in known], np.float64).reshape(-1, 4)
        found = Found(
            keys,
            known_sides([content.images[i][1] for i in ids]),
            np.array([place[a.image] for a in known], np.int64),
            np.concatenate([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]], 1),
            np.array([categories[a.category] for a in known], np.int64),
            tuple(content.categories.values()),
            lambda i: f"the annotation {known[i].id!r} of {file}",
            {"crowd": np.array([bool(a.crowd) for a in known], np.float32)},
            missing=tuple(lost),
            outlines=None if content.outlines is None else (np.array([a.outline for a in known], np.int64), content.outlines),
        )
        return root, found, None


def _file(base: str, path: str) -> str:
    try:
        return find_table(base, path)
    except OpError as error:
        raise OpError(error.code, error.message, field="annotations", help=error.help) from None


def _where(root: str, gone: list[str]) -> str | None:
    """Suggests the folder of the images, if it is one up or down."""
    if not gone:
        return None
    name = os.path.basename(gone[0])
    for entry in sorted(os.listdir(root)):
        if os.path.isfile(os.path.join(root, entry, name)):
            return f"{name!r} lies in {entry!r} below it: is that the folder?"
    return f"{name!r} lies directly in it, and the file says {gone[0]!r}" if os.path.isfile(os.path.join(root, name)) else None


class _Content:
    """The parts of an annotation file that are used.

    Attributes:
        images: Path, width and height (if known) of each image, by id.
        categories: Class names by id, ids rising.
        annotations: Boxes in file order.
        outlines: Outlines of the boxes, if masks are asked for.
        wrong: What is wrong with the file, one sentence each.
    """

    def __init__(self, file: str, outlines: Outlines | None = None) -> None:
        self.file, self.wrong, self.outlines = file, [], outlines  # type: str, list[str], Outlines | None
        content = read_json(file, MOST_BYTES, partial(_slim, outlines))
        if not isinstance(content, dict) or not all(isinstance(content.get(k), list) for k in ("images", "annotations", "categories")):
            raise DamagedError(f"{file} is not a COCO annotation file: it needs the lists `images`, `annotations` and `categories`")
        self.images = self._images(content["images"])
        self.categories = self._categories(content["categories"])
        self.annotations = self._annotations(content["annotations"])

    def _say(self, list_: str, number: int, what: str) -> None:
        if len(self.wrong) < _MOST_SAID:
            self.wrong.append(f"{self.file}: `{list_}[{number}]` {what}")

    def _images(self, listed: list[Any]) -> dict[Any, tuple[str, tuple[int, int] | None]]:
        found: dict[Any, tuple[str, tuple[int, int] | None]] = {}
        names: set[str] = set()
        for number, image in enumerate(listed):
            own = image if isinstance(image, dict) else {}
            key, name = own.get("id"), own.get("file_name")
            if not _is_id(key) or not isinstance(name, str) or not name or "\0" in name:
                self._say("images", number, "lacks a valid `id` or `file_name`")
                continue
            name = os.path.normpath(name.replace("\\", "/")) if "\\" in name else os.path.normpath(name)
            if os.path.isabs(name) or name.split("/")[0] == "..":
                self._say("images", number, f"lies outside the folder: {name!r}")
            elif key in found or name in names:
                self._say("images", number, f"repeats the `id` {key!r} or the `file_name` {name!r}")
            sides = finite(own.get("width")), finite(own.get("height"))
            whole = sides[0] is not None and sides[1] is not None and sides[0] >= 1 and sides[1] >= 1
            if self.outlines is not None and (not whole or max(sides[0] or 0, sides[1] or 0) > LARGEST_SIDE):
                self._say("images", number, f"needs a `width` and a `height` from 1 to {LARGEST_SIDE:,} for its mask")
            found[key] = name, (int(sides[0] or 0), int(sides[1] or 0)) if whole else None
            names.add(name)
        return found

    def _categories(self, listed: list[Any]) -> dict[Any, str]:
        found: dict[Any, str] = {}
        for number, category in enumerate(listed):
            own = category if isinstance(category, dict) else {}
            key, name = own.get("id"), own.get("name")
            if not _is_id(key) or not isinstance(name, str) or not name:
                self._say("categories", number, "lacks a valid `id` or `name`")
            elif key in found:
                self._say("categories", number, f"repeats the `id` {key!r}")
            else:
                found[key] = name
        rising = sorted(found, key=lambda key: (isinstance(key, str), key))
        return {key: found[key] for key in rising}

    def _annotations(self, listed: list[Any]) -> list[_Annotation]:
        found = []
        for number, one in enumerate(listed):
            if not isinstance(one, _Annotation):
                self._say("annotations", number, "lacks an `image_id`, a `category_id` or a `bbox`")
            elif not _is_id(one.image) or one.category not in self.categories:
                known = quoted([str(key) for key in self.categories])
                self._say("annotations", number, f"has the unknown `category_id` {one.category!r}; the file has {known}")
            elif (box := numbers(one.box, 4)) is None:
                self._say("annotations", number, "needs a `bbox` of four numbers")
            else:
                found.append(one._replace(box=box, outline=self._outline(number, one)))
        far = self.outlines.finish() if self.outlines is not None else ()
        places = {one.outline: one.id for one in found} if len(far) else {}
        for outline in far:
            told = f"the annotation {places.get(int(outline))!r} has an outline more than {FARTHEST:,} pixels from the corner of its image"
            self.wrong.append(f"{self.file}: {told}; write x and y of its points, in pixels")
        return found

    def _outline(self, number: int, one: _Annotation) -> int:
        """Returns the number of an outline; takes those stored as runs, since the image sizes are known now."""
        outline, image = one.outline, self.images.get(one.image)
        try:
            if isinstance(outline, str):
                raise DamagedError(outline)
            if self.outlines is None or image is None or not isinstance(outline, dict):
                return outline if isinstance(outline, int) else NONE
            width, height = image[1] or (0, 0)
            return self.outlines.take_runs(outline, height, width)
        except DamagedError as error:
            self._say("annotations", number, f"(`id` {one.id!r}) {error}")
            return NONE


def _is_id(key: Any) -> bool:
    return isinstance(key, (int, str)) and not isinstance(key, bool)


def _told_apart(found: Found) -> tuple[Found, list[Note]]:
    """Keeps, of each image, the largest boxes that a mask can distinguish."""
    import numpy as np

    edges, lengths = found.boxes, found.lengths()
    areas = (edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])
    order = np.lexsort((-areas, found.records))
    rank: Ints = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    left = int((rank >= MOST_INSTANCES).sum())
    if not left:
        return found, []
    most = int(lengths.argmax())
    first = f"{found.keys[most]} has {int(lengths[most])} boxes; a mask can hold {MOST_INSTANCES}"
    many = count(int((lengths > MOST_INSTANCES).sum()), "image")
    message = f"{first}; the smallest are left out, {count(left, 'box', 'boxes')} of {many}"
    return found.only(np.flatnonzero(rank < MOST_INSTANCES)), [Note("PG477", message, "remove `masks` to keep all boxes", "masks")]


def _slim(outlines: Outlines | None, read: dict[str, Any]) -> Any:
    """Drops the unused parts of an annotation while reading: the outlines of a large file would fill the memory."""
    if "image_id" in read and "bbox" in read and "category_id" in read:
        category = read["category_id"]
        outline = NONE if outlines is None else outlines.take(read.get("segmentation"))
        known = category if _is_id(category) else None
        return _Annotation(read.get("id"), read["image_id"], known, read["bbox"], read.get("iscrowd"), outline)
    return read
