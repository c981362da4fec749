"""`labelme`: images, and a JSON file for each with the outlines on it, as LabelMe writes them."""

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
from pipegen.ops.sources.annotations.source import BoxedSource, gathered, known_sides, without_own_image
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
    """Images, and a file of JSON beside each with the shapes that were drawn on it; a box is drawn around every polygon, rectangle, circle
    and mask.

    Classes count by their names. Points and lines have no area, and are passed over.
    """

    op: ClassVar[str] = "labelme"

    path: Annotated[str, Field(min_length=1)]
    """The folder of the JSON files, relative to the spec's file. Each names its image by `imagePath`, from where it lies itself; else it is
    the image of the same name."""

    masks: Literal["instances"] | None = None
    """`instances`: a `mask` for each image that has a file, with the number of a box at each pixel of its outline; a later shape lies upon
    an earlier one. The outlines are drawn in Python, whenever an image is read."""

    def _type(self, classes: int | None, most: int) -> ElementType:
        """The features of any source of boxes, and the mask."""
        found = super()._type(classes, most)
        return self._with_instances(found) if self.masks else found

    def decoders(self) -> Mapping[str, Transform]:
        """That of the mask."""
        return {"mask": OutlineDecoder(format="labelme", options=(("most", MOST_INSTANCES),))} if self.masks else {}

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        """Read every file; see `BoxedSource.find`."""
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
                        others.append(file)  # of another program
                        continue
                    raise DamagedError(f"{root}/{file} is no file of LabelMe: a list of `shapes` is due")
                key = _image(file, content, number, by_stem)
                if key is None:
                    lost.append(f"{root}/{file}")
                    continue
                if owner.setdefault(key, file) != file:
                    raise DamagedError(f"{root}/{file} names the image {key!r}, and so does {owner[key]!r}")
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
            message = f"no image below {root!r} has annotations: {count(len(files), '.json file')} there"
            raise OpError("PG402", message, field="path", help="LabelMe writes a file of JSON beside each image")
        shapes.sort(key=lambda shape: shape[0])
        notes, missing = [*_ignored(flat, others), *beside], without_own_image(lost, root, "annotation file")
        names = tuple(sorted({shape[2] for shape in shapes}))
        if self.masks:
            return root, _with_masks(root, keys, owner, sides, shapes, names, notes, missing), None
        boxes = [(record, box, name) for record, box, name, _, _ in shapes]
        return root, gathered(keys, known_sides(sides), boxes, names, lambda i: shapes[i][3], {}, notes, missing), None


def _ignored(flat: Mapping[str, int], others: Sequence[str]) -> Iterator[Note]:
    """Reports shapes without an area, of which there are so many of each kind, and files of other programs."""
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
    """Those images that have a file, which is their mask's, too; and the number of each box in that."""
    import numpy as np

    kept = [i for i, key in enumerate(keys) if key in owner]
    place = {i: at for at, i in enumerate(kept)}
    left = len(keys) - len(kept)
    message = f"{count(left, 'image')} of {len(keys):,} without a file {'has' if left == 1 else 'have'} no mask, and are left out"
    gone = (LeftOut(left, "image without a mask", "images without a mask"),)
    more = [Note("PG476", message, "leave `masks` out for all images", "masks", "info", gone)] if left else []
    boxes = [(place[record], box, name) for record, box, name, _, _ in shapes]
    items = {number_name("boxes"): np.array([number for *_, number in shapes], np.float32)}
    own = [keys[i] for i in kept]
    found = gathered(own, known_sides([sides[i] for i in kept]), boxes, names, lambda i: shapes[i][3], items, [*notes, *more], missing)
    return replace(found, beside={"mask": [f"{root}/{owner[key]}" for key in own]})


def _slim(read: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the images that files hold once more, and masks."""
    read.pop("imageData", None)
    read.pop("mask", None)
    return read


def _image(file: str, content: dict[str, Any], known: dict[str, int], by_stem: dict[str, str]) -> str | None:
    """The image of a file: the one that it names, else the one that is called like it."""
    named = content.get("imagePath")
    if isinstance(named, str):
        key = os.path.normpath(os.path.join(os.path.dirname(file), named.replace("\\", "/"))).replace(os.sep, "/")
        if key in known:
            return key
    return by_stem.get(without_ending(file))


def _shape(shape: Any, where: str) -> tuple[str, str, tuple[float, ...] | None]:
    """The kind, the class and the box of a shape; `None` for one without an area."""
    own = shape if isinstance(shape, dict) else {}
    name, points, kind = own.get("label"), own.get("points"), own.get("shape_type") or "polygon"
    if not isinstance(name, str) or not name or not isinstance(points, list):
        raise DamagedError(f"{where} has no `label` or no `points`")
    pairs = [numbers(point, 2) for point in points]
    if kind in _WITHOUT_AREA:
        return kind, name, None
    if not pairs or None in pairs or kind not in _AROUND | {"circle"}:
        raise DamagedError(f"{where} is a {str(kind)!r} whose `points` are no pairs of numbers, or of no known kind")
    xs, ys = zip(*(pair for pair in pairs if pair is not None), strict=True)
    if kind == "circle":
        if len(xs) != 2:
            raise DamagedError(f"{where} is a circle, which has a centre and a point on it")
        radius = math.dist((xs[0], ys[0]), (xs[1], ys[1]))
        return kind, name, (xs[0] - radius, ys[0] - radius, xs[0] + radius, ys[0] + radius)
    last = 1.0 if kind == "mask" else 0.0  # its second point is its last pixel
    return kind, name, (min(xs), min(ys), max(xs) + last, max(ys) + last)
