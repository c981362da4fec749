"""Numbers of items in the pixels of a mask of instances, and other kinds that the pipeline makes: no source has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.kinds.base import FeatureKind
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    pass


class Valid(FeatureKind):
    """A boolean for each item, false for padding. It is made with a ragged feature."""

    name = "valid"
    plural = "valid masks"
    valid = True


class ItemNumber(FeatureKind):
    """The number of each item of another feature in a mask of instances, as float32. It is made with such a mask."""

    name = "item_number"
    plural = "numbers of items in a mask"
    storage = "ragged"
    numbers_items = True


def with_numbers(type_: ElementType) -> ElementType:
    """Adds the numbers of items, as `NAME_number`, to the type of a record with masks of instances."""
    homes = dict.fromkeys(t.instances for _, t in type_.items() if t.instances is not None)
    return type_.replace(**{number_name(home): item_number_type(home) for home in homes})


def number_name(home: str) -> str:
    """Returns the name of the numbers of the items of the feature `home`."""
    return f"{home}_number"


def item_number_type(home: str) -> FeatureType:
    """Returns the type of the number of each item of the feature `home`."""
    return FeatureType("item_number", "float32", (None,), of=home, most=0, beside=home)
