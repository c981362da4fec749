"""Bases of sources of images with boxes, outlines and keypoints: a format parses its files to `Item`s, from which these make columns."""

from __future__ import annotations

import builtins
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.arguments.geometry import BoxFormat, PointRules, pairs_by_name, swapped_places
from pipegen.ops.families.decoder import OutlineDecoder
from pipegen.ops.fields.columns import Packed, Ragged, most_items, within
from pipegen.ops.fields.labels import Classes, ClassName, KnownClasses
from pipegen.ops.fields.notes import LeftOut, Note, count, is_are, quoted
from pipegen.ops.fields.strings import Ints, Strings, as_sizes
from pipegen.ops.kinds.base import item_type
from pipegen.ops.kinds.boxes import boxes_type
from pipegen.ops.kinds.keypoints import check_names, keypoints_type
from pipegen.ops.kinds.mask import number_name, with_numbers
from pipegen.ops.sources.annotations.files import damaged
from pipegen.ops.sources.annotations.outlines import NO_OUTLINE, Outlines
from pipegen.ops.sources.annotations.sizes import sides_of
from pipegen.ops.sources.features.feature import KeepsBoxes, NamesPoints
from pipegen.ops.sources.listing.base import Listing, Location, Missing, Parts, SplitSource, always
from pipegen.ops.sources.tables.selecting import JoiningSource
from pipegen.ops.transform import Transform
from pipegen.types import MOST_INSTANCES, ElementType, FeatureType

Named: TypeAlias = Callable[[str, str], tuple[Sequence[str], Sequence[str]]]
"""From the name of a split, and the argument that names it, to its images, and to missing ones that it lists."""
NUMBERS = number_name("boxes")  # the feature with the number of each box in a mask
POINTS, POINT_LABELS = "keypoints", "point_labels"  # the features with the keypoints, and with the label of each point of an image
OPEN = 255  # the value of pixels in masks that have no class: those around objects, and those of crowds only
_COMPARED = 32  # images whose size is compared with the annotations
_ROUNDED = {False: 1.0, True: 0.005}
"""Distance that a box may exceed its image by rounding without a finding: in pixels, and as a fraction of the image."""


class Item(NamedTuple):
    """A box as an annotation file has it, or a point."""

    image: str  # the path of its image
    values: Any  # left, top, right and bottom edge of a box, in pixels or as fractions of the image; x and y of a point
    name: str  # its class, or the name of the point
    where: Any  # its place, from which messages describe it
    number: int = 0  # its number in a mask of the image
    group: int | str | None = None  # its group, if points are joined with boxes
    marked: bool = False  # whether it is a difficult one, or a crowd
    outline: int = NO_OUTLINE  # the number of its outline
    points: tuple[tuple[str, ...], Any] | None = None  # names of its keypoints, and x, y and visibility of each


@dataclass(frozen=True)
class PointNames:
    """Names of keypoints in the order of their columns."""

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] | None = None  # those that a mirror swaps; `None` if the annotations do not say
    numbered: bool = False  # whether the names are numbers, since the annotations have none
    columns: int = 3  # the numbers of each: 2 for x and y, 3 with a visibility


