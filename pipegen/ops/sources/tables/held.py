"""Features of a table that are held in memory: labels, numbers, any number of items for each row, and images as numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.errors import Attempts, OpError, OpErrors
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column
from pipegen.ops.fields.label_values import Values
from pipegen.ops.fields.numbers import read_numbers
from pipegen.ops.sources.features.items import read_items, side_by_side
from pipegen.ops.sources.tables.nested import listed, points_of, read_pixels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.fields.columns import Place
    from pipegen.ops.sources.tables.features import InTable, TableFeature
    from pipegen.ops.sources.tables.table import Table


def read_held(features: Mapping[str, InTable], table: Table, tried: Attempts) -> dict[str, Column]:
    """Reads those features that are not pixels; `tried` collects errors.

    They are `PG420` for an invalid label, `PG423` and `PG666` for an invalid number, `PG431` for items, and those of `Table.column`.
    """
    dense = {name: feature for name, feature in features.items() if feature.own_kind.storage == "dense"}
    read = {name: tried.of(_labels if feature.own_kind.labels else _numbers, table, name, feature) for name, feature in dense.items()}

    def place_in(name: str) -> Place:
        feature = features[name]
        return table.place_in(feature.columns[0] if feature.columns else feature.column_of(name))

    others = {name: feature for name, feature in features.items() if not feature.own_kind.labels}
    items = tried.of(read_items, others, partial(_lists, table, features), place_in) or {}
    return {name: column for name, column in (*read.items(), *items.items()) if column is not None}


def read_images(name: str, feature: TableFeature, table: Table) -> Any:
    """Reads images whose pixels are numbers in the table; for the result and errors see `read_pixels`."""
    field = f"features.{name}.{'columns' if feature.columns else 'column'}"
    columns = feature.columns or (feature.column_of(name),)
    each = [table.values(column, f"{field}.{i}" if feature.columns else field) for i, column in enumerate(columns)]
    cells = each[0] if feature.columns is None else (" ".join(row) if isinstance(row[0], str) else row for row in zip(*each, strict=True))
    return read_pixels(cells, table.place_in(columns[0]), feature.pixels, feature.bits or 8, table.num_rows, field)


def _labels(table: Table, name: str, feature: InTable) -> Column:
    """Reads labels of rows that have no ignored class."""
    field, column = f"features.{name}", feature.column_of(name)
    cells = feature.chosen.renamed(table.labels(column, f"{field}.column"), feature.separator)
    plain, place = feature.model_copy(update={"map": None, "ignore": 0}), table.place_in(column)
    of_row = place if feature.several else lambda row: f"the label at {place(row)}"
    try:
        return feature.own_kind.read_array(name, plain, Values.of_texts(cells), of_row)
    except OpError as error:
        raise error.at(f"{field}.{error.field or 'column'}") from None


def _lists(table: Table, features: Mapping[str, InTable], name: str) -> list[Any]:
    """Returns the list of each row: values of items, or named points."""
    feature, field = features[name], f"features.{name}"
    if feature.columns is None:
        column = feature.column_of(name)
        place = table.place_in(column)
        return [listed(cell, feature.separator, place, row) for row, cell in enumerate(table.values(column, f"{field}.column"))]
    each = [(column, f"{field}.columns.{i}") for i, column in enumerate(feature.columns)]
    if feature.own_kind.crop_guide == "points":
        return points_of([table.column(*at) for at in each], [table.place_in(column) for column, _ in each], len(feature.names or ()))
    lists = ([listed(cell, None, table.place_in(at[0]), row) for row, cell in enumerate(table.values(*at))] for at in each)
    return [*map(side_by_side, zip(*lists, strict=True))]


def _numbers(table: Table, name: str, feature: InTable) -> Column:
    """Reads float32 or int64 `(n,)`, `(n, columns)` or `(n, *shape)`."""
    return Column(_values(table, f"features.{name}", name, feature), feature.type())


def _values(table: Table, field: str, name: str, feature: InTable) -> Any:
    if feature.columns is None:
        column = feature.column_of(name)
        if feature.shape is not None:
            return table.arrays(column, feature.shape, f"{field}.column", feature.dtype)
        cells = table.column(column, f"{field}.column")
        return read_numbers(cells, table.place_in(column), f"{field}.column", feature.dtype, weights=feature.own_kind.weighs)
    tried = Attempts()
    read = [
        tried.of(lambda c, at: read_numbers(table.column(c, at), table.place_in(c), at, feature.dtype), column, f"{field}.columns.{i}")
        for i, column in enumerate(feature.columns)
    ]
    if tried.errors:
        raise OpErrors(tried.errors)
    return np.stack(read, axis=-1)
