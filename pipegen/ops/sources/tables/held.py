"""Features of a table that are held in memory: labels, numbers, any number of items for each row, and images as numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.errors import Attempts, OpErrors
from pipegen.lazy import np
from pipegen.ops.kinds.label import label_type
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.columns import Labels, read_numbers, read_one_label, read_several_labels
from pipegen.ops.sources.features.items import read_items, side_by_side
from pipegen.ops.sources.tables.nested import listed, points_of, read_pixels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.kinds.base import Place
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.tables.features import InTable, TableFeature
    from pipegen.ops.sources.tables.table import Table
    from pipegen.types import FeatureType


class Held(NamedTuple):
    """Features held in memory."""

    columns: dict[str, Any]  # the values of each, for all rows
    types: dict[str, FeatureType]  # the types of those that the data determines further than the arguments
    classes: dict[str, tuple[str, ...]]  # the classes of labels
    notes: list[Note]  # findings about them

    def class_names(self, label: str | None) -> tuple[str, ...]:
        """Returns the classes of the data: those of `label`, which has one for each row, else of the first label with several."""
        several = (names for name, names in self.classes.items() if kind_of(self.types[name]).labels)
        return self.classes[label] if label is not None else next(several, ())


def read_held(features: Mapping[str, InTable], table: Table, tried: Attempts) -> Held:
    """Reads those features that are not pixels; `tried` collects errors.

    They are `PG420` for an invalid label, `PG423` and `PG666` for an invalid number, `PG431` for items, and those of `Table.column`.
    """
    found = Held({}, {}, {}, [])
    for name, feature in features.items():
        kind = kind_of(feature)
        if kind.labels and (labels := tried.of(_labels, table, name, feature, found.notes)) is not None:
            found.columns[name], found.classes[name] = labels.values, labels.names
            found.types[name] = label_type(len(labels.names), several=feature.several)
        elif kind.storage == "dense" and not kind.labels:
            found.columns[name] = tried.of(_numbers, table, name, feature)

    def place_in(name: str) -> Place:
        feature = features[name]
        return table.place_in(feature.columns[0] if feature.columns else feature.column_of(name))

    others = {name: feature for name, feature in features.items() if not kind_of(feature).labels}
    items, told = tried.of(read_items, others, partial(_lists, table, features), place_in) or ({}, ())
    found.notes.extend(told)
    for name, column in items.items():
        found.columns[name], found.types[name] = column.values, column.type
        found.classes.update({name: column.classes} if column.classes else {})
    return found


def read_images(name: str, feature: TableFeature, table: Table) -> Any:
    """Reads images whose pixels are numbers in the table; for the result and errors see `read_pixels`."""
    field = f"features.{name}.{'columns' if feature.columns else 'column'}"
    columns = feature.columns or (feature.column_of(name),)
    each = [table.values(column, f"{field}.{i}" if feature.columns else field) for i, column in enumerate(columns)]
    cells = each[0] if feature.columns is None else map(_in_one, zip(*each, strict=True))
    return read_pixels(cells, table.place_in(columns[0]), feature.pixels, feature.bits or 8, table.num_rows, field)


def _in_one(cells: tuple[Any, ...]) -> Any:
    """Joins the cells of a row, with a number each."""
    return " ".join(cells) if isinstance(cells[0], str) else cells


def _labels(table: Table, name: str, feature: InTable, notes: list[Note]) -> Labels:
    field, column = f"features.{name}", feature.column_of(name)
    cells = feature.chosen.renamed(table.labels(column, f"{field}.column"), feature.separator)
    about = feature.classes, feature.offset, table.place_in(column), field, notes
    if feature.separator is not None:
        return read_several_labels(name, cells, feature.separator, *about)
    return read_one_label(name, cells, *about)


def _lists(table: Table, features: Mapping[str, InTable], name: str) -> list[Any]:
    """Returns the list of each row: values of items, or named points."""
    feature, field = features[name], f"features.{name}"
    if feature.columns is None:
        column = feature.column_of(name)
        place = table.place_in(column)
        return [listed(cell, feature.separator, place, row) for row, cell in enumerate(table.values(column, f"{field}.column"))]
    each = [(column, f"{field}.columns.{i}") for i, column in enumerate(feature.columns)]
    if kind_of(feature).crop_guide == "points":
        return points_of([table.column(*at) for at in each], [table.place_in(column) for column, _ in each], len(feature.names or ()))
    lists = ([listed(cell, None, table.place_in(at[0]), row) for row, cell in enumerate(table.values(*at))] for at in each)
    return [*map(side_by_side, zip(*lists, strict=True))]


def _numbers(table: Table, name: str, feature: InTable) -> Any:
    """Reads float32 or int64 `(n,)`, `(n, columns)` or `(n, *shape)`."""
    field = f"features.{name}"
    if feature.columns is None:
        column = feature.column_of(name)
        if feature.shape is not None:
            return table.arrays(column, feature.shape, f"{field}.column", feature.dtype)
        cells = table.column(column, f"{field}.column")
        return read_numbers(cells, table.place_in(column), f"{field}.column", feature.dtype, weights=kind_of(feature).weighs)
    tried = Attempts()
    read = [
        tried.of(lambda c, at: read_numbers(table.column(c, at), table.place_in(c), at, feature.dtype), column, f"{field}.columns.{i}")
        for i, column in enumerate(feature.columns)
    ]
    if tried.errors:
        raise OpErrors(tried.errors)
    return np.stack(read, axis=-1)