@dataclass(frozen=True)
class Found:
    """Images of a source and their boxes, as columns."""

    root: str  # the folder of the images
    keys: Sequence[str]  # the path of each image, relative to the folder
    sides: Any  # width and height of each in pixels by the annotations, float64 `(images, 2)`; infinite if unknown
    records: Any  # the image of each box, rising, int64 `(boxes,)`
    boxes: Any  # left, top, right and bottom edge of each, float64 `(boxes, 4)`, in pixels or as fractions of the image
    classes: Any  # the class of each among `names`, int64 `(boxes,)`
    names: tuple[str, ...]  # the classes in index order
    places: Callable[[int], str]  # describes the place of a box
    items: Mapping[str, Any]  # further features of boxes, an array each
    notes: tuple[Note, ...] = ()  # findings
    parts: Parts | None = None  # the split of each image, if the annotations give it
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the path of a further file of each image, by feature
    outlines: tuple[Ints, Outlines] | None = None  # the number of each box's outline, int64 `(boxes,)`, if these are read, and the outlines
    own: Mapping[str, Packed | Ragged] = field(default_factory=dict)
    """Columns of the images: content in place of a file, or points, by feature."""
    points: PointNames | None = None  # the names of the keypoints, if these are read
    missing: tuple[Missing, ...] = ()  # images without files, and annotations without images
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # further columns of the images, for `where` and `join`

    def only(self, kept: Ints, *notes: Note) -> Found:
        """Keeps some boxes, and adds notes."""
        places, numbers = self.places, kept.tolist()
        items = {name: values[kept] for name, values in self.items.items()}
        own: dict[str, Any] = {name: getattr(self, name)[kept] for name in ("records", "boxes", "classes")}
        outlines = self.outlines and (self.outlines[0][kept], self.outlines[1])
        return replace(self, **own, items=items, outlines=outlines, places=lambda i: places(numbers[i]), notes=(*self.notes, *notes))

    def lengths(self) -> Ints:
        """Counts the boxes of each image, int64 `(images,)`."""
        return np.bincount(self.records, minlength=len(self.keys)).astype(np.int64)

    def columns(self) -> dict[str, Ragged | Packed]:
        """Returns the columns of boxes and their features."""
        lengths = self.lengths()
        items = {"boxes": self.boxes.astype(np.float32), "labels": self.classes.astype(np.int64), **self.items}
        return {**{name: Ragged(values, lengths) for name, values in items.items()}, **self.own}


