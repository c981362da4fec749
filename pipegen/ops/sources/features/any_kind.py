"""`AnyKind`: the arguments of labels, tensors, boxes, keypoints and what is with them, the same for every source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PositiveInt, create_model, field_validator, model_validator

from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.arguments.item_rules import BoxFormat, BoxRules, Outside
from pipegen.ops.fields.classes import Classes, ClassName, KnownClasses, as_values, read_labels
from pipegen.ops.fields.label_values import IndexedNames
from pipegen.ops.fields.numbers import NumberType
from pipegen.ops.model import Model
from pipegen.ops.sources.features.feature import Feature, Index

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.ops.fields.notes import Note
    from pipegen.ops.fields.strings import Ints


class KeepsBoxes(Model):
    """Arguments for keeping boxes."""

    max: PositiveInt | None = None
    """For boxes: the largest number kept of an image, largest boxes first; each image has that many places. By default as many places as
    the image with the most boxes needs."""
    min_area: Annotated[float, Field(ge=0)] | None = None
    """For boxes: the smallest area that must remain on the image, in square pixels."""
    min_visibility: Annotated[float, Field(ge=0, le=1)] | None = None
    """For boxes: the smallest fraction of the area that a step must leave on the image, from 0 to 1."""
    min_size: Annotated[float, Field(ge=0)] | None = None
    """For boxes: the smallest width and height that must remain, in pixels."""
    empty: Literal["allow", "refuse"] | None = None
    """For boxes: whether an image may have none; `allow` by default."""

    def rules(self, form: BoxFormat | None) -> BoxRules:
        """Returns the rules for boxes stored in a format; `None` for the format that steps use."""
        return BoxRules(form, self.max, self.min_area or 0.0, self.min_visibility or 0.0, self.min_size or 0.0, self.empty or "allow")


class NamesPoints(Model):
    """Arguments for names and handling of keypoints."""

    names: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None
    """For keypoints: their names, in order. Each image, or each box that they are `with`, has one of each. Without names an image has any
    number of points."""
    mirror_pairs: tuple[tuple[str, str], ...] | None = None
    """For keypoints: the names that a mirror swaps, such as `[[left_eye, right_eye]]`; `[]` for none."""
    outside: Outside | None = None
    """For keypoints: what to do with points outside of the image. `remove` (default) makes named ones absent and drops others; `keep`
    leaves them there."""


if TYPE_CHECKING:

    class Beside(Feature):
        """The argument `with`, which is a keyword in Python."""

else:
    _WITH = (
        "Boxes that have one of these each, such as a class or a set of keypoints: these are dropped, sorted and padded with them. A mask "
        "`with` boxes has at each pixel the number of a box, counted from 1, or 0."
    )
    Beside = create_model(
        "Beside",
        __base__=Feature,
        __module__=__name__,
        **{"with": (Annotated[str, Field(min_length=1)] | None, Field(None, description=_WITH))},
    )


class AnyKind(KeepsBoxes, NamesPoints, Beside):
    """A feature of any kind: the arguments of labels, tensors, boxes and keypoints."""

    classes: KnownClasses | None = None
    """For a label or a mask: class names in index order, or their number. By default those in the data; for a mask in files the largest
    index in `values`, plus 1. Records read every label once to find them."""
    offset: int = 0
    """For a label: the number subtracted from stored numbers to get class indices, such as 1 if they start at 1."""
    map: Annotated[dict[ClassName, ClassName], Field(min_length=1)] | None = None
    """For a label: the class meant by a stored one, such as `{pug: dog, chow: dog}`. Several with one name become one class; others stay.
    Applied before `classes` and `offset`."""
    ignore: Index | tuple[ClassName, ...] = 0  # type: ignore[assignment]  # masks have an index, labels names
    """For a label: classes (after `map`) whose examples are left out, such as `[unknown]`; for several labels, one of them is enough. For a
    mask: the class index of pixels that a constant fill uncovers, such as 255 for pixels that the loss ignores."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """For an example with any number of classes: their separator in a text; a list has one class per item. The label is then encoded as
    `multi_hot`. `with` boxes: separator of their classes in a text."""
    dtype: NumberType | None = None
    """For a tensor: `float32` (default), or `int64` for integers beyond 16,777,216, such as ids and times. By default an integer that
    float32 cannot represent is an error; with an explicit `float32` it is rounded."""
    format: BoxFormat | None = None
    """Format of boxes, by default `xyxy`: left, top, right and bottom edge in pixels. `xywh`: left, top, width and height. `center_xywh`:
    centre, width and height. `yxyx`: top, left, bottom and right. `rel_xyxy` and so on: the same as fractions of the image's width and
    height."""

    @field_validator("ignore")
    @classmethod
    def _none_ignored(cls, ignore: int | tuple[ClassName, ...]) -> int | tuple[ClassName, ...]:
        return ignore or 0

    @model_validator(mode="after")
    def _ignores_what_it_has(self) -> AnyKind:
        pictured = self.own_kind.pixels is not None
        if self.ignore and pictured is isinstance(self.ignore, tuple):
            form = "one class index" if pictured else "a list of classes, such as `[unknown]`"
            raise PartError(f"`ignore` of `kind: {self.kind}` must be {form}", "ignore")
        self.chosen.check(self.classes)
        return self

    @property
    def several(self) -> bool:
        """Whether it is a label with any number of classes for each example."""
        return self.separator is not None and self.home is None

    @property
    def chosen(self) -> Classes:
        """The renamed and ignored classes."""
        return Classes(self.map or {}, self.ignore if isinstance(self.ignore, tuple) else ())

    def chosen_labels(
        self, name: str, given: Any, where: Callable[[int], str], notes: list[Note] | None = None
    ) -> tuple[Ints, tuple[str, ...], Ints]:
        """Applies `map` and `ignore` to labels: class indices int64 `(n,)` (-1 for rows left out), the classes, and the rows kept, bool
        `(n,)`. For arguments and errors see `read_labels`."""
        stored = as_values(name, given)
        if not len(stored):
            return (*read_labels(name, self.classes, self.offset, stored, where), np.ones(0, bool))
        meant, stays = self.chosen.of_values(stored)
        if not stays.any():
            message = f"none of the {len(stored):,} labels of `{name}` has a class that `ignore` keeps"
            raise OpError("PG402", message, field="ignore")
        kept = np.flatnonzero(stays)
        found, names = read_labels(name, self.classes, self.offset, meant.take(kept), lambda row: where(int(kept[row])), notes)
        indices: Ints = np.full(len(stored), -1, np.int64)
        indices[kept] = found
        return indices, names, stays

    def told_by(self, names: tuple[str, ...]) -> dict[str, object]:
        """Returns the arguments changed by class names from the data."""
        if not self.chosen:
            return {"classes": IndexedNames(names)}
        given = {str(stored): name for stored, name in (self.map or {}).items()}
        return {"map": {i: given.get(name, name) for i, name in enumerate(names)}}

    def box_rules(self) -> BoxRules:
        """Returns the format of its boxes, and the rules for keeping them."""
        return self.rules(self.format or "xyxy")
