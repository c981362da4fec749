"""`BoxedSource`, the base of sources of images with boxes: their classes and examples."""

from __future__ import annotations

import os
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.ops.arguments.item_rules import BoxFormat
from pipegen.ops.kinds.boxes import boxes_type
from pipegen.ops.kinds.label import item_label_type
from pipegen.ops.kinds.numbering import with_numbers
from pipegen.ops.kinds.tensor import item_tensor_type
from pipegen.ops.sources.annotations.found import Found, chosen, on_image
from pipegen.ops.sources.annotations.sizes import sides_of
from pipegen.ops.sources.features.any_kind import KeepsBoxes
from pipegen.ops.sources.features.class_names import Classes, ClassName, KnownClasses
from pipegen.ops.sources.listing.base import Files, LeftOut, Listing, Note, Parts, Source
from pipegen.ops.sources.listing.missing import Missing
from pipegen.ops.sources.listing.strings import Strings, as_sizes
from pipegen.ops.sources.listing.wording import count
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.strings import Ints

POINT_LABELS = "point_labels"
"""The feature with the label of each point of an image."""
_COMPARED = 32
"""Images whose size is compared with the annotations."""


class BoxedSource(KeepsBoxes, Source):
    """Images with any number of boxes on each, every box of one class."""

    items: ClassVar[tuple[str, ...]] = ()
    """Further numbers of a box."""
    form: ClassVar[BoxFormat] = "xyxy"
    """The format of the columns."""

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

    def has_folders(self) -> bool:
        """Returns False: classes come from the annotations."""
        return False

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        """Reads the annotations; returns the folder of the keys, the annotations, and the split of each image if they give it.

        Raises:
            OpError: `PG401` for a missing path, `PG402` without images, `PG475` for invalid annotations.
        """
        raise NotImplementedError

    def finished(self, found: Found) -> tuple[Found, builtins.list[Note]]:
        """Adds what depends on the remaining boxes, such as their masks, and notes."""
        return found, []

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List the images, with boxes in columns; see `Source.list` and `find`."""
        import numpy as np

        root, found, parts = self.find(base, progress)
        notes = [*found.notes, *_other_sizes(root, found)]
        of_classes: builtins.list[Note] = []
        if found.names or not found.own:  # else points alone
            found, of_classes = chosen(found, self._about(), self.classes)
        found, of_boxes = on_image(found)
        found, others = self.finished(found)
        columns: dict[str, Any] = found.columns()
        if self.empty == "refuse" and not found.lengths().all():
            bare = found.keys[int(np.argmin(found.lengths()))]
            message = f"{root}/{bare} has no box, like {int((found.lengths() == 0).sum())} of {len(found.keys):,} images"
            raise OpError("PG251", message, field="empty", help="leave such images out with `empty: drop`")
        keys = Strings.hold(found.keys)
        beside = {name: _files(root, paths) for name, paths in found.beside.items()}
        images = as_sizes([_size_of(f"{root}/{key}") for key in keys])
        sizes: Ints = sum((files.sizes.astype("int64") for files in beside.values()), start=images)
        known = {"labels": found.names}
        if found.points is not None and POINT_LABELS in found.own:
            known[POINT_LABELS] = found.points.names
        type_ = self._type(found)
        listing = Listing(root, keys, None, found.names, sizes, (*notes, *of_classes, *of_boxes, *others), parts, columns=columns)
        sides = np.where(np.isfinite(found.sides), found.sides, np.nan)[:, ::-1]
        listing = replace(listing, column_classes=known, type=type_, in_table=True, sides=sides, beside=beside, missing=found.missing)
        kept = np.flatnonzero(found.lengths()) if self.empty == "drop" else np.arange(len(keys))
        if not len(kept):
            raise OpError(
                "PG402", f"no image below {root!r} has a box", field="empty", help="keep images without boxes with `empty: allow`"
            )
        return listing if len(kept) == len(keys) else listing.take(kept)


def _files(root: str, paths: Sequence[str]) -> Files:
    keys = [os.path.relpath(path, root).replace(os.sep, "/") for path in paths]
    return Files(Strings.hold(keys), Strings.hold(paths), as_sizes([_size_of(path) for path in paths]))


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 1  # an error when the file is read


def _other_sizes(root: str, found: Found) -> list[Note]:
    """Notes, with `PG479`, images whose size differs from the annotations, from a sample."""
    wrong: list[Any] = []
    looked = 0
    step = max(1, len(found.keys) // _COMPARED)
    for i in range(0, len(found.keys), step):
        said = tuple(found.sides[i].tolist())
        sides = sides_of(f"{root}/{found.keys[i]}") if isfinite(said[0]) else None
        looked += sides is not None
        if sides is not None and said not in sides:
            wrong.append((found.keys[i], sides.upright, said))
    if not wrong:
        return []
    key, sides_, said = wrong[0]
    told = f"{root}/{key} has {sides_[0]}×{sides_[1]} pixels, but its annotations say {said[0]:g}×{said[1]:g}"
    message = f"{told}; {len(wrong)} of {count(looked, 'checked image')} differ"
    help_ = "boxes would be misplaced; annotate these images, or use the annotated ones"
    return [Note("PG479", message, help_)]


def without_image(
    gone: Sequence[int], keys: Sequence[str], example: Callable[[int], str], field: str, more: str | None = None
) -> list[Missing]:
    """Collects the images without files, which stay records: their indices in `keys`, and a description of each."""
    import numpy as np

    if not gone:
        return []
    help_ = ("add the images", *([more] if more else ()))
    named = Strings.hold([keys[number] for number in gone])
    return [Missing("PG476", named, example, np.array(gone, np.int64), ("image", "images"), "a file", help_, field)]


def without_record(names: Sequence[str], example: Callable[[int], str], field: str) -> list[Missing]:
    """Collects annotations of unknown images: their names in `errors.exclude`, and a description of each."""
    help_ = ("add the images, or remove their annotations",)
    what = ("annotated image", "annotated images")
    return [Missing("PG476", Strings.hold(names), example, None, what, "a file", help_, field)] if names else []


def without_own_image(files: Sequence[str], root: str, what: str, field: str = "path") -> list[Missing]:
    """Collects annotation files without an image, by path relative to the images' folder."""
    names = [os.path.relpath(file, root).replace(os.sep, "/") for file in files]
    return without_record(names, lambda i: f"the {what} {files[i]!r} has no image", field)


