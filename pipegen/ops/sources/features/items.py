"""Arguments of features with any number of items per image, such as boxes, and of features per item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveInt, create_model

from pipegen.ops.arguments.item_rules import BoxFormat, BoxRules, Outside
from pipegen.ops.model import Model
from pipegen.ops.sources.features.pictures import Picture

OF_ITEMS = dict.fromkeys(("format", "max", "min_area", "min_visibility", "min_size", "empty"), "boxes")
OF_ITEMS |= dict.fromkeys(("names", "mirror_pairs", "outside"), "keypoints")
"""The kinds that an argument belongs to."""


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

    class Beside(Picture):
        """The argument `with`, which is a keyword in Python."""

else:
    _WITH = (
        "Boxes that have one of these each, such as a class or a set of keypoints: these are dropped, sorted and padded with them. A mask "
        "`with` boxes has at each pixel the number of a box, counted from 1, or 0."
    )
    Beside = create_model(
        "Beside",
        __base__=Picture,
        __module__=__name__,
        **{"with": (Annotated[str, Field(min_length=1)] | None, Field(None, description=_WITH))},
    )


class HasItems(KeepsBoxes, NamesPoints, Beside):
    """Arguments of features with any number of items per image, and of features per item."""

    format: BoxFormat | None = None
    """Format of boxes, by default `xyxy`: left, top, right and bottom edge in pixels. `xywh`: left, top, width and height. `center_xywh`:
    centre, width and height. `yxyx`: top, left, bottom and right. `rel_xyxy` and so on: the same as fractions of the image's width and
    height."""

    @property
    def home(self) -> str | None:
        """The feature with one of these per item, if any."""
        found: str | None = getattr(self, "with")
        return found

    def box_rules(self) -> BoxRules:
        """Returns the format of its boxes, and the rules for keeping them."""
        return self.rules(self.format or "xyxy")
