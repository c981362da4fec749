"""`labelme`: images, each with a JSON file of outlines, as LabelMe writes them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
    damaged,
    files_below,
    finite,
    listed_images,
    numbers,
    read_json,
    without_ending,
)
from pipegen.ops.sources.annotations.points import POINTS, PointedSource
from pipegen.ops.sources.annotations.source import POINT_LABELS, Found, PointNames, Shape, gathered, without_masks, without_own_image
from pipegen.ops.sources.listing.base import Parts
from pipegen.ops.sources.listing.paths import find_root
from pipegen.ops.transform import Transform
from pipegen.types import MOST_INSTANCES, ElementType

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
        type_ = super()._type(found)
        return self._with_instances(type_) if self.masks else type_

    def decoders(self) -> Mapping[str, Transform]:
        return {"mask": OutlineDecoder(format="labelme", options=(("most", MOST_INSTANCES),))} if self.masks else {}

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        root = find_root(str(base), self.path)
        keys, beside = listed_images(root, progress, ".json")
        number = {key: i for i, key in enumerate(keys)}
        by_stem = {without_ending(key): key for key in keys}
        files = files_below(root, ".json")
        shapes, points = list[Shape](), list[Shape]()
        sides: list[tuple[float, float] | None] = [None] * len(keys)
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
                key = _image(file, content, number, by_stem)
                if key is None:
                    lost.append(f"{root}/{file}")
                    continue
                if owner.setdefault(key, file) != file:
                    raise DamagedError(f"{root}/{file} names the image {key!r}, as does {owner[key]!r}")
                width, height = finite(content.get("imageWidth")), finite(content.get("imageHeight"))
                sides[number[key]] = (width, height) if width and height and width >= 1 and height >= 1 else None
                own_shapes, own_points = self._shapes(content["shapes"], f"{root}/{file}", number[key], flat)
                shapes += own_shapes
                points += own_points
            except DamagedError as error:
                wrong.append(str(error))
        shapes.sort(key=lambda shape: shape.record)
        points.sort(key=lambda point: point.record)
        notes, missing = [*_ignored(flat, others), *beside], without_own_image(lost, root, "annotation file")
        items, own, stored = self._points(shapes, points, len(keys), wrong, notes)
        if wrong:
            raise damaged(wrong, "path", len(files))
        if not owner:
            message = f"no image below {root!r} has annotations; found {count(len(files), '.json file')}"
            raise OpError("PG402", message, field="path", help="LabelMe writes a JSON file beside each image")
        names = tuple(sorted({shape.name for shape in shapes}))
        found = gathered(keys, sides, shapes, names, items, notes, missing, numbered=self.masks is not None)
        found = replace(found, own=own, points=stored)
        if self.masks:
            found = _with_masks(found, {key: f"{root}/{file}" for key, file in owner.items()})
        return root, found, None

    def _shapes(self, given: Sequence[Any], file: str, record: int, flat: Counter[str]) -> tuple[list[Shape], list[Shape]]:
        """Returns the shapes of a file that have an area, and the points, if keypoints are asked for; counts the kinds of others."""
        shapes, points = list[Shape](), list[Shape]()
        for i, shape in enumerate(given):
            where = f"{file}: `shapes[{i}]`"
            kind, name, box = _shape(shape, where)
            group = shape.get("group_id") if self.keypoints == "instances" else None
            if isinstance(group, bool) or not isinstance(group, (int, str, type(None))):
                raise DamagedError(f"{where} has the invalid `group_id` {group!r}; use an integer")
            if kind == "point" and self.keypoints:
                points.append(Shape(record, _place(shape, where), name, where, 0, group))
            elif box is None:
                flat[kind] += 1
            else:
                shapes.append(Shape(record, box, name, where, len(shapes) + 1, group))
        return shapes, points

    def _points(
        self, shapes: Sequence[Shape], points: Sequence[Shape], images: int, wrong: list[str], notes: list[Note]
    ) -> tuple[dict[str, Any], dict[str, Ragged], PointNames | None]:
        """Returns the keypoints of boxes and those of images, by feature, and their names. Appends to what is wrong, and to notes."""
        if self.keypoints is None:
            return {}, {}, None
        if self.keypoints == "image" and self.names is None:
            names = tuple(sorted({point.name for point in points}))
            lengths = np.bincount([point.record for point in points], minlength=images).astype(np.int64)
            values = np.array([(*point.values, 2) for point in points], np.float32).reshape(-1, 3)
            labels = np.array([names.index(point.name) for point in points], np.int64)
            return {}, {POINTS: Ragged(values, lengths), POINT_LABELS: Ragged(labels, lengths)}, PointNames(names)
        place: dict[Any, int] = {}
        if self.keypoints == "instances":
            used = {(point.record, point.group) for point in points if point.group is not None}
            for i, shape in enumerate(shapes):
                if (shape.record, shape.group) in used and place.setdefault((shape.record, shape.group), i) != i:
                    first = shapes[place[shape.record, shape.group]].where
                    wrong.append(f"{shape.where} is in the group {shape.group!r}, as is {first}: to which of them do its points belong?")
        else:
            place = {(record, None): record for record in range(images)}
        alone = [point for point in points if (point.record, point.group) not in place]
        known = [point for point in points if (point.record, point.group) in place]
        if alone:
            gone = LeftOut(len(alone), "point without a box of the same `group_id`", "points without a box of the same `group_id`")
            notes.append(Note("PG411", f"ignored: {gone}, such as {alone[0].where}", field="keypoints", left_out=(gone,)))
        names = tuple(sorted({point.name for point in known}))
        values = np.zeros((len(shapes) if self.keypoints == "instances" else images, len(names), 3), np.float32)
        for point in known:
            at = place[point.record, point.group], names.index(point.name)
            if values[at][2]:
                whose = f"the group {point.group!r}" if self.keypoints == "instances" else "its image"
                wrong.append(f"{point.where} is a second {point.name!r} of {whose}")
            values[at] = (*point.values, 2)
        if self.keypoints == "instances":
            return {POINTS: values}, {}, PointNames(names)
        return {}, {POINTS: Ragged(values, np.full(images, 1, np.int64))}, PointNames(names)


def _ignored(flat: Mapping[str, int], others: Sequence[str]) -> Iterator[Note]:
    """Reports shapes without an area, with counts, and files of other programs."""
    if flat:
        gone = LeftOut(sum(flat.values()), "shape without an area", "shapes without an area")
        yield Note("PG411", f"ignored: {gone} ({', '.join(sorted(flat))})", field="path", left_out=(gone,))
    if others:
        yield Note("PG411", f"ignored: {count(len(others), '.json file')} without `shapes` ({quoted(others)})", field="path")


def _with_masks(found: Found, owner: Mapping[str, str]) -> Found:
    """Keeps the images that have a file, which is also their mask."""
    kept = np.flatnonzero([key in owner for key in found.keys])
    more = without_masks(len(found.keys) - len(kept), len(found.keys), "no JSON file")
    keys = [found.keys[i] for i in kept.tolist()]
    records, own = np.searchsorted(kept, found.records), {name: column[kept] for name, column in found.own.items()}
    beside = {"mask": [owner[key] for key in keys]}
    return replace(found, keys=keys, sides=found.sides[kept], records=records, own=own, notes=(*found.notes, *more), beside=beside)


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


def _image(file: str, content: dict[str, Any], known: dict[str, int], by_stem: dict[str, str]) -> str | None:
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
