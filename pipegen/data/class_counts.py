"""Counts the classes of a label: that of each example, those of examples with any number, or those of the items on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipegen.ops.kinds.ragged import Ragged

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Says how often each class occurs in a split.

    Attributes:
        names: The classes.
        counts: How many examples, or items, have each.
        total: How many examples, or items, there are.
        each: Whether an `example` has a class, or an `item` on it, such as a box.
    """

    names: tuple[str, ...]
    counts: list[int]
    total: int
    each: Literal["example", "item"] = "example"


def class_counts(manifest: Manifest, split: str, feature: str | None, *, main: bool) -> ClassCounts | None:
    """Counts the classes of a label; `None` where the listing does not hold it.

    Args:
        manifest: The data.
        split: The split.
        feature: The label.
        main: Whether it is the one that gives the data its classes.
    """
    listing, name = manifest.listing, feature or ""
    names = listing.column_classes.get(name, listing.class_names)
    each: list[Any] = [part.columns(split).get(name) for part in manifest.of(split).values()]
    items = [column.values for column in each if isinstance(column, Ragged)]
    if items:
        values = np.concatenate(items).astype(np.int64)
        return ClassCounts(names, np.bincount(values, minlength=len(names)).tolist(), len(values), "item")
    held = manifest.columns(split).get(name)
    if held is None and main:
        held = manifest.labels(split)
    if held is None:
        return None
    counts = held.sum(0, dtype=np.int64) if held.ndim == 2 else np.bincount(held, minlength=len(names))
    return ClassCounts(names, counts.tolist(), manifest.num_examples(split))


def shown_label(manifest: Manifest) -> str | None:
    """Returns the label that stands for the data where none is named: `None` for that of whole examples, else the first that is listed."""
    if any(manifest.labels(split) is not None for split in manifest.splits):
        return None
    return next(iter(manifest.listing.column_classes), None)
