"""Masks of instances: the item, such as a box, that each pixel belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.errors import PartError
from pipegen.ops.kinds.mask import Mask
from pipegen.ops.kinds.numbering import MOST_INSTANCES
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform


class InstanceMask(Mask):
    """One plane for all items of an image: a pixel holds the number of its item, counted from 1, or 0 for none. A mask that is `with`
    boxes is one. Items keep their numbers until the end, where numbers become places: `v` is the item at `v - 1`. Pixels of dropped items
    are 0.
    """

    name = "instance_mask"
    plural = "masks of instances"
    arguments = ("of", "root", "ending", "size", "ignore")
    each = ""
    rules_of = "mask"
    marks_items = True

    def check(self, name: str, feature: Any) -> None:
        if 0 < feature.ignore <= MOST_INSTANCES:
            raise PartError(f"`{name}` numbers instances from 1, so its `ignore` must be 0 or 255", name, "ignore")

    def stored_type(self, feature: Any, of: str | None, classes: int | None) -> FeatureType:
        return FeatureType("instance_mask", "string", (), of=of, ignore=feature.ignore, instances=feature.home)

    def decoder(self, feature: Any, classes: int | None) -> Transform:
        return feature.decoder(None)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        shape = (*feature.height_width(), 1)
        return (
            FeatureType("instance_mask", "uint8", shape, Interval(0.0, 255.0), uniform=True, ignore=feature.ignore, instances=feature.home),
        )
