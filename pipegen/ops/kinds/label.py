"""Labels: the class of an example, or its classes; the class of each item."""

from __future__ import annotations

from typing import Any

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Place, Ragged
from pipegen.ops.fields.labels import (
    LIST,
    Classes,
    Values,
    as_values,
    check_written_lists,
    label_texts,
    named_classes,
    parts,
    read_labels,
    split_text,
)
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import read_ragged
from pipegen.ops.kinds.base import ExampleClass, FeatureKind, ItemClass, item_type
from pipegen.types import FeatureType, Interval


class Label(FeatureKind):
    """A class index; if an example has any number of classes, 1 for each class that it has."""

    name = "label"
    plural = "labels"
    arguments = ("classes", "offset", "separator", "map", "ignore", "unlabelled")
    meaning = ExampleClass()
    each = "item_label"
    along = "timestep_label"

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (label_type(feature.num_classes, several=feature.several),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        notes: list[Any] = []
        if feature.several:
            return self._several(name, feature, given, place, notes)
        if not feature.chosen:
            indices, names = read_labels(name, feature.classes, feature.offset, given, place, notes, _without_label(feature))
            return Column(indices, label_type(len(names), several=False), names, notes=tuple(notes))
        stored = as_values(name, given)
        texts = feature.chosen.renamed(stored.texts, None)
        stays = np.isin(stored.codes, feature.chosen.without_ignored(texts, None))
        known: Any = np.isin(stored.codes, Classes(ignored=feature.chosen.unlabelled).without_ignored(stored.texts, None))
        if len(stored) and not (stays & known).any():
            taking = [argument for argument in ("ignore", "unlabelled") if getattr(feature, argument)]
            message = (
                f"{' and '.join(f'`{one}`' for one in taking)} {'take' if len(taking) > 1 else 'takes'} all {count(len(stored), 'label')}"
            )
            raise OpError("PG402", f"{message} of `{name}`", field=taking[0], help="leave a value of each class out of the list")
        kept = np.flatnonzero(stays & known)
        meant = Values.of_texts(texts)
        meant = Values(meant.texts, meant.codes[stored.codes]).take(kept)
        found, names = read_labels(
            name, feature.classes, feature.offset, meant, lambda row: place(int(kept[row])), notes, _without_label(feature)
        )
        indices = np.full(len(stored), -1, np.int64)
        indices[kept] = found
        notes += feature.chosen.notes(stored.texts, None, f"features.{name}")
        return Column(indices, label_type(len(names), several=False), names, stays, tuple(notes))

    def _several(self, name: str, feature: Any, given: Any, place: Place, notes: list[Any]) -> Column:
        """Reads any number of classes of each record: `given` has a list or a text for each, as `Values` or as stored; blanks around
        separators are ignored. `PG420` for an unknown class, for lists written as text, and if no row has any."""
        if isinstance(given, Ragged):
            ends = np.cumsum(given.lengths).tolist()
            texts = [LIST + text for text in label_texts(given.values)]
            stored = ["".join(texts[end - length : end]) for end, length in zip(ends, given.lengths.tolist(), strict=True)]
        else:
            stored = [given.texts[i] for i in given.codes.tolist()] if isinstance(given, Values) else label_texts(given)
        cells = [*feature.chosen.renamed(stored, feature.separator)]
        stays: Any = np.zeros(len(cells), bool)
        stays[feature.chosen.without_ignored(cells, feature.separator)] = True
        cells = [cell if stay else "" for cell, stay in zip(cells, stays.tolist(), strict=True)]
        flat = [(row, part) for row, cell in enumerate(cells) for part in parts(cell, feature.separator or "")]
        if not flat:
            raise OpError("PG420", f"no row has a label: the column is empty in {count(len(cells), 'row')}")
        check_written_lists([cell for cell in dict.fromkeys(cells) if cell], (), lambda text: f"the label at {place(cells.index(text))}")
        rows, texts = zip(*flat, strict=True)  # type: ignore[assignment]
        of_part = lambda i: f"the label at {place(rows[i])}"  # noqa: E731
        indices, names = read_labels(name, feature.classes, feature.offset, Values.of_texts(texts), of_part, notes)
        values: Any = np.zeros((len(cells), len(names)), np.uint8)
        values[rows, indices] = 1
        if feature.chosen:
            notes += feature.chosen.notes(stored, feature.separator, f"features.{name}")
        return Column(values, label_type(len(names), several=True), names, stays, tuple(notes))


def _without_label(feature: Any) -> tuple[str, ...]:
    """What to do about empty labels of a feature."""
    if "unlabelled" in type(feature).model_fields:
        return "remove rows without a label", "or, if they are only predicted on, name what they hold, such as `unlabelled: ['']`"
    return ("give rows without a label a class of their own, such as `map: {'': none}`",)


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
        return (item_type(self.name, feature.home, "int64", classes=feature.num_classes),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        notes: list[Any] = []
        if feature.separator is not None and not isinstance(given, Ragged):
            given = [split_text(value, feature.separator) for value in given]
        items = read_ragged(name, given, (), place)

        def said(item: int) -> str:
            row, number = items.place(item)
            return f"item {number} of {place(row)}"

        if not len(items.values):
            indices: Any
            indices, names = np.zeros(0, np.int64), named_classes(feature.classes or 0, feature.offset)
        else:
            indices, names = read_labels(name, feature.classes, feature.offset, items.values, said, notes)
        column = Ragged(np.asarray(indices, np.int64), items.lengths)
        return Column(column, item_type(self.name, feature.home, "int64", classes=len(names)), names, notes=tuple(notes))
