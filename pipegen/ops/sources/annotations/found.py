"""`Found`: annotations, converted to columns of boxes on their image and of classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.sources.listing.base import LeftOut, Note
from pipegen.ops.sources.listing.wording import count, is_are, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.ops.kinds.packed import Packed
    from pipegen.ops.sources.annotations.outlines import Outlines
    from pipegen.ops.sources.features.class_names import Classes
    from pipegen.ops.sources.listing.missing import Missing
    from pipegen.ops.sources.listing.strings import Ints

_ROUNDED = {False: 1.0, True: 0.005}
"""Distance that a box may exceed its image by rounding without a finding: in pixels, and as a fraction of the image."""


@dataclass(frozen=True)
class PointNames:
    """Names of keypoints in the order of their columns, and those that a mirror swaps; `None` if the annotations do not say."""

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Found:
    """Images of a source and their boxes, as stored.

    Attributes:
        keys: The path of each image, relative to the source's folder.
        sides: Width and height of each in pixels by the annotations, float64 `(images, 2)`; infinite if unknown.
        records: The image of each box, rising, int64 `(boxes,)`.
        boxes: Left, top, right and bottom edge of each, float64 `(boxes, 4)`, in pixels or as fractions of the image.
        classes: The class of each among `names`, int64 `(boxes,)`.
        names: The classes in index order.
        places: Describes the place of a box.
        items: Further features of boxes, an array each.
        notes: Findings.
        relative: Whether edges are fractions of the image, from 0 to 1.
        beside: The path of a further file of each image, by feature.
        outlines: The number of each box's outline, int64 `(boxes,)`, if these are read, and the outlines.
        own: Columns of the images: content in place of a file, or points, by feature.
        points: The names of the keypoints, if these are read.
        missing: Images without files, and annotations without images.
    """

    keys: Sequence[str]
    sides: Any
    records: Any
    boxes: Any
    classes: Any
    names: tuple[str, ...]
    places: Callable[[int], str]
    items: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    relative: bool = False
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    outlines: tuple[Ints, Outlines] | None = None
    own: Mapping[str, Packed | Ragged] = field(default_factory=dict)
    points: PointNames | None = None
    missing: tuple[Missing, ...] = ()

    def only(self, kept: Ints) -> Found:
        """Keeps some boxes."""
        places, numbers = self.places, kept.tolist()
        items = {name: values[kept] for name, values in self.items.items()}
        own: dict[str, Any] = {"records": self.records[kept], "boxes": self.boxes[kept], "classes": self.classes[kept]}
        if self.outlines is not None:
            own["outlines"] = (self.outlines[0][kept], self.outlines[1])
        return replace(self, **own, items=items, places=lambda i: places(numbers[i]))

    def lengths(self) -> Ints:
        """Counts the boxes of each image, int64 `(images,)`."""
        import numpy as np

        return np.bincount(self.records, minlength=len(self.keys)).astype(np.int64)

    def columns(self) -> dict[str, Ragged | Packed]:
        """Returns the columns of boxes and their features."""
        import numpy as np

        lengths = self.lengths()
        items = {"boxes": self.boxes.astype(np.float32), "labels": self.classes.astype(np.int64), **self.items}
        return {**{name: Ragged(values, lengths) for name, values in items.items()}, **self.own}


def on_image(found: Found) -> tuple[Found, list[Note]]:
    """Clips boxes to their images, and drops those without an area, with `PG477` notes."""
    import numpy as np

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


def chosen(found: Found, about: Classes, listed: int | tuple[str, ...] | None) -> tuple[Found, list[Note]]:
    """Renames classes, drops boxes of other classes, and numbers the remaining classes from 0.

    Args:
        found: The boxes with their stored classes.
        about: The renamed and ignored classes.
        listed: Class names in index order, or their number; `None` for all stored ones.

    Raises:
        OpError: `PG478` without classes, or with another number of them.
    """
    import numpy as np

    notes = list(about.notes(found.names, None, "")) if about else []
    notes = [
        Note(n.code, n.message.replace("which no row has", "which the annotations lack"), n.help, (n.field or "").lstrip("."))
        for n in notes
    ]
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
        message = f"{count(sum(unlisted.values()), 'box', 'boxes')} of classes that `classes` does not list: {quoted(sorted(unlisted))}"
        gone = LeftOut(
            sum(unlisted.values()), "box of a class that `classes` does not list", "boxes of classes that `classes` does not list"
        )
        notes.append(Note("PG411", f"ignored: {message}", field="classes", left_out=(gone,)))
    missing = [name for name in names if name not in meant] if isinstance(listed, tuple) else []
    if missing:
        near = closest(missing[0], list(meant))
        help_ = f"is {near!r} meant?" if near else f"they have {quoted(meant)}"
        notes.append(Note("PG403", f"`classes` lists {quoted(missing)}, which the annotations lack", help_, "classes"))
    return replace(found, classes=indices, names=names).only(np.flatnonzero(indices >= 0)), notes
