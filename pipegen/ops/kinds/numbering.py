"""Says how the pixels of a mask of instances know the items of an image: by numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.kinds.ragged import Ragged
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints

MOST_INSTANCES = 254
"""How many items a mask can tell apart: a pixel of it is a byte, of which 0 is none of them and 255 may be left out by the loss."""


def with_numbers(type_: ElementType) -> ElementType:
    """Returns the type of a record with the numbers of those items of which it has a mask of instances, as `NAME_number`."""
    homes = dict.fromkeys(t.instances for _, t in type_.items() if t.instances is not None)
    return type_.replace(**{number_name(home): item_number_type(home) for home in homes})


def number_name(home: str) -> str:
    """Returns what the numbers of the items of the feature `home` are called, where a mask knows them by these."""
    return f"{home}_number"


def item_number_type(home: str) -> FeatureType:
    """Returns the type of the number of each item of the feature `home`."""
    return FeatureType("item_number", "float32", (None,), of=home, most=0, beside=home)


def counted_up(lengths: Ints) -> Ragged:
    """Returns numbers from 1 for the items of each record."""
    import numpy as np

    ends = np.cumsum(lengths)
    before: Ints = np.repeat(ends - lengths, lengths)
    return Ragged((np.arange(len(before)) - before + 1).astype(np.float32), np.asarray(lengths, np.int64))