class BoxedSource(KeepsBoxes, JoiningSource):
    """Images with any number of boxes on each, every box of one class."""

    if TYPE_CHECKING:
        masks: Literal["instances", "classes"] | None  # declared by each source

    items: ClassVar[tuple[str, ...]] = ()
    """A further number of a box: 1 for one that is `marked`."""
    form: ClassVar[BoxFormat] = "xyxy"
    """The format of the columns."""
    attributes: ClassVar[tuple[str, ...]] = ("path", "height", "width")

    classes: KnownClasses | None = None
    """Class names in index order, in a list or in a file with one a line (`{file: classes.txt}`), or their number; boxes of other classes
    are left out. By default all classes of the annotations."""
    map: Annotated[dict[ClassName, ClassName], Field(min_length=1)] | None = None
    """The class meant by a stored one, such as `{pug: dog, chow: dog}`; others stay. Applied before `classes`."""
    ignore: tuple[ClassName, ...] = ()
    """Classes, after `map`, whose boxes are left out."""
    empty: Literal["allow", "refuse", "drop"] | None = None  # type: ignore[assignment]  # boxes in arrays have no `drop`
    """What to do with images without boxes: keep them (`allow`, the default), raise an error (`refuse`), or leave them out (`drop`)."""

    @model_validator(mode="after")
    def _chosen_classes(self) -> BoxedSource:
        self._about().check(self.classes)
        return self

    def _about(self) -> Classes:
        return Classes(self.map or {}, self.ignore)

    def infer(self) -> ElementType:
        """Infers an encoded image, its boxes, and their features."""
        return self.with_joined(self._type(None))

    def _type(self, found: Found | None) -> ElementType:
        """Infers the type of records, from the arguments alone or with what was found."""
        classes = len(self.classes) if isinstance(self.classes, tuple) else self.classes
        most = 0
        if found is not None:
            classes, most = len(found.names) or None, max(1, int(found.lengths().max(initial=0)))
        rules = replace(self.rules(self.form), empty="refuse" if self.empty == "refuse" else "allow")
        features = {
            "image": FeatureType("image", "string", ()),
            "boxes": boxes_type("image", rules, most=most),
            "labels": item_type("item_label", "boxes", "int64", classes=classes).with_(most=most),
        }
        features |= {name: item_type("item_tensor", "boxes", "float32").with_(most=most) for name in self.items}
        return ElementType(tuple(features.items()))

    def _with_mask(self, type_: ElementType, classes: int | None, ignore: int) -> ElementType:
        """Adds a mask of a number of `classes`, or one that numbers the boxes, and their numbers; `ignore` marks its open pixels."""
        if self.masks is None:
            return type_
        mask = FeatureType("mask" if self.masks == "classes" else "instance_mask", "string", (), of="image", ignore=ignore)
        return with_numbers(type_.replace(mask=mask.with_(classes=classes) if self.masks == "classes" else mask.with_(instances="boxes")))

    has_folders = always(False)  # classes come from the annotations

    def find(self, base: Path, progress: Callable[[int], None] | None) -> Found:
        """Reads the annotations; `PG401` for a missing path, `PG402` without images, `PG475` for invalid annotations."""
        raise NotImplementedError

    def found(
        self,
        root: str,
        keys: Sequence[str],
        items: Sequence[Item],
        sides: Mapping[str, tuple[float, float] | None],
        wrong: builtins.list[str],
        total: int = 0,
        *,
        field: str = "path",
        names: Sequence[str] | None = None,
        place: Callable[[Any], str] = str,
        outlines: Outlines | None = None,
        points: PointNames | None = None,
        **more: Any,
    ) -> Found:
        """Makes columns of parsed boxes, in any order of their images.

        `sides` are width and height in pixels by the annotations of each image that has some; `wrong` are faults of the annotations, which
        are a `PG475` error together with those of keypoints, for the argument `field` and a `total` of files, if each annotates one image.
        `names` are the classes in index order, by default in text order; `place` describes the place of a box. For others see `Found`.
        """
        number = {key: i for i, key in enumerate(keys)}
        unordered: Ints = np.array([number[item.image] for item in items], np.int64)
        order = np.argsort(unordered, kind="stable")
        each = [items[i] for i in order.tolist()]
        columns: dict[str, Any] = {name: np.array([bool(item.marked) for item in each], np.float32) for name in self.items}
        if self.masks == "instances" and outlines is None:
            columns[NUMBERS] = np.array([item.number for item in each], np.float32)
        if points is not None:
            columns[POINTS], odd = _keypoints(each, points.names, place)
            wrong = [*wrong, *odd]
        if wrong:
            raise damaged(wrong, field, total)
        names = sorted({item.name for item in each}) if names is None else names
        index = {name: i for i, name in enumerate(names)}
        return Found(
            root,
            keys,
            np.array([sides.get(key) or (np.inf, np.inf) for key in keys], np.float64).reshape(-1, 2),
            unordered[order],
            np.array([item.values for item in each], np.float64).reshape(-1, 4),
            np.array([index[item.name] for item in each], np.int64),
            tuple(names),
            lambda i: place(each[i].where),
            columns,
            outlines=None if outlines is None else (np.array([item.outline for item in each], np.int64), outlines),
            **{"points": points, **more},
        )

    def finished(self, found: Found) -> Found:
        """Adds what depends on the remaining boxes, such as their masks, and notes."""
        return found

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List the images, with boxes in columns; see `Source.list` and `find`."""
        found = self.find(base, progress)
        found = replace(found, notes=(*found.notes, *_other_sizes(found)))
        if found.names or not found.own:  # else points alone
            found = _chosen(found, self._about(), self.classes)
        found = self.finished(_on_image(found, relative=self.form.startswith("rel_")))
        root, columns = found.root, found.columns()
        location = Location.below(root, found.keys, [_size_of(f"{root}/{key}") for key in found.keys])
        beside = {name: _files(root, paths) for name, paths in found.beside.items()}
        classes = {"labels": found.names}
        if found.points is not None and POINT_LABELS in found.own:
            classes[POINT_LABELS] = found.points.names
        type_ = self._type(found)
        listing = Listing(root, location, found.notes, found.parts, columns=columns, classes=classes, label="labels")  # type: ignore[arg-type]
        sides = np.where(np.isfinite(found.sides), found.sides, np.nan)[:, ::-1]
        listing = replace(listing, type=type_, in_table=True, sides=sides, beside=beside, missing=found.missing)
        listing = self.selected(listing, base, found.more)
        boxes: Any = listing.columns["boxes"]
        lengths: Ints = boxes.lengths
        if self.empty == "refuse" and not lengths.all():
            first = listing.location.paths[int(np.argmin(lengths))]
            message = f"{first} has no box, like {int((lengths == 0).sum())} of {len(lengths):,} images"
            raise OpError("PG251", message, field="empty", help="leave such images out with `empty: drop`")
        if self.empty != "drop" or lengths.all():
            return listing
        if not lengths.any():
            help_ = "keep images without boxes with `empty: allow`"
            raise OpError("PG402", f"no image below {root!r} has a box", field="empty", help=help_)
        return listing.take(np.flatnonzero(lengths))


def _keypoints(items: Sequence[Item], names: tuple[str, ...], place: Callable[[Any], str]) -> tuple[Any, list[str]]:
    """Puts keypoints in the order of all names, float32 `(boxes, names, 3)`, absent ones as zeros; and returns what is wrong with any."""
    values: Any = np.zeros((len(items), len(names), 3))
    alike: dict[tuple[str, ...], list[int]] = {}
    for i, item in enumerate(items):
        if item.points is not None:
            alike.setdefault(item.points[0], []).append(i)
    for own, which in alike.items():
        given = np.array([items[i].points[1] for i in which])  # type: ignore[index]
        values[np.ix_(which, [names.index(name) for name in own])] = given.reshape(len(which), len(own), 3)
    seen = values[..., 2]
    odd = ~(np.isin(seen, (0, 1, 2)) & np.isfinite(values).all(-1))
    wrong = []
    for i in np.flatnonzero(odd.any(1)).tolist():
        shown = ", ".join(f"{number:g}" for number in values[i][odd[i]][0])
        said = f"{place(items[i].where)} has the keypoint [{shown}]"
        wrong.append(f"{said}; use x, y and the visibility: 0 for absent, 1 for hidden, 2 for visible")
    return np.where(seen[..., None] > 0, values, 0).astype(np.float32), wrong


def _on_image(found: Found, *, relative: bool) -> Found:
    """Clips boxes to their images, and drops those without an area, with `PG477` notes."""
    sides = np.ones_like(found.sides) if relative else found.sides
    limits = np.tile(sides, 2)[found.records]
    clipped = np.clip(found.boxes, 0, limits)
    flat = ~_has_area(found.boxes)
    outside = ~flat & ~_has_area(clipped)
    over = ~flat & ~outside & (np.abs(clipped - found.boxes) > _ROUNDED[relative]).any(1)
    notes = []
    for wrong, what, what_of_several, done in (
        (flat, "has no area", "have no area", "left out"),
        (outside, "lies outside of its image", "lie outside of their images", "left out"),
        (over, "reaches over the edge of its image", "", "clipped to it"),
    ):
        which = np.flatnonzero(wrong)
        if len(which):
            number = int(which[0])
            corners = ", ".join(f"{x:g}" for x in found.boxes[number].tolist())
            width, height = sides[found.records[number]].tolist()
            image = f"; the image has {width:g}×{height:g} pixels" if np.isfinite(width) and not relative else ""
            first = f"{found.places(number)} {what}: its edges are {corners}{image}"
            message = f"{first}; {count(len(which), 'such box', 'such boxes')} of {len(flat):,} {is_are(len(which))} {done}"
            gone = (LeftOut(len(which), f"box that {what}", f"boxes that {what_of_several}"),) if done == "left out" else ()
            notes.append(Note("PG477", message, "correct the annotations if this is wrong", left_out=gone))
    return replace(found, boxes=clipped).only(np.flatnonzero(~(flat | outside)), *notes)


def _has_area(boxes: Any) -> Any:
    return (boxes[:, 2:] > boxes[:, :2]).all(1)


def _chosen(found: Found, about: Classes, listed: int | tuple[str, ...] | None) -> Found:
    """Renames classes, drops boxes of other classes than those `listed` by name or number, and numbers the remaining ones from 0; `PG478`
    without classes, or with another number of them."""
    lacking = ("which no row has", "which the annotations lack")
    given = about.notes(found.names, None, "") if about else ()
    notes = [Note(n.code, n.message.replace(*lacking), n.help, (n.field or "").lstrip(".")) for n in given]
    meant = about.renamed(found.names, None)
    stays = set(about.without_ignored(meant, None))
    names = listed if isinstance(listed, tuple) else tuple(dict.fromkeys(meant[i] for i in sorted(stays)))
    index = {name: i for i, name in enumerate(names)}
    table: Ints = np.array([index.get(name, -1) if i in stays else -1 for i, name in enumerate(meant)] or [-1], np.int64)
    if not names or (isinstance(listed, tuple) and not index.keys() & set(meant)):
        near = closest(names[0], list(meant)) if names else None
        help_ = f"is {near!r} meant?" if near else f"the annotations have {quoted(meant)}" if meant else "annotate images first"
        raise OpError("PG478", "the annotations have none of the requested classes", field="classes" if listed else None, help=help_)
    if isinstance(listed, int) and listed != len(names):
        message = f"the annotations have {count(len(names), 'class', 'classes')}, but `classes` says {listed}"
        raise OpError("PG478", message, field="classes", help=f"they are {quoted(names)}")
    indices = table[found.classes]
    left = Counter(np.asarray(found.classes)[indices < 0].tolist())
    unlisted = {meant[i]: n for i, n in left.items() if i in stays}
    if unlisted:
        number, said = sum(unlisted.values()), "that `classes` does not list"
        message = f"ignored: {count(number, 'box', 'boxes')} of classes {said}: {quoted(sorted(unlisted))}"
        gone = LeftOut(number, f"box of a class {said}", f"boxes of classes {said}")
        notes.append(Note("PG411", message, field="classes", left_out=(gone,)))
    missing = [name for name in names if name not in meant] if isinstance(listed, tuple) else []
    if missing:
        near = closest(missing[0], list(meant))
        help_ = f"is {near!r} meant?" if near else f"they have {quoted(meant)}"
        notes.append(Note("PG403", f"`classes` lists {quoted(missing)}, which the annotations lack", help_, "classes"))
    return replace(found, classes=indices, names=names).only(np.flatnonzero(indices >= 0), *notes)


def _files(root: str, paths: Sequence[str]) -> Location:
    keys = [os.path.relpath(path, root).replace(os.sep, "/") for path in paths]
    return Location(Strings.hold(keys), Strings.hold(paths), as_sizes([_size_of(path) for path in paths]))


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 1  # an error when the file is read


def _other_sizes(found: Found) -> list[Note]:
    """Notes, with `PG479`, images whose size differs from the annotations, from a sample."""
    wrong, looked = list[Any](), 0
    for i in range(0, len(found.keys), max(1, len(found.keys) // _COMPARED)):
        said = tuple(found.sides[i].tolist())
        sides = sides_of(f"{found.root}/{found.keys[i]}") if isfinite(said[0]) else None
        looked += sides is not None
        if sides is not None and said not in sides:
            wrong.append((found.keys[i], sides.upright, said))
    if not wrong:
        return []
    key, sides_, said = wrong[0]
    told = f"{found.root}/{key} has {sides_[0]}×{sides_[1]} pixels, but its annotations say {said[0]:g}×{said[1]:g}"
    help_ = "boxes would be misplaced; annotate these images, or use the annotated ones"
    return [Note("PG479", f"{told}; {len(wrong)} of {count(looked, 'checked image')} differ", help_)]


def lost_images(
    names: Sequence[str], example: Callable[[int], str], field: str, records: Sequence[int] | None = None, *more: str, code: str = "PG476"
) -> list[Missing]:
    """Collects annotations of unknown images: their names in `errors.exclude`, and a description of each; or, with their places in the
    listing as `records`, images without files, which stay records. `more` is further help."""
    if not names:
        return []
    unknown = records is None
    what, help_ = ("annotated image", "add the images, or remove their annotations") if unknown else ("image", "add the images")
    own = None if records is None else np.array(records, np.int64)
    return [Missing(code, Strings.hold(names), example, own, (what, f"{what}s"), "a file", (help_, *more), field)]


def files_without_image(files: Sequence[str], root: str, what: str) -> list[Missing]:
    """Collects annotation files without an image, by path relative to the images' folder."""
    names = [os.path.relpath(file, root).replace(os.sep, "/") for file in files]
    return lost_images(names, lambda i: f"the {what} {files[i]!r} has no image", "path")


