"""Labels of items, such as the class of each box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.ops.kinds.base import Column, FeatureKind
from pipegen.ops.kinds.ragged import Ragged
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place


class ItemLabel(FeatureKind):
    """A class index for each item of another feature; a `label` that is `with` that one."""

    name = "item_label"
    plural = "labels of items"
    arguments = ("classes", "offset", "separator")
    storage = "ragged"
    counts = "item"
    output = "output: {{y: {}}}"

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (item_label_type(feature.home, feature.num_classes),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place | None = None) -> Column:
        import numpy as np

        from pipegen.ops.sources.array_rows.rows import read_ragged, row_of
        from pipegen.ops.sources.features.classes import read_labels
        from pipegen.ops.sources.features.columns import split_text

        notes: list[Any] = []
        if feature.separator is not None and not isinstance(given, Ragged):
            given = [split_text(value, feature.separator) for value in given]
        items, where = read_ragged(name, given, (), place), place or row_of(name)
        ends = np.cumsum(items.lengths)

        def said(item: int) -> str:
            row = int(np.searchsorted(ends, item, side="right"))
            return f"item {item - int(ends[row] - items.lengths[row])} of {where(row)}"

        if not len(items.values):
            names = feature.classes if isinstance(feature.classes, tuple) else tuple(map(str, range(feature.num_classes or 0)))
            indices: Any = np.zeros(0, np.int64)
        else:
            about = name, feature.classes, feature.offset, items.values
            indices, names = read_labels(*about, said, notes)
        column = Ragged(np.asarray(indices, np.int64), items.lengths)
        return Column(column, item_label_type(feature.home, len(names)), names, notes=tuple(notes))


def item_label_type(home: str, classes: int | None) -> FeatureType:
    """Returns the type of the class of each item of the feature `home`."""
    return FeatureType("item_label", "int64", (None,), of=home, classes=classes, most=0, beside=home)
