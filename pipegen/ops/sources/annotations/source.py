"""`BoxedSource`, the base of sources of images with boxes: `Found`, their annotations, becomes columns of boxes and of classes."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import field, replace
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.arguments.item_rules import BoxFormat
from pipegen.ops.fields.classes import Classes, ClassName, KnownClasses
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.notes import LeftOut, Note, count, is_are, quoted
from pipegen.ops.fields.strings import Strings, as_sizes
from pipegen.ops.kinds.boxes import boxes_type
from pipegen.ops.kinds.item_number import number_name, with_numbers
from pipegen.ops.kinds.label import item_label_type
from pipegen.ops.kinds.tensor import item_tensor_type
from pipegen.ops.sources.annotations.sizes import sides_of
from pipegen.ops.sources.features.any_kind import KeepsBoxes
from pipegen.ops.sources.listing.base import Listing, Location, Missing, Parts, SplitSource, always
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.fields.columns import Packed
    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.annotations.outlines import Outlines

    Named = Callable[[str, str], tuple[Sequence[str], Sequence[str]]]
    """From the name of a split, and the argument that names it, to its images, and to missing ones that it lists."""

NUMBERS = number_name("boxes")  # the feature with the number of each box in a mask
POINT_LABELS = "point_labels"  # the feature with the label of each point of an image
_COMPARED = 32  # images whose size is compared with the annotations
_ROUNDED = {False: 1.0, True: 0.005}
"""Distance that a box may exceed its image by rounding without a finding: in pixels, and as a fraction of the image."""


@dataclass(frozen=True)
class PointNames:
    """Names of keypoints in the order of their columns, and those that a mirror swaps; `None` if the annotations do not say."""

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Found:
    """Images of a source and their boxes, as stored."""

    keys: Sequence[str]  # the path of each image, relative to the source's folder
    sides: Any  # width and height of each in pixels by the annotations, float64 `(images, 2)`; infinite if unknown
    records: Any  # the image of each box, rising, int64 `(boxes,)`
    boxes: Any  # left, top, right and bottom edge of each, float64 `(boxes, 4)`, in pixels or as fractions of the image
    classes: Any  # the class of each among `names`, int64 `(boxes,)`
    names: tuple[str, ...]  # the classes in index order
    places: Callable[[int], str]  # describes the place of a box
    items: Mapping[str, Any] = field(default_factory=dict)  # further features of boxes, an array each
    notes: tuple[Note, ...] = ()  # findings
    relative: bool = False  # whether edges are fractions of the image, from 0 to 1
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the path of a further file of each image, by feature
    outlines: tuple[Ints, Outlines] | None = None  # the number of each box's outline, int64 `(boxes,)`, if these are read, and the outlines
    own: Mapping[str, Packed | Ragged] = field(default_factory=dict)
    """Columns of the images: content in place of a file, or points, by feature."""
    points: PointNames | None = None  # the names of the keypoints, if these are read
    missing: tuple[Missing, ...] = ()  # images without files, and annotations without images
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # further columns of the images, for `where` and `join`

    def only(self, kept: Ints) -> Found:
        """Keeps some boxes."""
        places, numbers = self.places, kept.tolist()
        items = {name: values[kept] for name, values in self.items.items()}
        own: dict[str, Any] = {name: getattr(self, name)[kept] for name in ("records", "boxes", "classes")}
        outlines = self.outlines and (self.outlines[0][kept], self.outlines[1])
        return replace(self, **own, items=items, outlines=outlines, places=lambda i: places(numbers[i]))

    def lengths(self) -> Ints:
        """Counts the boxes of each image, int64 `(images,)`."""
        return np.bincount(self.records, minlength=len(self.keys)).astype(np.int64)

    def columns(self) -> dict[str, Ragged | Packed]:
        """Returns the columns of boxes and their features."""
        lengths = self.lengths()
        items = {"boxes": self.boxes.astype(np.float32), "labels": self.classes.astype(np.int64), **self.items}
        return {**{name: Ragged(values, lengths) for name, values in items.items()}, **self.own}


class BoxedSource(KeepsBoxes, SelectingSource):
    """Images with any number of boxes on each, every box of one class."""

    items: ClassVar[tuple[str, ...]] = ()
    """Further numbers of a box."""
    form: ClassVar[BoxFormat] = "xyxy"
    """The format of the columns."""
    attributes: ClassVar[tuple[str, ...]] = ("path", "height", "width")

    classes: KnownClasses | None = None
    """Class names in index order, or their number; boxes of other classes are left out. By default all classes of the annotations."""
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
        return self._type(None)

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
            "labels": item_label_type("boxes", classes).with_(most=most),
        }
        features |= {name: item_tensor_type("boxes").with_(most=most) for name in self.items}
        return ElementType(tuple(features.items()))

    def _with_instances(self, type_: ElementType, ignore: int = 0) -> ElementType:
        """Adds a mask that numbers the boxes, and their numbers."""
        return with_numbers(type_.replace(mask=FeatureType("instance_mask", "string", (), of="image", ignore=ignore, instances="boxes")))

    has_folders = always(False)  # classes come from the annotations

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        """Reads the annotations; returns the folder of the keys, the annotations, and the split of each image if they give it. `PG401` for
        a missing path, `PG402` without images, `PG475` for invalid annotations."""
        raise NotImplementedError

    def finished(self, found: Found) -> tuple[Found, builtins.list[Note]]:
        """Adds what depends on the remaining boxes, such as their masks, and notes."""
        return found, []

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List the images, with boxes in columns; see `Source.list` and `find`."""
        root, found, parts = self.find(base, progress)
        notes = [*found.notes, *_other_sizes(root, found)]
        of_classes: builtins.list[Note] = []
        if found.names or not found.own:  # else points alone
            found, of_classes = _chosen(found, self._about(), self.classes)
        found, of_boxes = _on_image(found)
        found, others = self.finished(found)
        columns: dict[str, Any] = found.columns()
        location = Location.below(root, found.keys, [_size_of(f"{root}/{key}") for key in found.keys])
        beside = {name: _files(root, paths) for name, paths in found.beside.items()}
        classes = {"labels": found.names}
        if found.points is not None and POINT_LABELS in found.own:
            classes[POINT_LABELS] = found.points.names
        type_ = self._type(found)
        listing = Listing(
            root, location, (*notes, *of_classes, *of_boxes, *others), parts, columns=columns, classes=classes, label="labels"
        )
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


