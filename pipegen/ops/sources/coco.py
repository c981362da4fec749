"""`coco`: a folder of images, and a COCO JSON file of their boxes."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.notes import quoted
from pipegen.ops.sources.annotations.files import MOST_BYTES, DamagedError, damaged, finite, numbers, read_json
from pipegen.ops.sources.annotations.outlined import OutlinedSource
from pipegen.ops.sources.annotations.outlines import FARTHEST, NONE, Outlines
from pipegen.ops.sources.annotations.points import POINTS, PointedSource, checked_points
from pipegen.ops.sources.annotations.source import Found, PointNames, known_sides, without_image, without_record
from pipegen.ops.sources.listing.base import Parts, always
from pipegen.ops.sources.listing.paths import find_file, find_root
from pipegen.types import LARGEST_SIDE

_MOST_SAID = 1000


class _Annotation(NamedTuple):
    """The parts of an annotation that are kept; its outline and its keypoints are packed, if they are asked for."""

    id: Any
    image: Any
    category: Any
    box: Any
    crowd: Any
    outline: Any = NONE
    points: Any = None


class Coco(PointedSource, OutlinedSource):
    """Images in a folder, and a COCO JSON file with the boxes on each.

    Classes are ordered by category id: COCO's 80 categories, whose ids go up to 90, are 0 to 79. `crowd` is 1 for the box of a crowd.
    Several splits need one file each, by `by_split`.
    """

    op: ClassVar[str] = "coco"
    items: ClassVar[tuple[str, ...]] = ("crowd",)
    places: ClassVar[frozenset[str]] = frozenset({"images", "annotations"})
    column_names = always(None)  # with the numbers and texts of the entries in `images`

    images: Annotated[str, Field(min_length=1)]
    """Folder of the images, which each `file_name` is relative to; itself relative to the spec's file."""
    annotations: Annotated[str, Field(min_length=1)]
    """JSON file, such as `annotations/instances_train2017.json`, relative to the spec's file. Its boxes are `[left, top, width,
    height]` in pixels."""

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        root = find_root(str(base), self.images, field="images")
        file = find_file(str(base), self.annotations, field="annotations", what="file")
        try:
            content = _Content(file, Outlines() if self.masks else None, pointed=self.keypoints is not None)
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
        known = sorted((a for a in content.annotations if a.image in place), key=lambda a: place[a.image])
        foreign = list({a.image: None for a in content.annotations if a.image not in place})
        of_foreign = lambda i: f"the `image_id` {foreign[i]!r} of {file!r} is not among its `images`"  # noqa: E731
        lost = [
            *without_image(gone, keys, lambda i: f"{file!r} names {keys[gone[i]]!r}, which is not in {root!r}", "images", where),
            *without_record([f"image_id {i}" for i in foreign], of_foreign, "annotations"),
        ]
        categories = {i: number for number, i in enumerate(content.categories)}
        xywh = np.array([a.box for a in known], np.float64).reshape(-1, 4)
        names = tuple(dict.fromkeys(name for own in content.points.values() for name in own))
        points = _placed([(a.points, content.points.get(a.category, ())) for a in known], names)
        places = lambda i: f"the annotation {known[i].id!r} of {file}"  # noqa: E731
        points, wrong = checked_points(points, places)
        if wrong:
            raise damaged(wrong, "annotations")
        pointed = {POINTS: points} if self.keypoints else {}
        found = Found(
            keys,
            known_sides([content.images[i][1] for i in ids]),
            np.array([place[a.image] for a in known], np.int64),
            np.concatenate([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]], 1),
            np.array([categories[a.category] for a in known], np.int64),
            tuple(content.categories.values()),
            places,
            {"crowd": np.array([bool(a.crowd) for a in known], np.float32), **pointed},
            points=PointNames(names) if self.keypoints else None,
            missing=tuple(lost),
            more={name: [content.attributes[i].get(name) for i in ids] for name in dict.fromkeys(chain(*content.attributes.values()))},
            outlines=None if content.outlines is None else (np.array([a.outline for a in known], np.int64), content.outlines),
        )
        return root, found, None


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
        attributes: Its other numbers and texts, such as `date_captured`, by id; the id is its `image_id`.
        categories: Class names by id, ids rising.
        annotations: Boxes in file order.
        points: The names of the keypoints of each category that has some, by id, if they are asked for.
        outlines: Outlines of the boxes, if masks are asked for.
        wrong: What is wrong with the file, one sentence each.
    """

    def __init__(self, file: str, outlines: Outlines | None = None, *, pointed: bool = False) -> None:
        self.file, self.wrong, self.outlines = file, [], outlines  # type: str, list[str], Outlines | None
        content = read_json(file, MOST_BYTES, partial(_slim, outlines, pointed))
        if not isinstance(content, dict) or not all(isinstance(content.get(k), list) for k in ("images", "annotations", "categories")):
            raise DamagedError(f"{file} is not a COCO annotation file: it needs the lists `images`, `annotations` and `categories`")
        self.attributes: dict[Any, dict[str, Any]] = {}
        self.images = self._images(content["images"])
        self.categories = self._categories(content["categories"])
        self.points = self._points(content["categories"]) if pointed else {}
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
            name = os.path.normpath(name.replace("\\", "/"))
            if os.path.isabs(name) or name.split("/")[0] == "..":
                self._say("images", number, f"lies outside the folder: {name!r}")
            elif key in found or name in names:
                self._say("images", number, f"repeats the `id` {key!r} or the `file_name` {name!r}")
            sides = finite(own.get("width")), finite(own.get("height"))
            whole = sides[0] is not None and sides[1] is not None and sides[0] >= 1 and sides[1] >= 1
            if self.outlines is not None and (not whole or max(sides[0] or 0, sides[1] or 0) > LARGEST_SIDE):
                self._say("images", number, f"needs a `width` and a `height` from 1 to {LARGEST_SIDE:,} for its mask")
            plain = {k: v for k, v in own.items() if isinstance(v, (str, int, float)) and k not in ("id", "file_name", "width", "height")}
            self.attributes[key] = {"image_id": key, **plain}
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
        return dict(sorted(found.items(), key=lambda item: (isinstance(item[0], str), item[0])))

    def _points(self, listed: list[Any]) -> dict[Any, tuple[str, ...]]:
        """Reads the names of the keypoints of each category."""
        found: dict[Any, tuple[str, ...]] = {}
        for number, category in enumerate(listed):
            names = (category.get("keypoints") if isinstance(category, dict) else None) or []
            if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
                self._say("categories", number, "needs `keypoints` as a list of names")
            elif len({*names}) < len(names):
                self._say("categories", number, "has a name in its `keypoints` twice")
            elif names and _is_id(category.get("id")):
                found[category.get("id")] = tuple(names)
        if not found and not self.wrong:
            self.wrong.append(f"{self.file} has no keypoints: no category lists their names in `keypoints`")
        return found

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
            elif (told := self._wrong_points(one)) is not None:
                self._say("annotations", number, f"(`id` {one.id!r}) {told}")
            else:
                found.append(one._replace(box=box, outline=self._outline(number, one)))
        far = self.outlines.finish() if self.outlines is not None else ()
        places = {one.outline: one.id for one in found} if len(far) else {}
        for outline in far:
            told = f"the annotation {places.get(int(outline))!r} has an outline more than {FARTHEST:,} pixels from the corner of its image"
            self.wrong.append(f"{self.file}: {told}; write x and y of its points, in pixels")
        return found

    def _wrong_points(self, one: _Annotation) -> str | None:
        """Says what is wrong with the number of keypoints of an annotation, or with their values."""
        names = self.points.get(one.category, ())
        if one.points is None or (not names and isinstance(one.points, array) and not any(one.points)):
            return None
        if not names:
            return f"has `keypoints`, but its category {self.categories[one.category]!r} lists no names of keypoints"
        if not isinstance(one.points, array):
            return "needs `keypoints` as a list of numbers"
        if len(one.points) != 3 * len(names):
            return f"has {len(one.points)} numbers in `keypoints`; {len(names)} keypoints need {3 * len(names)}: x, y and visibility each"
        return None

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


def _placed(sets: list[tuple[Any, tuple[str, ...]]], names: tuple[str, ...]) -> Any:
    """Puts sets of keypoints with some of the names in the order of all, float64 `(sets, names, 3)`; others are absent."""
    found: Any = np.zeros((len(sets), len(names), 3))
    for own in dict.fromkeys(some for points, some in sets if points is not None and some):
        which = [i for i, (points, some) in enumerate(sets) if points is not None and some == own]
        values = np.array([sets[i][0] for i in which]).reshape(len(which), len(own), 3)
        found[np.ix_(which, [names.index(name) for name in own])] = values
    return found


def _slim(outlines: Outlines | None, pointed: bool, read: dict[str, Any]) -> Any:
    """Drops the unused parts of an annotation while reading: the outlines of a large file would fill the memory."""
    if "image_id" in read and "bbox" in read and "category_id" in read:
        category = read["category_id"]
        outline = NONE if outlines is None else outlines.take(read.get("segmentation"))
        known = category if _is_id(category) else None
        points = read.get("keypoints") or None if pointed else None
        if isinstance(points, list):
            with suppress(TypeError, OverflowError):
                points = array("d", points)
        return _Annotation(read.get("id"), read["image_id"], known, read["bbox"], read.get("iscrowd"), outline, points)
    return read
