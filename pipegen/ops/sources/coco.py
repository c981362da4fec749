"""`coco`: a folder of images, and a COCO JSON file of their boxes."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, cast

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.fields.notes import quoted
from pipegen.ops.sources.annotations.files import MOST_BYTES, DamagedError, damaged, finite, numbers, read_json
from pipegen.ops.sources.annotations.outlines import FARTHEST, NO_OUTLINE, Outlines
from pipegen.ops.sources.annotations.source import Found, Item, OutlinedSource, PointedSource, PointNames, lost_images
from pipegen.ops.sources.listing.base import always
from pipegen.ops.sources.listing.paths import find_file, find_root
from pipegen.types import LARGEST_SIDE

_MOST_SAID = 1000


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

    def find(self, base: Path, progress: Callable[[int], None] | None) -> Found:
        root = find_root(str(base), self.images, field="images")
        file = find_file(str(base), self.annotations, field="annotations", what="file")
        try:
            content = _Content(file, Outlines() if self.masks else None, pointed=self.keypoints is not None)
        except DamagedError as error:
            raise damaged([str(error)], "annotations") from None
        if content.wrong:
            raise damaged(content.wrong, "annotations")
        images = sorted(content.images.values(), key=lambda image: image.path)
        keys = [image.path for image in images]
        gone = [number for number, key in enumerate(keys) if not os.path.isfile(f"{root}/{key}")]
        absent = [keys[number] for number in gone]
        where = _where(root, absent)
        if len(gone) == len(keys):
            more = f": it names {quoted(keys)}" if keys else ""
            raise OpError("PG402", f"no image of {file!r} is in {root!r}{more}", field="images", help=where)
        foreign = list(content.foreign)
        lost = [
            *lost_images(
                absent, lambda i: f"{file!r} names {absent[i]!r}, which is not in {root!r}", "images", gone, *filter(None, [where])
            ),
            *lost_images(
                [f"image_id {i}" for i in foreign],
                lambda i: f"the `image_id` {foreign[i]!r} of {file!r} is not among its `images`",
                "annotations",
            ),
        ]
        return self.found(
            root,
            keys,
            content.items,
            {image.path: image.sides for image in images},
            [],
            field="annotations",
            names=tuple(dict.fromkeys(content.categories.values())),
            place=lambda i: f"the annotation {i!r} of {file}",
            outlines=content.outlines,
            points=PointNames(tuple(dict.fromkeys(chain(*content.points.values())))) if self.keypoints else None,
            missing=tuple(lost),
            more={name: [image.more.get(name) for image in images] for name in dict.fromkeys(chain(*(image.more for image in images)))},
        )


def _where(root: str, gone: list[str]) -> str | None:
    """Suggests the folder of the images, if it is one up or down."""
    if not gone:
        return None
    name = os.path.basename(gone[0])
    for entry in sorted(os.listdir(root)):
        if os.path.isfile(os.path.join(root, entry, name)):
            return f"{name!r} lies in {entry!r} below it: is that the folder?"
    return f"{name!r} lies directly in it, and the file says {gone[0]!r}" if os.path.isfile(os.path.join(root, name)) else None


class _Image(NamedTuple):
    """An image: its path, its width and height, if known, and its other numbers and texts, such as `date_captured` and `image_id`."""

    path: str
    sides: tuple[int, int] | None
    more: dict[str, Any]


class _Content:
    """The parts of an annotation file that are used.

    Attributes:
        images: Images by id.
        categories: Class names by id, ids rising.
        items: Boxes in file order.
        foreign: Ids of other images that have boxes.
        points: The names of the keypoints of each category that has some, by id, if they are asked for.
        outlines: Outlines of the boxes, if masks are asked for.
        wrong: What is wrong with the file, one sentence each.
    """

    def __init__(self, file: str, outlines: Outlines | None = None, *, pointed: bool = False) -> None:
        self.file, self.wrong, self.outlines = file, [], outlines  # type: str, list[str], Outlines | None
        content = read_json(file, MOST_BYTES, partial(_slim, outlines, pointed))
        if not isinstance(content, dict) or not all(isinstance(content.get(k), list) for k in ("images", "annotations", "categories")):
            raise DamagedError(f"{file} is not a COCO annotation file: it needs the lists `images`, `annotations` and `categories`")
        self.images = self._images(content["images"])
        self.categories = self._categories(content["categories"])
        self.points = self._points(content["categories"]) if pointed else {}
        self.foreign: dict[Any, None] = {}
        self.items = self._items(content["annotations"])

    def _say(self, list_: str, number: int, what: str) -> None:
        if len(self.wrong) < _MOST_SAID:
            self.wrong.append(f"{self.file}: `{list_}[{number}]` {what}")

    def _images(self, listed: list[Any]) -> dict[Any, _Image]:
        found: dict[Any, _Image] = {}
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
            found[key] = _Image(name, (int(sides[0] or 0), int(sides[1] or 0)) if whole else None, {"image_id": key, **plain})
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

    def _items(self, listed: list[Any]) -> list[Item]:
        found = []
        for number, one in enumerate(listed):
            if not isinstance(one, Item):
                self._say("annotations", number, "lacks an `image_id`, a `category_id` or a `bbox`")
            elif not _is_id(one.image) or one.name not in self.categories:
                known = quoted([str(key) for key in self.categories])
                self._say("annotations", number, f"has the unknown `category_id` {one.name!r}; the file has {known}")
            elif (box := numbers(one.values, 4)) is None:
                self._say("annotations", number, "needs a `bbox` of four numbers")
            else:
                try:
                    points, outline = self._points_of(one), self._outline(one)
                except DamagedError as error:
                    self._say("annotations", number, f"(`id` {one.where!r}) {error}")
                    continue
                if one.image not in self.images:
                    self.foreign[one.image] = None
                    continue
                left, top, width, height = box
                edges, path = (left, top, left + width, top + height), self.images[one.image].path
                found.append(Item(path, edges, self.categories[one.name], one.where, 0, None, one.marked, outline, points))
        far = self.outlines.finish() if self.outlines is not None else ()
        places = {str(one.outline): one.where for one in listed if isinstance(one, Item)} if len(far) else {}
        for outline in far:
            told = f"the annotation {places.get(str(outline))!r} has an outline more than {FARTHEST:,} pixels from the corner of its image"
            self.wrong.append(f"{self.file}: {told}; write x and y of its points, in pixels")
        return found

    def _points_of(self, one: Item) -> tuple[tuple[str, ...], Any] | None:
        """Returns the names and the numbers of the keypoints of an annotation."""
        names, points = self.points.get(one.name, ()), cast("Any", one.points)
        if points is None or (not names and isinstance(points, array) and not any(points)):
            return None
        if not names:
            raise DamagedError(f"has `keypoints`, but its category {self.categories[one.name]!r} lists no names of keypoints")
        if not isinstance(points, array):
            raise DamagedError("needs `keypoints` as a list of numbers")
        if len(points) != 3 * len(names):
            need = f"{len(names)} keypoints need {3 * len(names)}: x, y and visibility each"
            raise DamagedError(f"has {len(points)} numbers in `keypoints`; {need}")
        return names, points

    def _outline(self, one: Item) -> int:
        """Returns the number of an outline; takes those stored as runs, since the image sizes are known now."""
        outline, image = cast("Any", one.outline), self.images.get(one.image)
        if isinstance(outline, str):
            raise DamagedError(outline)
        if self.outlines is None or image is None or not isinstance(outline, dict):
            return outline if isinstance(outline, int) else NO_OUTLINE
        width, height = image.sides or (0, 0)
        return self.outlines.take_runs(outline, height, width)


def _is_id(key: Any) -> bool:
    return isinstance(key, (int, str)) and not isinstance(key, bool)


def _slim(outlines: Outlines | None, pointed: bool, read: dict[str, Any]) -> Any:
    """Drops the unused parts of an annotation while reading: the outlines of a large file would fill the memory. Returns what `_items` has
    to check and finish."""
    if "image_id" in read and "bbox" in read and "category_id" in read:
        category: Any = read["category_id"]
        outline = NO_OUTLINE if outlines is None else outlines.take(read.get("segmentation"))
        known = category if _is_id(category) else None
        points = read.get("keypoints") or None if pointed else None
        if isinstance(points, list):
            with suppress(TypeError, OverflowError):
                points = array("d", points)
        marked, about = bool(read.get("iscrowd")), (outline, points)
        return Item(read["image_id"], read["bbox"], known, read.get("id"), 0, None, marked, *about)  # type: ignore[arg-type]
    return read
