"""Labels: the class of an example, or its classes; the class of each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import np
from pipegen.ops.kinds.base import Column, ExampleClass, FeatureKind, ItemClass
from pipegen.ops.kinds.ragged import Ragged
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place


class Label(FeatureKind):
    """A class index; if an example has any number of classes, 1 for each class that it has."""

    name = "label"
    plural = "labels"
    arguments = ("classes", "offset", "separator", "map", "ignore")
    meaning = ExampleClass()
    each = "item_label"

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (label_type(feature.num_classes, several=feature.several),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        from pipegen.ops.sources.features.classes import as_values, read_labels

        notes: list[Any] = []
        if feature.several:
            return self._several(name, feature, given, place, notes)
        if not feature.chosen:
            indices, names = read_labels(name, feature.classes, feature.offset, given, place, notes)
            return Column(np.array(indices, np.int64), label_type(len(names), several=False), names, notes=tuple(notes))
        indices, names, stays = feature.chosen_labels(name, given, place, notes)
        notes += feature.chosen.notes(as_values(name, given).as_texts().texts, None, f"features.{name}")
        return Column(indices, label_type(len(names), several=False), names, stays, tuple(notes))

    def _several(self, name: str, feature: Any, given: Any, place: Place, notes: list[Any]) -> Column:
        """Reads any number of classes of each record: `given` has a list or a text for each, as `Values` or as stored."""
        from pipegen.ops.sources.features.columns import read_several_labels
        from pipegen.ops.sources.features.label_values import LIST, Values, label_texts

        if isinstance(given, Ragged):
            ends = np.cumsum(given.lengths).tolist()
            texts = [LIST + text for text in label_texts(given.values)]
            cells = ["".join(texts[end - length : end]) for end, length in zip(ends, given.lengths.tolist(), strict=True)]
        else:
            cells = [given.texts[i] for i in given.codes.tolist()] if isinstance(given, Values) else label_texts(given)
        stored = cells
        cells = [*feature.chosen.renamed(cells, feature.separator)]
        stays: Any = np.zeros(len(cells), bool)
        stays[feature.chosen.without_ignored(cells, feature.separator)] = True
        ignored = [cell if stay else "" for cell, stay in zip(cells, stays.tolist(), strict=True)]
        values, names = read_several_labels(name, ignored, feature, place, notes)
        if feature.chosen:
            notes += feature.chosen.notes(stored, feature.separator, f"features.{name}")
        return Column(values, label_type(len(names), several=True), names, stays, tuple(notes))


def label_type(classes: int | None, *, several: bool) -> FeatureType:
    """Returns the type of a label: a class index, or with `several`, 1 for each class that the example has."""
    if several:
        return FeatureType("label", "uint8", (classes,), Interval(0.0, 1.0), classes=classes)
    return FeatureType("label", "int64", (), classes=classes)


class ItemLabel(FeatureKind):
    """A class index for each item of another feature; a `label` that is `with` that one."""

    name = "item_label"
    plural = "labels of items"
    arguments = ("classes", "offset", "separator")
    storage = "ragged"
    meaning = ItemClass()

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (item_label_type(feature.home, feature.num_classes),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        from pipegen.ops.sources.array_rows.rows import read_ragged
        from pipegen.ops.sources.features.classes import read_labels
        from pipegen.ops.sources.features.columns import split_text

        notes: list[Any] = []
        if feature.separator is not None and not isinstance(given, Ragged):
            given = [split_text(value, feature.separator) for value in given]
        items = read_ragged(name, given, (), place)
        ends = np.cumsum(items.lengths)

        def said(item: int) -> str:
            row = int(np.searchsorted(ends, item, side="right"))
            return f"item {item - int(ends[row] - items.lengths[row])} of {place(row)}"

        if not len(items.values):
            known = range(feature.offset, feature.offset + (feature.num_classes or 0))
            names = feature.classes if isinstance(feature.classes, tuple) else tuple(map(str, known))
            indices: Any = np.zeros(0, np.int64)
        else:
            about = name, feature.classes, feature.offset, items.values
            indices, names = read_labels(*about, said, notes)
        column = Ragged(np.asarray(indices, np.int64), items.lengths)
        return Column(column, item_label_type(feature.home, len(names)), names, notes=tuple(notes))


def item_label_type(home: str, classes: int | None) -> FeatureType:
    """Returns the type of the class of each item of the feature `home`."""
    return FeatureType("item_label", "int64", (None,), of=home, classes=classes, most=0, beside=home)