class OutlinedSource(BoxedSource):
    """Images with boxes, each of which may have an outline."""

    masks: Literal["instances", "classes"] | None = None
    """Adds a `mask` to each image, drawn from the outlines (`segmentation`) of the kept boxes: polygons, or COCO's run-length encoding.
    `instances`: the number of the box whose outline covers a pixel. `classes`: 0 is background, 1 the first class; pixels of crowds only
    are 255, the mask's `ignore`. Smaller objects cover larger ones, and all cover crowds. Masks are drawn in Python each time an image is
    read, as by pycocotools."""

    def _type(self, found: Found | None) -> ElementType:
        type_ = super()._type(found)
        classes = type_["labels"].classes
        return self._with_mask(type_, classes and classes + 1, OPEN if self.masks == "classes" else 0)

    def decoders(self) -> Mapping[str, Transform]:
        return {"mask": OutlineDecoder(format="coco")} if self.masks else {}

    def finished(self, found: Found) -> Found:
        """Keeps the boxes that a mask can distinguish, and packs the outlines of each image; see `BoxedSource.finished`."""
        found = super().finished(found)
        if self.masks == "classes" and len(found.names) > MOST_INSTANCES:
            message = f"a mask can hold {MOST_INSTANCES} classes, but there are {len(found.names):,}"
            raise OpError("PG478", message, field="masks", help="choose fewer by `classes`, or merge some by `map`")
        if self.masks == "instances":
            found = _told_apart(found)
        if found.outlines is None:
            return found
        own, outlines = found.outlines
        bare, notes = np.flatnonzero(own == NO_OUTLINE), found.notes
        if len(own) and len(bare) == len(own):
            message = f"none of {count(len(own), 'box', 'boxes')} has an outline: the annotations have no outlines"
            raise OpError("PG475", message, field="masks", help="remove `masks`, or use a file with outlines")
        if len(bare):
            first = f"{found.places(int(bare[0]))} has no outline, so its mask does not show it"
            message = f"{first}; {len(bare):,} of {len(own):,} boxes lack an outline"
            notes = (*notes, Note("PG477", message, "annotate their outlines, or remove their images"))
        numbers: Ints = within(found.lengths()) + 1
        crowds = found.items["crowd"] > 0 if "crowd" in found.items else np.zeros(len(own), bool)
        values = numbers if self.masks == "instances" else np.where(crowds, OPEN, found.classes + 1)
        objects = list(zip(own.tolist(), values.tolist(), crowds.tolist(), strict=True))
        ends = np.cumsum(found.lengths()).tolist()
        packed = [
            outlines.packed(int(height), int(width), objects[start:end])
            for (width, height), start, end in zip(found.sides.tolist(), [0, *ends], ends, strict=False)
        ]
        items = dict(found.items) | ({NUMBERS: numbers.astype(np.float32)} if self.masks == "instances" else {})
        return replace(found, items=items, own={**found.own, "mask": Packed.hold(packed)}, notes=notes)


