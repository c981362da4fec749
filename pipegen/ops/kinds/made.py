"""Kinds that the pipeline makes, beside features of items; no source has them."""

from __future__ import annotations

from pipegen.ops.kinds.base import FeatureKind


class Valid(FeatureKind):
    """A boolean for each item, false for padding. It is made with a ragged feature; no source has it."""

    name = "valid"
    plural = "valid masks"
    valid = True


class ItemNumber(FeatureKind):
    """The number of each item of another feature in a mask of instances, as float32. It is made with such a mask; no source's `features`
    have it."""

    name = "item_number"
    plural = "numbers of items in a mask"
    storage = "ragged"
    numbers_items = True