def _on_image(found: Found) -> tuple[Found, list[Note]]:
    """Clips boxes to their images, and drops those without an area, with `PG477` notes."""
    sides = np.ones_like(found.sides) if found.relative else found.sides
    limits = np.tile(sides, 2)[found.records]
    clipped = np.clip(found.boxes, 0, limits)
    flat = ~_has_area(found.boxes)
    outside = ~flat & ~_has_area(clipped)
    over = ~flat & ~outside & (np.abs(clipped - found.boxes) > _ROUNDED[found.relative]).any(1)
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
            image = f"; the image has {width:g}×{height:g} pixels" if np.isfinite(width) and not found.relative else ""
            first = f"{found.places(number)} {what}: its edges are {corners}{image}"
            message = f"{first}; {count(len(which), 'such box', 'such boxes')} of {len(flat):,} {is_are(len(which))} {done}"
            gone = (LeftOut(len(which), f"box that {what}", f"boxes that {what_of_several}"),) if done == "left out" else ()
            notes.append(Note("PG477", message, "correct the annotations if this is wrong", left_out=gone))
    return replace(found, boxes=clipped).only(np.flatnonzero(~(flat | outside))), notes


def _has_area(boxes: Any) -> Any:
    return (boxes[:, 2:] > boxes[:, :2]).all(1)


def _chosen(found: Found, about: Classes, listed: int | tuple[str, ...] | None) -> tuple[Found, list[Note]]:
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
    return replace(found, classes=indices, names=names).only(np.flatnonzero(indices >= 0)), notes


def _files(root: str, paths: Sequence[str]) -> Location:
    keys = [os.path.relpath(path, root).replace(os.sep, "/") for path in paths]
    return Location(Strings.hold(keys), Strings.hold(paths), as_sizes([_size_of(path) for path in paths]))


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 1  # an error when the file is read


