"""Labels: the class of an example, or its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.ops.kinds.base import Column, FeatureKind
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place


class Label(FeatureKind):
    """A class index; if an example has any number of classes, 1 for each class that it has."""

    name = "label"
    plural = "labels"
    arguments = ("classes", "offset", "separator", "map", "ignore")
    labels = True
    counts = "example"
    each = "item_label"
    output = "output: {{y: {}}}"

    def stored_type(self, feature: Any, of: str | None, classes: int | None) -> FeatureType:
        return label_type(classes, several=feature.several)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (label_type(feature.num_classes, several=False),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place | None = None) -> Column:
        import numpy as np

        from pipegen.ops.sources.features.classes import as_values, read_labels

        notes: list[Any] = []
        if not feature.chosen:
            indices, names = read_labels(name, feature.classes, feature.offset, given, notes=notes)
            return Column(np.array(indices, np.int64), label_type(len(names), several=False), names, notes=tuple(notes))
        indices, names, stays = feature.chosen_labels(name, given, notes=notes)
        notes += feature.chosen.notes(as_values(name, given).as_texts().texts, None, f"features.{name}")
        return Column(indices, label_type(len(names), several=False), names, stays, tuple(notes))


def label_type(classes: int | None, *, several: bool) -> FeatureType:
    """Returns the type of a label: a class index, or with `several`, 1 for each class that the example has."""
    if several:
        return FeatureType("label", "uint8", (classes,), Interval(0.0, 1.0), classes=classes)
    return FeatureType("label", "int64", (), classes=classes)
