"""`labelme`: images, each with a JSON file of outlines, as LabelMe writes them."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.families.array_decoder import OutlineDecoder
from pipegen.ops.kinds.numbering import MOST_INSTANCES, number_name
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.sources.annotations.files import DamagedError, damaged, finite, numbers, read_json
from pipegen.ops.sources.annotations.found import PointNames
from pipegen.ops.sources.annotations.pairs import files_below, listed_images, without_ending
from pipegen.ops.sources.annotations.points import POINTS, PointedSource
from pipegen.ops.sources.annotations.source import gathered, known_sides, without_masks, without_own_image
from pipegen.ops.sources.listing.base import LeftOut, Note
from pipegen.ops.sources.listing.wording import count, find_root, quoted

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.sources.annotations.found import Found
    from pipegen.ops.sources.listing.base import Parts
    from pipegen.ops.sources.listing.missing import Missing
    from pipegen.ops.transform import Transform
    from pipegen.types import ElementType

_WITHOUT_AREA = frozenset({"point", "line", "linestrip", "points"})
_AROUND = frozenset({"polygon", "rectangle", "mask"})


class _Shape(NamedTuple):
    """A shape with a box: its image, the edges, the class, its place, its number in the file, and its group."""

    record: int
    box: tuple[float, ...]
    name: str
    where: str
    number: int
    group: Any


class _Point(NamedTuple):
    """A point: its image, x and y, the name, its place, and its group."""

    record: int
    at: tuple[float, float]
    name: str
    where: str
    group: Any


class Labelme(PointedSource):
    """Images, each with a JSON file of drawn shapes. Every polygon, rectangle, circle and mask gets a box around it.

    Classes are ordered by name. Lines have no area and are ignored, as are points without `keypoints`.
    """

    op: ClassVar[str] = "labelme"

    path: Annotated[str, Field(min_length=1)]
    """Folder of the JSON files, relative to the spec's file. `imagePath` in a file names its image, relative to that file; else the image
    has the same name."""

    masks: Literal["instances"] | None = None
    """`instances`: a `mask` for each image with a file. Each pixel holds the number of the box whose outline covers it; later shapes cover
    earlier ones. Outlines are drawn in Python each time an image is read."""

    keypoints: Literal["instances", "image"] | None = None  # type: ignore[assignment]  # others have no points of an image
    """Shapes of the type `point`, each named by its label, as `keypoints` with `(x, y, visibility)` for each name. `image`: one set for
    each image. `instances`: one set for each box, of the points with its `group_id`. Names are ordered by name unless `names` lists them.
    A mirror swaps names that differ by left and right, unless `mirror_pairs` names others. All points are visible, and a name without a
    point is absent. Places are counted from the corner of the image, as those of boxes, so the centre of the first pixel is (0.5, 0.5) in
    the file and (0, 0) in the batch."""

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
        shapes: list[_Shape] = []
        sides: list[tuple[float, float] | None] = [None] * len(keys)
        owner: dict[str, str] = {}
        points: list[_Point] = []
        wrong, lost, others, flat = [], [], [], {}  # type: list[str], list[str], list[str], dict[str, int]
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
                for i, shape in enumerate(content["shapes"]):
                    where = f"{root}/{file}: `shapes[{i}]`"
                    kind, name, box = _shape(shape, where)
                    if box is not None:
                        shapes.append(_Shape(number[key], box, name, where, i + 1, shape.get("group_id")))
                    elif kind == "point" and self.keypoints is not None:
                        points.append(_Point(number[key], _place(shape, where), name, where, shape.get("group_id")))
                    else:
                        flat[kind] = flat.get(kind, 0) + 1
            except DamagedError as error:
                wrong.append(str(error))
        if wrong:
            raise damaged(wrong, "path", len(files))
        if not owner:
            message = f"no image below {root!r} has annotations; found {count(len(files), '.json file')}"
            raise OpError("PG402", message, field="path", help="LabelMe writes a JSON file beside each image")
        shapes.sort(key=lambda shape: shape.record)
        notes, missing = [*_ignored(flat, others), *beside], without_own_image(lost, root, "annotation file")
        return root, self._found(root, keys, owner, sides, shapes, points, notes, missing), None

    def _found(
        self,
        root: str,
        keys: Sequence[str],
        owner: Mapping[str, str],
        sides: Sequence[tuple[float, float] | None],
        shapes: Sequence[_Shape],
        points: Sequence[_Point],
        notes: builtins.list[Note],
        missing: Sequence[Missing],
    ) -> Found:
        """Builds the columns of boxes and points; `masks` keeps the images that have a file, `owner`."""
        import numpy as np

        kept = [i for i, key in enumerate(keys) if key in owner] if self.masks else range(len(keys))
        notes += without_masks(len(keys) - len(kept), len(keys), "no JSON file")
        items: dict[str, Any] = {}
        if self.masks:
            items[number_name("boxes")] = np.array([shape.number for shape in shapes], np.float32)
        sets, own = None, dict[str, Any]()
        if self.keypoints is not None:
            sets = PointNames(tuple(sorted({point.name for point in points})))
            homes = _homes(shapes) if self.keypoints == "instances" else {(i, None): at for at, i in enumerate(kept)}
            values, more = _sets(points, homes, sets.names, len(shapes) if self.keypoints == "instances" else len(kept))
            notes += more
            if self.keypoints == "instances":
                items[POINTS] = values
            else:
                own[POINTS] = Ragged(values.reshape(-1, 3), np.full(len(kept), len(sets.names)))
        place = {i: at for at, i in enumerate(kept)}
        boxes = [(place[shape.record], shape.box, shape.name) for shape in shapes]
        about = [keys[i] for i in kept], known_sides([sides[i] for i in kept]), boxes, tuple(sorted({shape.name for shape in shapes}))
        found = gathered(*about, lambda i: shapes[i].where, items, notes, missing)
        files_of = {"mask": [f"{root}/{owner[keys[i]]}" for i in kept]} if self.masks else {}
        return replace(found, beside=files_of, own=own, points=sets)


def _ignored(flat: Mapping[str, int], others: Sequence[str]) -> Iterator[Note]:
    """Reports shapes without an area, with counts, and files of other programs."""
    if flat:
        gone = LeftOut(sum(flat.values()), "shape without an area", "shapes without an area")
        yield Note("PG411", f"ignored: {gone} ({', '.join(sorted(flat))})", field="path", left_out=(gone,))
    if others:
        yield Note("PG411", f"ignored: {count(len(others), '.json file')} without `shapes` ({quoted(others)})", field="path")


def _homes(shapes: Sequence[_Shape]) -> dict[tuple[int, Any], int]:
    """Returns the number of the shape that alone has a group, by image and group."""
    counted = Counter((shape.record, shape.group) for shape in shapes if shape.group is not None)
    return {home: i for i, shape in enumerate(shapes) if counted[home := (shape.record, shape.group)] == 1}


def _sets(points: Sequence[_Point], homes: Mapping[tuple[int, Any], int], names: tuple[str, ...], count_: int) -> tuple[Any, list[Note]]:
    """Returns the named points of each home, float32 `(homes, names, 3)`, and notes.

    Raises:
        OpError: `PG475` for a second point of a name.
    """
    import numpy as np

    values: Any = np.zeros((count_, len(names), 3), np.float32)
    place, wrong, lost = {name: i for i, name in enumerate(names)}, list[str](), list[_Point]()
    whole = (next(iter(homes), (0, 0))[1]) is None
    for point in points:
        home = homes.get((point.record, None if whole else point.group))
        if home is None:
            lost.append(point)
        elif values[home, place[point.name], 2]:
            wrong.append(f"{point.where} is the second point {point.name!r} of its {'image' if whole else 'group'}")
        else:
            values[home, place[point.name]] = (*point.at, 2)
    if wrong:
        raise damaged(wrong, "path", len(points))
    if not lost:
        return values, []
    gone = LeftOut(len(lost), "point without a box", "points without a box")
    message = f"{lost[0].where} has no `group_id` that one shape with an area has, too; {count(len(lost), 'such point')} left out"
    return values, [Note("PG477", message, "give a point and its box one `group_id`", "keypoints", left_out=(gone,))]


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


def _place(shape: Any, where: str) -> tuple[float, float]:
    """Returns x and y of a point, from the centre of the first pixel."""
    pairs = [numbers(point, 2) for point in shape["points"]]
    if len(pairs) != 1 or pairs[0] is None:
        raise DamagedError(f"{where} is a point, whose `points` must be one pair of numbers")
    x, y = pairs[0]
    return x - 0.5, y - 0.5


def _shape(shape: Any, where: str) -> tuple[str, str, tuple[float, ...] | None]:
    """Returns the kind, the class and the box of a shape; `None` for one without an area."""
    own = shape if isinstance(shape, dict) else {}
    name, points, kind = own.get("label"), own.get("points"), own.get("shape_type") or "polygon"
    if not isinstance(name, str) or not name or not isinstance(points, list):
        raise DamagedError(f"{where} has no `label` or no `points`")
    pairs = [numbers(point, 2) for point in points]
    if kind in _WITHOUT_AREA:
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