def _other_sizes(root: str, found: Found) -> list[Note]:
    """Notes, with `PG479`, images whose size differs from the annotations, from a sample."""
    wrong, looked = list[Any](), 0
    for i in range(0, len(found.keys), max(1, len(found.keys) // _COMPARED)):
        said = tuple(found.sides[i].tolist())
        sides = sides_of(f"{root}/{found.keys[i]}") if isfinite(said[0]) else None
        looked += sides is not None
        if sides is not None and said not in sides:
            wrong.append((found.keys[i], sides.upright, said))
    if not wrong:
        return []
    key, sides_, said = wrong[0]
    told = f"{root}/{key} has {sides_[0]}×{sides_[1]} pixels, but its annotations say {said[0]:g}×{said[1]:g}"
    help_ = "boxes would be misplaced; annotate these images, or use the annotated ones"
    return [Note("PG479", f"{told}; {len(wrong)} of {count(looked, 'checked image')} differ", help_)]


def without_image(
    gone: Sequence[int], keys: Sequence[str], example: Callable[[int], str], field: str, more: str | None = None
) -> list[Missing]:
    """Collects the images without files, which stay records: their indices in `keys`, and a description of each."""
    if not gone:
        return []
    help_ = ("add the images", *([more] if more else ()))
    named = Strings.hold([keys[number] for number in gone])
    return [Missing("PG476", named, example, np.array(gone, np.int64), ("image", "images"), "a file", help_, field)]


def without_record(names: Sequence[str], example: Callable[[int], str], field: str, code: str = "PG476") -> list[Missing]:
    """Collects annotations of unknown images: their names in `errors.exclude`, and a description of each."""
    help_ = ("add the images, or remove their annotations",)
    what = ("annotated image", "annotated images")
    return [Missing(code, Strings.hold(names), example, None, what, "a file", help_, field)] if names else []


def without_own_image(files: Sequence[str], root: str, what: str, field: str = "path") -> list[Missing]:
    """Collects annotation files without an image, by path relative to the images' folder."""
    names = [os.path.relpath(file, root).replace(os.sep, "/") for file in files]
    return without_record(names, lambda i: f"the {what} {files[i]!r} has no image", field)


def without_listed(names: Sequence[str], split: str, root: str, field: str) -> list[Missing]:
    """Collects listed images that are missing."""
    return without_record(names, lambda i: f"the list of the split `{split}` names {names[i]!r}, which {root!r} lacks", field, "PG578")


def known_sides(sides: Sequence[tuple[float, float] | None]) -> Any:
    """Converts widths and heights of images to float64 `(images, 2)`, infinite if unknown."""
    return np.array([one or (np.inf, np.inf) for one in sides], np.float64).reshape(-1, 2)


class Shape(NamedTuple):
    """A box that was read by itself, or a point."""

    record: int  # its image
    values: tuple[float, ...]  # the edges of the box; x and y of a point, with the centre of the first pixel at 0
    name: str  # its class, or the name of the point
    where: str  # its place, for messages
    number: int = 0  # its number in a mask of the image
    group: int | str | None = None  # its group, if points are joined with boxes


def gathered(
    keys: Sequence[str],
    sides: Sequence[tuple[float, float] | None],
    boxes: Sequence[Shape],
    names: tuple[str, ...],
    items: Mapping[str, Any],
    notes: Sequence[Note],
    missing: Sequence[Missing] = (),
    *,
    relative: bool = False,
    numbered: bool = False,
) -> Found:
    """Builds columns from boxes, ordered by image; with their numbers in masks of the images if `numbered`."""
    number = {name: i for i, name in enumerate(names)}
    records = np.array([box.record for box in boxes], np.int64)
    edges = np.array([box.values for box in boxes], np.float64).reshape(-1, 4)
    classes, places = np.array([number[box.name] for box in boxes], np.int64), [box.where for box in boxes]
    items = {**items, NUMBERS: np.array([box.number for box in boxes], np.float32)} if numbered else items
    about = names, places.__getitem__, items, tuple(notes), relative
    return Found(keys, known_sides(sides), records, edges, classes, *about, missing=tuple(missing))


class ListedSource(SplitSource, BoxedSource):
    """Images with boxes, of which `split` may name some."""

    def split_of(self, root: str, keys: Sequence[str], named: Named, missing: builtins.list[Missing]) -> dict[str, str]:
        """Returns the split of each image below `root`, by path; appends listed images that are missing. `PG448` for one of several."""
        if self.split is None:
            return dict.fromkeys(keys, "")
        found: dict[str, str] = {}
        for split, name, argument in self.each_split():
            own, gone = named(name, argument)
            missing += without_listed(gone, name, root, argument)
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
