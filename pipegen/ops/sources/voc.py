"""`voc`: images, each with an XML file of boxes, as in Pascal VOC."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from xml.etree.ElementTree import Element

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.families.decoder import MaskDecoder
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.sources.annotations.files import (
    DamagedError,
    annotated,
    below,
    finite,
    listed_images,
    read_text,
    read_xml,
    without_ending,
)
from pipegen.ops.sources.annotations.source import OPEN, Found, Item, ListedSource, files_without_image, without_masks
from pipegen.ops.sources.listing.paths import close_names, find_root
from pipegen.ops.transform import SplitName, Transform
from pipegen.types import ElementType

_Name = Annotated[str, Field(min_length=1, pattern=r"^[^/\\]+$")]
_SETS, _SEGMENTED = "ImageSets/Main", "ImageSets/Segmentation"
_CLASSES = 21  # the 20 classes of Pascal VOC, and background


class Voc(ListedSource):
    """Images, each with an XML file of boxes: a Pascal VOC folder, or the output of a labelling tool in its format.

    An image and its annotations share a name but for the ending; the usual folders are searched. Classes are ordered by name. `difficult`
    is 1 for boxes marked as difficult.
    """

    op: ClassVar[str] = "voc"
    items: ClassVar[tuple[str, ...]] = ("difficult",)

    path: Annotated[str, Field(min_length=1)]
    """Folder of the dataset, such as `VOCdevkit/VOC2012`, relative to the spec's file."""
    images: Annotated[str, Field(min_length=1)] | None = None
    """Folder of the images below `path`; by default `JPEGImages` or `images` if there is one, else `path` itself."""
    annotations: Annotated[str, Field(min_length=1)] | None = None
    """Folder of the XML files below `path`; by default `Annotations` or `annotations`, else beside the images."""
    masks: Literal["instances", "classes"] | None = None
    """Adds a `mask` to each image; images without one are left out. `instances`: the number of the box that a pixel belongs to, from the
    files below `SegmentationObject`. `classes`: the class of each pixel, from `SegmentationClass`, numbered as in Pascal VOC: 0 is
    background. In both, 255 marks pixels that the annotators left open, which is the mask's `ignore`."""
    split: _Name | Annotated[dict[SplitName, _Name], Field(min_length=1)] | None = None
    """A list of images in `ImageSets/Main`, or with `masks` in `ImageSets/Segmentation`: `trainval`, or one for each split of the pipeline:
    `{train: train, validation: val}`. By default every image."""
    corners: Literal["pixels", "edges"] = "pixels"
    """Meaning of `xmin` to `ymax`. `pixels`: the first and the last pixel of a box, counted from 1, as in Pascal VOC. `edges`: its edges,
    with the image's corner at 0, as many labelling tools write them."""

    def _type(self, found: Found | None) -> ElementType:
        return self._with_mask(super()._type(found), _CLASSES, OPEN)

    def decoders(self) -> Mapping[str, Transform]:
        """Returns the decoder of masks, whose values are indices of a palette."""
        return {"mask": MaskDecoder()} if self.masks else {}

    def find(self, base: Path, progress: Callable[[int], None] | None) -> Found:
        path = find_root(str(base), self.path)
        root = below(path, self.images, ("JPEGImages", "images"), "images", path)
        folder = below(path, self.annotations, ("Annotations", "annotations"), "annotations", root)
        images, notes = listed_images(root, progress, ".xml")
        own, alone = annotated(root, images, folder, ".xml")
        missing = files_without_image(alone, root, "annotation file") if self.split is None else []
        known = {without_ending(key): key for key in images}
        split_of = self.split_of(root, images, partial(self._named, path, root, known), missing)
        beside: dict[str, list[str]] = {}
        if self.masks:
            split_of, beside["mask"], maskless = self._with_masks(path, split_of)
            notes = [*maskless, *notes]
        items, wrong = list[Item](), list[str]()
        sides: dict[str, tuple[int, int] | None] = {}
        first = 1 if self.corners == "pixels" else 0
        for key in (key for key in split_of if key in own):
            try:
                tree = read_xml(own[key])
                width, height = (finite(tree.findtext(f"size/{side}") or "") for side in ("width", "height"))
                sides[key] = (int(width), int(height)) if width and height and width >= 1 and height >= 1 else None
                for number, thing in enumerate(tree.findall("object"), 1):
                    where = f"{own[key]}: object {number}"
                    name, (left, top, right, bottom) = _object(thing, where)
                    difficult = (thing.findtext("difficult") or "").strip() == "1"
                    items.append(Item(key, (left - first, top - first, right, bottom), name, where, number, marked=difficult))
            except DamagedError as error:
                wrong.append(str(error))
        about: dict[str, Any] = {"notes": tuple(notes), "missing": tuple(missing), "parts": self.parts_of([*split_of.values()])}
        return self.found(root, [*split_of], items, sides, wrong, len(own) + len(alone), beside=beside, **about)

    def _with_masks(self, path: str, split_of: Mapping[str, str]) -> tuple[dict[str, str], list[str], Sequence[Note]]:
        """Returns the images that have a mask, with their splits; the masks; and a note on the others."""
        folder = find_root(path, "SegmentationObject" if self.masks == "instances" else "SegmentationClass", field="masks")
        masks = {key: f"{folder}/{without_ending(key)}.png" for key in split_of}
        there = {key: split for key, split in split_of.items() if os.path.isfile(masks[key])}
        if not there:
            help_ = f"a mask has the name of its image, such as {without_ending(next(iter(split_of)))}.png"
            raise OpError("PG402", f"none of {count(len(split_of), 'image')} has a mask below {folder!r}", field="masks", help=help_)
        left = without_masks(len(split_of) - len(there), len(split_of), f"no mask below {folder!r}")
        return there, [masks[key] for key in there], left

    def _named(self, path: str, root: str, known: Mapping[str, str], name: str, field: str) -> tuple[Sequence[str], Sequence[str]]:
        """Returns the images of a list, and those that are missing: the first word of each line, without those that a class list marks with
        -1. `known` has the path of each image without its ending."""
        folder = f"{path}/{_SEGMENTED if self.masks and os.path.isdir(f'{path}/{_SEGMENTED}') else _SETS}"
        if not os.path.isfile(f"{folder}/{name}.txt"):
            there = sorted(os.path.splitext(entry)[0] for entry in os.listdir(folder)) if os.path.isdir(folder) else []
            near = close_names(name, there)
            help_ = f"is {quoted(near)} meant?" if near else f"it holds {quoted(there)}" if there else "remove `split` to read every image"
            raise OpError("PG578", f"the list {name}.txt is missing in {folder!r}", field=field, help=help_)
        try:
            lines = [line.split() for line in read_text(f"{folder}/{name}.txt").splitlines()]
        except DamagedError as error:
            raise OpError("PG578", str(error), field=field) from None
        ids = [words[0] for words in lines if words and words[1:2] != ["-1"]]
        if not ids:
            raise OpError("PG578", f"the list {name}.txt in {folder!r} is empty", field=field)
        gone = [i for i in ids if i not in known]
        if len(gone) == len(ids):
            message = f"the list `{name}` names {count(len(gone), 'image')} of {len(ids):,} that {root!r} lacks: {quoted(gone)}"
            raise OpError("PG578", message, field=field, help="add the images, or remove them from the list")
        return [known[i] for i in ids if i in known], gone


def _object(thing: Element, where: str) -> tuple[str, tuple[float, ...]]:
    name = (thing.findtext("name") or "").strip()
    if not name:
        raise DamagedError(f"{where} has no `name`")
    corners: list[Any] = [finite((thing.findtext(f"bndbox/{corner}") or "").strip()) for corner in ("xmin", "ymin", "xmax", "ymax")]
    if None in corners:
        raise DamagedError(f"{where} needs a `bndbox` with the numbers `xmin`, `ymin`, `xmax` and `ymax`")
    return name, tuple(corners)
