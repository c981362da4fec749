"""Holds the arguments of a feature of which an image has any number of items, such as boxes, and of what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveInt, create_model

from pipegen.ops.arguments.item_rules import BoxFormat, BoxRules, Outside
from pipegen.ops.model import Model
from pipegen.ops.sources.features.pictures import Picture

LATER = frozenset({"format", "max", "min_area", "min_visibility", "min_size", "empty", "with", "names", "mirror_pairs", "outside"})
"""Arguments that came later than others of features."""


class KeepsBoxes(Model):
    """Holds the arguments that say which boxes are kept."""

    max: PositiveInt | None = None
    """For boxes: the most that one image leaves with, the largest first; each has so many places then. Without it there are as many
    places as the image with the most boxes needs."""
    min_area: Annotated[float, Field(ge=0)] | None = None
    """For boxes: the least area of what is left of one on its image, in square pixels."""
    min_visibility: Annotated[float, Field(ge=0, le=1)] | None = None
    """For boxes: the least share of one's area that a step leaves on the image, from 0 to 1."""
    min_size: Annotated[float, Field(ge=0)] | None = None
    """For boxes: the least width and height of what is left of one, in pixels."""
    empty: Literal["allow", "refuse"] | None = None
    """For boxes: whether a stored image may have none; `allow` by default."""

    def rules(self, form: BoxFormat | None) -> BoxRules:
        """Returns them for boxes that are stored in a format; `None` where they are as steps work on them."""
        return BoxRules(form, self.max, self.min_area or 0.0, self.min_visibility or 0.0, self.min_size or 0.0, self.empty or "allow")


class NamesPoints(Model):
    """Holds the arguments that say what keypoints are called, and what becomes of them."""

    names: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None
    """For keypoints: what they are called, in their order. An image has one of each then, or each box that they are `with`; without
    names it has any number of points."""
    mirror_pairs: tuple[tuple[str, str], ...] | None = None
    """For keypoints: the names that a mirror swaps, such as `[[left_eye, right_eye]]`; `[]` says that there are none."""
    outside: Outside | None = None
    """For keypoints: what becomes of those that leave the image. `remove`, the default, makes named ones absent, and leaves others out;
    `keep` leaves them where they are, beyond it."""


if TYPE_CHECKING:

    class Beside(Picture):
        """Holds `with`, which is no name in Python."""

else:
    _WITH = (
        "The boxes of which each has one of these, such as a class or a set of keypoints: they are dropped, sorted and padded with them. A "
        "mask `with` boxes has at each pixel the number of a box, counted from 1, and 0 where there is none."
    )
    Beside = create_model(
        "Beside",
        __base__=Picture,
        __module__=__name__,
        **{"with": (Annotated[str, Field(min_length=1)] | None, Field(None, description=_WITH))},
    )
