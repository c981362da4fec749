"""Numbers of items, by which the pixels of an instance mask know them."""

from __future__ import annotations

from pipegen.ops.kinds.base import FeatureKind


class ItemNumber(FeatureKind):
    """The number that each item of another feature has in a mask of instances, as float32. It comes with such a mask, and no source's
    `features` give it."""

    name = "item_number"
    plural = "numbers of items in a mask"
    storage = "ragged"
    numbers_items = True
