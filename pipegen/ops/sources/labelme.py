"""`labelme`: images, each with a JSON file of outlines, as LabelMe writes them."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.families.array_decoder import OutlineDecoder
from pipegen.ops.kinds.numbering import MOST_INSTANCES, number_name
from pipegen.ops.sources.annotations.files import DamagedError, damaged, finite, numbers, read_json
from pipegen.ops.sources.annotations.pairs import files_below, listed_images, without_ending
from pipegen.ops.sources.annotations.source import BoxedSource, gathered, known_sides, without_masks, without_own_image
from pipegen.ops.sources.listing.base import LeftOut, Note
from pipegen.ops.sources.listing.wording import count, find_root, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.sources.annotations.found import Found
    from pipegen.ops.sources.listing.base import Parts
    from pipegen.ops.sources.listing.missing import Missing
    from pipegen.ops.transform import Transform
    from pipegen.types import ElementType

_WITHOUT_AREA = frozenset({"point", "line", "linestrip", "points"})
_AROUND = frozenset({"polygon", "rectangle", "mask"})


class Labelme(BoxedSource):
    """Images, each with a JSON file of drawn shapes. Every polygon, rectangle, circle and mask gets a box around it.

    Classes are ordered by name. Points and lines have no area and are ignored.
    """

    op: ClassVar[str] = "labelme"

    path: Annotated[str, Field(min_length=1)]
    """Folder of the JSON files, relative to the spec's file. `imagePath` in a file names its image, relative to that file; else the image
    has the same name."""

    masks: Literal["instances"] | None = None
    """`instances`: a `mask` for each image with a file. Each pixel holds the number of the box whose outline covers it; later shapes cover
    earlier ones. Outlines are drawn in Python each time an image is read."""

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
        shapes: list[tuple[int, tuple[float, ...], str, str, int]] = []
        sides: list[tuple[float, float] | None] = [None] * len(keys)
        owner: dict[str, str] = {}
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
                    kind, name, box = _shape(shape, f"{root}/{file}: `shapes[{i}]`")
                    if box is None:
                        flat[kind] = flat.get(kind, 0) + 1
                    else:
                        shapes.append((number[key], box, name, f"{root}/{file}: `shapes[{i}]`", i + 1))
            except DamagedError as error:
                wrong.append(str(error))
        if wrong:
            raise damaged(wrong, "path", len(files))
        if not owner:
            message = f"no image below {root!r} has annotations; found {count(len(files), '.json file')}"
            raise OpError("PG402", message, field="path", help="LabelMe writes a JSON file beside each image")
        shapes.sort(key=lambda shape: shape[0])
        notes, missing = [*_ignored(flat, others), *beside], without_own_image(lost, root, "annotation file")
        names = tuple(sorted({shape[2] for shape in shapes}))
        if self.masks:
            return root, _with_masks(root, keys, owner, sides, shapes, names, notes, missing), None
        boxes = [(record, box, name) for record, box, name, _, _ in shapes]
        return root, gathered(keys, known_sides(sides), boxes, names, lambda i: shapes[i][3], {}, notes, missing), None


def _ignored(flat: Mapping[str, int], others: Sequence[str]) -> Iterator[Note]:
    """Reports shapes without an area, with counts, and files of other programs."""
    if flat:
        gone = LeftOut(sum(flat.values()), "shape without an area", "shapes without an area")
        yield Note("PG411", f"ignored: {gone} ({', '.join(sorted(flat))})", field="path", left_out=(gone,))
    if others:
        yield Note("PG411", f"ignored: {count(len(others), '.json file')} without `shapes` ({quoted(others)})", field="path")


def _with_masks(
    root: str,
    keys: Sequence[str],
    owner: Mapping[str, str],
    sides: Sequence[tuple[float, float] | None],
    shapes: Sequence[tuple[int, tuple[float, ...], str, str, int]],
    names: tuple[str, ...],
    notes: Sequence[Note],
    missing: Sequence[Missing],
) -> Found:
    """Keeps the images that have a file, which is also their mask, with the number of each box in it."""
    import numpy as np

    kept = [i for i, key in enumerate(keys) if key in owner]
    place = {i: at for at, i in enumerate(kept)}
    more = without_masks(len(keys) - len(kept), len(keys), "no JSON file")
    boxes = [(place[record], box, name) for record, box, name, _, _ in shapes]
    items = {number_name("boxes"): np.array([number for *_, number in shapes], np.float32)}
    own = [keys[i] for i in kept]
    found = gathered(own, known_sides([sides[i] for i in kept]), boxes, names, lambda i: shapes[i][3], items, [*notes, *more], missing)
    return replace(found, beside={"mask": [f"{root}/{owner[key]}" for key in own]})


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
