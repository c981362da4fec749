"""`coco`: a folder of images, and a JSON file in the format of COCO with the boxes on them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, PrivateAttr

from pipegen.errors import OpError
from pipegen.ops.sources.annotations.files import MOST_BYTES, DamagedError, damaged, finite, numbers, read_json
from pipegen.ops.sources.annotations.found import Found
from pipegen.ops.sources.annotations.source import BoxedSource, known_sides, unpaired
from pipegen.ops.sources.listing.wording import count, find_root, quoted
from pipegen.ops.sources.tables.table import find_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Parts

_MOST_SAID = 1000


class _Annotation(NamedTuple):
    """Holds what counts of an annotation; the rest of it, such as its outline, is dropped as it is read."""

    id: Any
    image: Any
    category: Any
    box: Any
    crowd: Any


class Coco(BoxedSource):
    """Images in a folder, and a file of JSON that says of each which boxes are on it, as COCO has it.

    Classes count by the ids of their categories, from the least: COCO's 80, whose ids go up to 90, are 0 to 79. A box is known to be a
    crowd by `crowd`, which is 1 then. Each split has a file of its own, by `by_split`.
    """

    op: ClassVar[str] = "coco"
    items: ClassVar[tuple[str, ...]] = ("crowd",)
    places: ClassVar[frozenset[str]] = frozenset({"images", "annotations"})

    images: Annotated[str, Field(min_length=1)]
    """The folder that the `file_name` of each image is relative to, itself relative to the spec's file."""
    annotations: Annotated[str, Field(min_length=1)]
    """The file of JSON, such as `annotations/instances_train2017.json`, relative to the spec's file. Its boxes are `[left, top, width,
    height]` in pixels."""
    _late: bool = PrivateAttr(default=False)
    """Whether images may come to be after the listing; one that has not is an error when it is read."""

    def without_looking(self) -> None:
        """Let the listing pass over files that do not exist."""
        self._late = True

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        """Read the file and look for its images; see `BoxedSource.find`."""
        import numpy as np

        root = find_root(str(base), self.images, field="images")
        file = _file(str(base), self.annotations)
        try:
            content = _Content(file)
        except DamagedError as error:
            raise damaged([str(error)], "annotations") from None
        if content.wrong:
            raise damaged(content.wrong, "annotations")
        there = {i: self._late or os.path.isfile(f"{root}/{key}") for i, (key, _) in content.images.items()}
        ids = sorted((i for i in there if there[i]), key=lambda i: content.images[i][0])
        gone = [content.images[i][0] for i in there if not there[i]]
        if not ids:
            more = f": it names {quoted(gone)}" if gone else ""
            raise OpError("PG402", f"not one image of {file!r} lies in {root!r}{more}", field="images", help=_where(root, gone))
        place = {i: number for number, i in enumerate(ids)}
        known = [a for a in content.annotations if a.image in place]
        order = sorted(range(len(known)), key=lambda k: place[known[k].image])
        known = [known[k] for k in order]
        foreign = {a.image for a in content.annotations if a.image not in there}
        notes = unpaired(gone, "annotated image", "images") + unpaired([f"image_id {i}" for i in foreign], "image", "annotations")
        keys = [content.images[i][0] for i in ids]
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
            tuple(notes),
        )
        return root, found, None


def _file(base: str, path: str) -> str:
    try:
        return find_table(base, path)
    except OpError as error:
        raise OpError(error.code, error.message, field="annotations", help=error.help) from None


def _where(root: str, gone: list[str]) -> str | None:
    """Says where the images lie, if it is one folder up or down."""
    if not gone:
        return None
    name = os.path.basename(gone[0])
    for entry in sorted(os.listdir(root)):
        if os.path.isfile(os.path.join(root, entry, name)):
            return f"{name!r} lies in {entry!r} below it: is that the folder?"
    return f"{name!r} lies directly in it, and the file says {gone[0]!r}" if os.path.isfile(os.path.join(root, name)) else None


class _Content:
    """Holds what counts of a file.

    Attributes:
        images: The path of each image by its id, and its width and height where they are known.
        categories: The name of each class by its id, the ids rising.
        annotations: The boxes in the order of the file.
        wrong: What is wrong with the file, a sentence each.
    """

    def __init__(self, file: str) -> None:
        """Reads it; `DamagedError` where it is none at all."""
        self.file, self.wrong = file, []  # type: tuple[str, list[str]]
        content = read_json(file, MOST_BYTES, _slim)
        if not isinstance(content, dict) or not all(isinstance(content.get(k), list) for k in ("images", "annotations", "categories")):
            said = "`images`, `annotations` and `categories` are due, a list each"
            raise DamagedError(f"{file} is no annotation file of COCO: {said}")
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
                self._say("images", number, "has no `id` or no `file_name`")
                continue
            name = os.path.normpath(name.replace("\\", "/")) if "\\" in name else os.path.normpath(name)
            if os.path.isabs(name) or name.split("/")[0] == "..":
                self._say("images", number, f"lies outside the folder: {name!r}")
            elif key in found or name in names:
                self._say("images", number, f"has the `id` or the `file_name` of another: {key!r}, {name!r}")
            sides = finite(own.get("width")), finite(own.get("height"))
            whole = sides[0] is not None and sides[1] is not None and sides[0] >= 1 and sides[1] >= 1
            found[key] = name, (int(sides[0] or 0), int(sides[1] or 0)) if whole else None
            names.add(name)
        return found

    def _categories(self, listed: list[Any]) -> dict[Any, str]:
        found: dict[Any, str] = {}
        for number, category in enumerate(listed):
            own = category if isinstance(category, dict) else {}
            key, name = own.get("id"), own.get("name")
            if not _is_id(key) or not isinstance(name, str) or not name:
                self._say("categories", number, "has no `id` or no `name`")
            elif key in found:
                self._say("categories", number, f"has the `id` {key!r} of another")
            else:
                found[key] = name
        rising = sorted(found, key=lambda key: (isinstance(key, str), key))
        return {key: found[key] for key in rising}

    def _annotations(self, listed: list[Any]) -> list[_Annotation]:
        found = []
        for number, one in enumerate(listed):
            if not isinstance(one, _Annotation):
                self._say("annotations", number, "has no `image_id`, `category_id` or `bbox`")
            elif not _is_id(one.image) or one.category not in self.categories:
                known = quoted([str(key) for key in self.categories])
                self._say("annotations", number, f"has the `category_id` {one.category!r}, and {_of(len(self.categories))} {known}")
            elif (box := numbers(one.box, 4)) is None:
                self._say("annotations", number, "has a `bbox` that is not four numbers")
            else:
                found.append(one._replace(box=box))
        return found


def _of(n: int) -> str:
    return "the only category has" if n == 1 else f"the {count(n, 'category', 'categories')} have"


def _is_id(key: Any) -> bool:
    return isinstance(key, (int, str)) and not isinstance(key, bool)


def _slim(read: dict[str, Any]) -> Any:
    """Keeps of an annotation what counts: the outlines of a large file would fill the memory."""
    if "image_id" in read and "bbox" in read and "category_id" in read:
        category = read["category_id"]
        return _Annotation(read.get("id"), read["image_id"], category if _is_id(category) else None, read["bbox"], read.get("iscrowd"))
    return read
