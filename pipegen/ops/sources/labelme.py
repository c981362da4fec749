"""`labelme`: images, each with a JSON file of outlines, as LabelMe writes them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.families.decoder import OutlineDecoder
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.notes import LeftOut, Note, count, quoted
from pipegen.ops.lowering.array_formats import WITHOUT_AREA
from pipegen.ops.sources.annotations.files import (
    DamagedError,
    files_below,
    finite,
    listed_images,
    numbers,
    read_json,
    without_ending,
)
from pipegen.ops.sources.annotations.source import (
    POINT_LABELS,
    POINTS,
    Found,
    Item,
    PointedSource,
    PointNames,
    files_without_image,
    without_masks,
)
from pipegen.ops.sources.listing.paths import find_root
from pipegen.ops.transform import Transform
from pipegen.types import MOST_INSTANCES, ElementType

_by_image = attrgetter("image")
_AROUND = frozenset({"polygon", "rectangle", "mask"})


class Labelme(PointedSource):
    """Images, each with a JSON file of drawn shapes. Every polygon, rectangle, circle and mask gets a box around it.

    Classes are ordered by name. Lines have no area and are ignored, like points without `keypoints`.
    """

    op: ClassVar[str] = "labelme"

    path: Annotated[str, Field(min_length=1)]
    """Folder of the JSON files, relative to the spec's file. `imagePath` in a file names its image, relative to that file; else the image
    has the same name."""

    masks: Literal["instances"] | None = None
    """`instances`: a `mask` for each image with a file. Each pixel holds the number of the box whose outline covers it; later shapes cover
    earlier ones. Outlines are drawn in Python each time an image is read."""

    keypoints: Literal["instances", "image"] | None = None  # type: ignore[assignment]  # more than other formats
    """`instances`: a set of named `keypoints` for each box, from points with the `group_id` of the box; their labels are the names, sorted
    unless `names` lists them. `image`: the points of the image, one for each of `names`; without `names` any number of them, with their
    labels in `point_labels`. A mirror swaps names that differ by left and right, such as `left_eye` and `right_eye`, unless
    `mirror_pairs` names others. All points are visible."""

    def _type(self, found: Found | None) -> ElementType:
        return self._with_mask(super()._type(found), None, 0)

    def decoders(self) -> Mapping[str, Transform]:
        return {"mask": OutlineDecoder(format="labelme", options=(("most", MOST_INSTANCES),))} if self.masks else {}

    def find(self, base: Path, progress: Callable[[int], None] | None) -> Found:
        root = find_root(str(base), self.path)
        keys, beside = listed_images(root, progress, ".json")
        known = set(keys)
        by_stem = {without_ending(key): key for key in keys}
        files = files_below(root, ".json")
        shapes, points = list[Item](), list[Item]()
        sides: dict[str, tuple[float, float] | None] = {}
        owner: dict[str, str] = {}
        wrong, lost, others, flat = [], [], [], Counter()  # type: list[str], list[str], list[str], Counter[str]
        for file in files:
            try:
                content = read_json(f"{root}/{file}", hook=_slim)
                if not isinstance(content, dict) or not isinstance(content.get("shapes"), list):
                    if isinstance(content, dict) and "shapes" not in content:
                        others.append(file)  # written by another program
                        continue
                    raise DamagedError(f"{root}/{file} is not a LabelMe file: it has no list of `shapes`")
                key = _image(file, content, known, by_stem)
                if key is None:
                    lost.append(f"{root}/{file}")
                    continue
                if owner.setdefault(key, file) != file:
                    raise DamagedError(f"{root}/{file} names the image {key!r}, as does {owner[key]!r}")
                width, height = finite(content.get("imageWidth")), finite(content.get("imageHeight"))
                sides[key] = (width, height) if width and height and width >= 1 and height >= 1 else None
                own_shapes, own_points = self._shapes(content["shapes"], f"{root}/{file}", key, flat)
                shapes += own_shapes
                points += own_points
            except DamagedError as error:
                wrong.append(str(error))
        if not owner and not wrong:
            message = f"no image below {root!r} has annotations; found {count(len(files), '.json file')}"
            raise OpError("PG402", message, field="path", help="LabelMe writes a JSON file beside each image")
        notes, total = [*_ignored(flat, others), *beside], len(keys)
        about: dict[str, Any] = {"missing": tuple(files_without_image(lost, root, "annotation file"))}
        if self.masks:
            keys = [key for key in keys if key in owner]
            about["beside"] = {"mask": [f"{root}/{owner[key]}" for key in keys]}
        shapes, own, names = self._points(sorted(shapes, key=_by_image), sorted(points, key=_by_image), keys, wrong, notes)
        if self.masks:
            notes += without_masks(total - len(keys), total, "no JSON file")
        return self.found(root, keys, shapes, sides, wrong, len(files), notes=tuple(notes), points=names, own=own, **about)

    def _shapes(self, given: Sequence[Any], file: str, image: str, flat: Counter[str]) -> tuple[list[Item], list[Item]]:
        """Returns the shapes of a file that have an area, and the points, if keypoints are asked for; counts the kinds of others."""
        shapes, points = list[Item](), list[Item]()
        for i, shape in enumerate(given):
            where = f"{file}: `shapes[{i}]`"
            kind, name, box = _shape(shape, where)
            group = shape.get("group_id") if self.keypoints == "instances" else None
            if isinstance(group, bool) or not isinstance(group, (int, str, type(None))):
                raise DamagedError(f"{where} has the invalid `group_id` {group!r}; use an integer")
            if kind == "point" and self.keypoints:
                points.append(Item(image, _place(shape, where), name, where, 0, group))
            elif box is None:
                flat[kind] += 1
            else:
                shapes.append(Item(image, box, name, where, len(shapes) + 1, group))
        return shapes, points

    def _points(
        self, shapes: list[Item], points: Sequence[Item], keys: Sequence[str], wrong: list[str], notes: list[Note]
    ) -> tuple[list[Item], dict[str, Ragged], PointNames | None]:
        """Returns the boxes with their keypoints, the keypoints of images, and their names. Appends to what is wrong, and to notes."""
        if self.keypoints is None:
            return shapes, {}, None
        if self.keypoints == "image" and self.names is None:
            names = tuple(sorted({point.name for point in points}))
            at = {key: i for i, key in enumerate(keys)}
            lengths = np.bincount([at[point.image] for point in points], minlength=len(keys)).astype(np.int64)
            values = np.array([(*point.values, 2) for point in points], np.float32).reshape(-1, 3)
            labels = np.array([names.index(point.name) for point in points], np.int64)
            return shapes, {POINTS: Ragged(values, lengths), POINT_LABELS: Ragged(labels, lengths)}, PointNames(names)
        homes = shapes
        if self.keypoints == "image":  # each image is the home of its points
            homes = [Item(key, (), "", "") for key in keys]
        used = {(point.image, point.group) for point in points if point.group is not None or homes is not shapes}
        place: dict[Any, int] = {}
        for i, home in enumerate(homes):
            if (home.image, home.group) in used and place.setdefault((home.image, home.group), i) != i:
                first = homes[place[home.image, home.group]].where
                wrong.append(f"{home.where} is in the group {home.group!r}, as is {first}: to which of them do its points belong?")
        alone = [point for point in points if (point.image, point.group) not in place]
        known = [point for point in points if (point.image, point.group) in place]
        if alone:
            gone = LeftOut(len(alone), "point without a box of the same `group_id`", "points without a box of the same `group_id`")
            notes.append(Note("PG411", f"ignored: {gone}, such as {alone[0].where}", field="keypoints", left_out=(gone,)))
        names = tuple(sorted({point.name for point in known}))
        values = np.zeros((len(homes), len(names), 3), np.float32)
        for point in known:
            spot = place[point.image, point.group], names.index(point.name)
            if values[spot][2]:
                whose = f"the group {point.group!r}" if homes is shapes else "its image"
                wrong.append(f"{point.where} is a second {point.name!r} of {whose}")
            values[spot] = (*point.values, 2)
        if homes is shapes:
            return [shape._replace(points=(names, values[i])) for i, shape in enumerate(shapes)], {}, PointNames(names)
        return shapes, {POINTS: Ragged(values, np.full(len(keys), 1, np.int64))}, PointNames(names)


def _ignored(flat: Mapping[str, int], others: Sequence[str]) -> Iterator[Note]:
    """Reports shapes without an area, with counts, and files of other programs."""
    if flat:
        gone = LeftOut(sum(flat.values()), "shape without an area", "shapes without an area")
        yield Note("PG411", f"ignored: {gone} ({', '.join(sorted(flat))})", field="path", left_out=(gone,))
    if others:
        yield Note("PG411", f"ignored: {count(len(others), '.json file')} without `shapes` ({quoted(others)})", field="path")


def _place(shape: Any, where: str) -> tuple[float, float]:
    """Returns x and y of a point: LabelMe measures from the corner of the image."""
    points = shape["points"]
    place = numbers(points[0], 2) if len(points) == 1 else None
    if place is None:
        raise DamagedError(f"{where} is a point whose `points` are not one pair of numbers")
    return place[0] - 0.5, place[1] - 0.5


def _slim(read: dict[str, Any]) -> dict[str, Any]:
    """Drops the copies of images and masks that files embed."""
    read.pop("imageData", None)
    read.pop("mask", None)
    return read


def _image(file: str, content: dict[str, Any], known: set[str], by_stem: dict[str, str]) -> str | None:
    """Returns the image that a file names, else the one with the file's name."""
    named = content.get("imagePath")
    if isinstance(named, str):
        key = os.path.normpath(os.path.join(os.path.dirname(file), named.replace("\\", "/"))).replace(os.sep, "/")
        if key in known:
            return key
    return by_stem.get(without_ending(file))