def _told_apart(found: Found) -> Found:
    """Keeps, of each image, the largest boxes that a mask can distinguish."""
    edges, lengths = found.boxes, found.lengths()
    areas = (edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])
    order = np.lexsort((-areas, found.records))
    rank: Ints = np.empty(len(order), np.int64)
    rank[order] = within(lengths)
    left = int((rank >= MOST_INSTANCES).sum())
    if not left:
        return found
    most = int(lengths.argmax())
    first = f"{found.keys[most]} has {int(lengths[most])} boxes; a mask can hold {MOST_INSTANCES}"
    many = count(int((lengths > MOST_INSTANCES).sum()), "image")
    message = f"{first}; the smallest are left out, {count(left, 'box', 'boxes')} of {many}"
    return found.only(np.flatnonzero(rank < MOST_INSTANCES), Note("PG477", message, "remove `masks` to keep all boxes", "masks"))


class PointedSource(NamesPoints, BoxedSource):
    """Images with boxes, each of which may have a set of named keypoints."""

    keypoints: Literal["instances"] | None = None
    """`instances`: a set of named `keypoints` for each box, with `(x, y, visibility)` for each name. The names are those of the
    annotations, or of `names`. A mirror swaps names that differ by left and right, such as `left_eye` and `right_eye`, unless
    `mirror_pairs` names others."""

    @model_validator(mode="after")
    def _named_points(self) -> PointedSource:
        if self.keypoints is None:
            given = next((name for name in NamesPoints.model_fields if getattr(self, name) is not None), None)
            if given is not None:
                help_ = write("keypoints: instances", "arguments", "{} reads them")
                raise PartError(f"`{given}` is for keypoints, which only `keypoints` reads", given, help=help_)
        if self.names is not None:
            check_names(self.names, self.mirror_pairs or (), "")
        return self

    def _type(self, found: Found | None) -> ElementType:
        type_ = super()._type(found)
        if self.keypoints is None:
            return type_
        rules = self._point_rules(PointNames(()) if found is None or found.points is None else found.points)
        if rules.each or rules.names:
            return type_.replace(**{POINTS: keypoints_type("image", rules, home="boxes")})
        most = 0 if found is None else most_items(found.own[POINTS])  # type: ignore[arg-type]  # points are ragged
        classes = None if found is None or found.points is None else len(found.points.names) or None
        labels = item_type("item_label", POINTS, "int64", classes=classes).with_(most=most)
        return type_.replace(**{POINTS: keypoints_type("image", rules, most=most), POINT_LABELS: labels})

    def _point_rules(self, stored: PointNames) -> PointRules:
        each = self.keypoints == "instances"
        names = self.names or (stored.names if each else ())
        pairs = self.mirror_pairs
        if pairs is None:
            pairs = pairs_by_name(names) if stored.pairs is None else stored.pairs
            pairs = tuple(pair for pair in pairs if {*pair} <= {*names})
        return PointRules(names, swapped_places(names, pairs), self.outside or "remove", each, relative=self.form.startswith("rel_"))

    def finished(self, found: Found) -> Found:
        """Orders the keypoints by `names`."""
        found = super().finished(found)
        if found.points is None:
            return found
        column = found.own.get(POINTS)
        values: Any = found.items[POINTS] if column is None else column.values
        if column is not None and self.names is None:
            if len(values):
                return found
            values = values[None]
        if not values[..., 2].any():
            what = count(len(values), "box", "boxes") if column is None else count(len(found.keys), "image")
            message = f"none of {what} has keypoints"
            raise OpError("PG475", message, field="keypoints", help="remove `keypoints`, or use annotations with keypoints")
        stored = found.points.names
        try:
            check_names(self.names or stored, self.mirror_pairs or (), "")
        except PartError as error:
            raise OpError("PG256", str(error), field="mirror_pairs", help=error.help) from None
        notes = list(found.notes)
        if self.names is not None:
            at = [stored.index(name) if name in stored else len(stored) for name in self.names]
            lacking = [name for name in self.names if name not in stored]
            if lacking:
                near = closest(lacking[0], list(stored))
                message, help_ = f"`names` lists {quoted(lacking)}, which the annotations lack", f"they have {quoted(stored)}"
                notes.append(Note("PG403", message, f"is {near!r} meant?" if near else help_, "names"))
            others = [i for i, name in enumerate(stored) if name not in self.names]
            number = int((values[:, others, 2] > 0).sum())
            if number:
                gone = LeftOut(number, "keypoint of a name that `names` does not list", "keypoints of names that `names` does not list")
                message = f"ignored: {gone}: {quoted([stored[i] for i in others])}"
                notes.append(Note("PG411", message, field="names", left_out=(gone,)))
            values = np.concatenate([values, np.zeros_like(values[:, :1])], 1)[:, at]
        if column is None:
            return replace(found, items={**found.items, POINTS: values}, notes=tuple(notes))
        lengths: Ints = np.full(len(values), values.shape[1], np.int64)
        return replace(found, own={**found.own, POINTS: Ragged(values.reshape(-1, 3), lengths)}, notes=tuple(notes))