def without_listed(names: Sequence[str], split: str, root: str, field: str) -> list[Missing]:
    """Collects listed images that are missing."""
    found = without_record(names, lambda i: f"the list of the split `{split}` names {names[i]!r}, which {root!r} lacks", field)
    return [replace(one, code="PG578") for one in found]


def known_sides(sides: Sequence[tuple[float, float] | None]) -> Any:
    """Converts widths and heights of images to float64 `(images, 2)`, infinite if unknown."""
    import numpy as np

    return np.array([one or (np.inf, np.inf) for one in sides], np.float64).reshape(-1, 2)


def gathered(
    keys: Sequence[str],
    sides: Any,
    boxes: Sequence[tuple[int, tuple[float, ...], str]],
    names: tuple[str, ...],
    places: Callable[[int], str],
    items: Mapping[str, Any],
    notes: Sequence[Note],
    missing: Sequence[Missing] = (),
    *,
    relative: bool = False,
) -> Found:
    """Builds columns from boxes read one by one: image, edges and class of each, ordered by image."""
    import numpy as np

    number = {name: i for i, name in enumerate(names)}
    records = np.array([record for record, _, _ in boxes], np.int64)
    edges = np.array([edge for _, edge, _ in boxes], np.float64).reshape(-1, 4)
    classes = np.array([number[name] for _, _, name in boxes], np.int64)
    return Found(keys, sides, records, edges, classes, names, places, items, tuple(notes), relative, missing=tuple(missing))


def without_masks(left: int, total: int, reason: str) -> list[Note]:
    """Notes the images that `masks` leaves out, if any."""
    message = f"{count(left, 'image')} of {total:,} left out: {reason}"
    gone = (LeftOut(left, "image without a mask", "images without a mask"),)
    return [Note("PG476", message, "remove `masks` to keep all images", "masks", "info", gone)] if left else []