def _shape(shape: Any, where: str) -> tuple[str, str, tuple[float, ...] | None]:
    """Returns the kind, the class and the box of a shape; `None` for one without an area."""
    own = shape if isinstance(shape, dict) else {}
    name, points, kind = own.get("label"), own.get("points"), own.get("shape_type") or "polygon"
    if not isinstance(name, str) or not name or not isinstance(points, list):
        raise DamagedError(f"{where} has no `label` or no `points`")
    pairs = [numbers(point, 2) for point in points]
    if kind in WITHOUT_AREA:
        return kind, name, None
    if not pairs or None in pairs or kind not in _AROUND | {"circle"}:
        raise DamagedError(f"{where} is a {str(kind)!r}: an unknown kind, or `points` that are not pairs of numbers")
    xs, ys = zip(*(pair for pair in pairs if pair is not None), strict=True)
    if kind == "circle":
        if len(xs) != 2:
            raise DamagedError(f"{where} is a circle with {len(xs)} points; it needs its centre and a point on it")
        radius = math.dist((xs[0], ys[0]), (xs[1], ys[1]))
        return kind, name, (xs[0] - radius, ys[0] - radius, xs[0] + radius, ys[0] + radius)
    last = 1.0 if kind == "mask" else 0.0  # its second point is its last pixel
    return kind, name, (min(xs), min(ys), max(xs) + last, max(ys) + last)