class ListedSource(SplitSource, BoxedSource):
    """Images with boxes, of which `split` may name some."""

    def split_of(self, root: str, keys: Sequence[str], named: Named, missing: builtins.list[Missing]) -> dict[str, str]:
        """Returns the split of each image below `root`, by path; appends listed images that are missing. `PG448` for one of several."""
        if self.split is None:
            return dict.fromkeys(keys, "")
        found: dict[str, str] = {}
        for split, name, argument in self.each_split():
            own, gone = named(name, argument)
            said = [f"the list of the split `{name}` names {image!r}, which {root!r} lacks" for image in gone]
            missing += lost_images(gone, said.__getitem__, argument, code="PG578")
            for key in own:
                if found.setdefault(key, split) != split:
                    message = f"{key!r} is in both `{found[key]}` and `{split}`"
                    raise OpError("PG448", message, field=argument, help="use splits that share no image")
        return dict(sorted(found.items()))


def without_masks(left: int, total: int, reason: str) -> list[Note]:
    """Notes the images that `masks` leaves out, if any."""
    message = f"{count(left, 'image')} of {total:,} left out: {reason}"
    gone = (LeftOut(left, "image without a mask", "images without a mask"),)
    return [Note("PG476", message, "remove `masks` to keep all images", "masks", "info", gone)] if left else []
