"""Masks as arrays in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.families.decoder import LARGEST
from pipegen.ops.kinds.numbering import MOST_INSTANCES
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.base import Note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.features.arrays import ArrayFeature
    from pipegen.types import ElementType, FeatureType


def read_mask(name: str, feature: ArrayFeature, array: Any) -> tuple[Any, FeatureType]:
    """Converts masks to a NumPy array `(n, height, width, 1)` of uint8; returns it with the type of one.

    Args:
        name: The feature.
        feature: Its arguments.
        array: A NumPy array.

    Raises:
        OpError: `PG204` for a wrong rank, `PG402` without rows, `PG419` for an invalid dtype, size or class index.
    """
    import numpy as np

    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[-1] != 1:
        message = f"the masks of `{name}` need the shape (n, height, width) or (n, height, width, 1), not {array.shape}"
        raise OpError("PG204", message, help="convert one channel per class by `numpy.argmax(masks, -1)`")
    if not array.size:
        raise OpError("PG402", f"the array `{name}` has no rows")
    if array.dtype.kind not in "bui":
        raise OpError("PG419", f"the masks of `{name}` are {array.dtype}", help="class indices must be integers; pass them as uint8")
    height, width = array.shape[1:3]
    type_ = feature.possible()[0].with_(shape=(height, width, 1))
    if feature.size is not None and (height, width) != feature.height_width():
        raise OpError("PG419", f"the masks of `{name}` are {height}×{width} pixels", field="size")
    highest = LARGEST if type_.classes is None else type_.classes - 1
    wrong = [int(value) for value in np.unique(array) if not 0 <= value <= highest and value != feature.ignore]
    if wrong:
        message = f"`{name}` holds {wrong[0]}; class indices go from 0 to {highest}"
        raise OpError("PG419", message, field="classes" if type_.classes is not None else None)
    return array.astype(np.uint8, copy=False), type_


def sizes_apart(type_: ElementType) -> list[Note]:
    """Reports a mask or an image of another size than the image that it is aligned with."""
    notes = []
    for name, x in type_.items():
        if not kind_of(x).pictured:
            continue
        image = type_[x.of] if x.of is not None else x
        if (x.height, x.width) != (image.height, image.width):
            message = f"`{name}` has {x.height}×{x.width} pixels, but `{x.of}`, with which it is aligned, has {image.height}×{image.width}"
            notes.append(Note("PG419", message, "aligned features need the same size", f"features.{name}", "error"))
    return notes


def unknown_instances(types: Mapping[str, FeatureType], columns: Mapping[str, Any], masks: Mapping[str, Any]) -> list[Note]:
    """Reports masks of instances with unknown item numbers, and too many items for a mask."""
    import numpy as np

    notes = []
    for name, x in types.items():
        if x.instances is None:
            continue
        lengths = columns[x.instances].lengths
        mask = masks[name].reshape(len(lengths), -1)
        highest = np.where(mask == x.ignore, 0, mask).max(1) if mask.size else np.zeros(len(lengths))
        row, most = int(np.argmax(highest > lengths)), int(lengths.max(initial=0))
        if (highest > lengths).any():
            message = f"row {row} of `{name}` holds {int(highest[row])}, but the image has {int(lengths[row])} of `{x.instances}`"
            help_ = f"a pixel must be 0, or the number of one of `{x.instances}` from 1"
            notes.append(Note("PG419", message, help_, f"features.{name}", "error"))
        elif most > MOST_INSTANCES:
            message = f"an image has {most} of `{x.instances}`; `{name}` can hold {MOST_INSTANCES}"
            notes.append(Note("PG419", message, "remove the mask, or such images", f"features.{name}", "error"))
    return notes
