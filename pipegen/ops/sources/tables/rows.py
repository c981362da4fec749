"""Selects the rows of a table that are records, and names those with files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.ops.sources.features.predicate_syntax import matching, some
from pipegen.ops.sources.listing.base import LeftOut, Note
from pipegen.ops.sources.listing.wording import count
from pipegen.ops.sources.tables.join import Joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.sources.tables.features import TableFeature
    from pipegen.ops.sources.tables.table import Table


def chosen_rows(table: Table, where: str | None, labels: Mapping[str, TableFeature]) -> tuple[Table, tuple[Note, ...]]:
    """Leaves out rows that a join drops, rows that `where` excludes, and rows of ignored classes.

    Args:
        table: The table, joined if there is a join.
        where: The predicate.
        labels: The features that are labels.

    Returns:
        The table of the remaining rows, and findings.

    Raises:
        OpErrors: `PG402` if no row is left, `PG421` for unknown columns, `PG450` for keys with no or several partners, `PG452` for cells
            that cannot be compared.
    """
    rows: Sequence[int] = range(table.num_rows)
    notes = list(table.notes())
    if isinstance(table, Joined) and table.drops:
        rows = table.with_partners()
        if len(rows) < table.num_rows:
            gone = LeftOut(table.num_rows - len(rows), "row whose key the joined table lacks", "rows whose key the joined table lacks")
            told = f"{count(gone.number, 'row')} of {table.num_rows:,} left out: {table.right.called} lacks the key"
            notes.append(Note("PG411", told, field="join.missing", left_out=(gone,)))
        rows = some(rows, table, "join.on", "has a key of the joined table")
    if where is not None:
        rows = matching(table, where, rows)
    for name, feature in labels.items():
        if feature.chosen:
            field = f"features.{name}"
            cells = table.labels(feature.column_of(name), f"{field}.column")
            notes += feature.chosen.notes(cells, feature.separator, field)
            renamed = feature.chosen.renamed([cells[row] for row in rows], feature.separator)
            stays = feature.chosen.without_ignored(renamed, feature.separator)
            rows = some([rows[i] for i in stays], table, f"{field}.ignore", "has a class that `ignore` keeps")
    table.require(rows)
    return (table if len(rows) == table.num_rows else table.only(rows)), tuple(notes)


def row_keys(cells: Sequence[str]) -> list[str]:
    """Names records by the paths of their files, with a number if a file is in several rows. Names are unique."""
    rows_of: dict[str, int] = {}
    keys: dict[str, None] = {}
    for cell in cells:
        name = file_name(cell)
        rows_of[name] = rows_of.get(name, 0) + 1
        key = name if rows_of[name] == 1 else f"{name}#{rows_of[name]}"
        while key in keys:  # a file may have the name of another one's second row
            key += "#"
        keys[key] = None
    return list(keys)


def file_name(cell: str) -> str:
    """Normalises the path in a cell."""
    return os.path.normpath(cell).replace(os.sep, "/")
