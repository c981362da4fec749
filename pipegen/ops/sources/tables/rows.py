"""Selects the rows of a table that are records, and names those with files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from pipegen.ops.sources.features.predicate import Rows, matching, some
from pipegen.ops.sources.listing.base import LeftOut, Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.ops.sources.tables.features import InTable
    from pipegen.ops.sources.tables.join import Partners


class Records(Rows, Protocol):
    """Rows of which some are records: those of a table, or records whose short values are read like one."""

    def notes(self) -> Iterable[Note]: ...
    def labels(self, wanted: str | int, field: str) -> Sequence[str]: ...


def kept_rows(
    table: Records, where: str | None, labels: Mapping[str, InTable], partners: Partners | None
) -> tuple[Sequence[int], tuple[Note, ...]]:
    """Leaves out rows that a join drops, rows that `where` excludes, and rows of ignored classes.

    Args:
        table: The rows, joined if there is a join.
        where: The predicate.
        labels: The features that are labels in columns.
        partners: The joined table.

    Returns:
        The remaining rows, rising, and findings.

    Raises:
        OpErrors: `PG402` if no row is left, `PG421` for unknown columns, `PG450` for keys with no or several partners, `PG452` for cells
            that cannot be compared.
    """
    rows: Sequence[int] = range(table.num_rows)
    notes = list(table.notes())
    if partners is not None and partners.drops:
        rows = partners.rows()
        if len(rows) < table.num_rows:
            one, several = (f"{what} whose key the joined table lacks" for what in (table.unit.removesuffix("s"), table.unit))
            gone = LeftOut(table.num_rows - len(rows), one, several)
            told = f"{gone.number} {one.split()[0] if gone.number == 1 else table.unit} of {table.num_rows:,} left out"
            notes.append(Note("PG411", f"{told}: {partners.right.called} lacks the key", field="join.missing", left_out=(gone,)))
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
    if partners is not None:
        partners.require(rows)
    return rows, tuple(notes)


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
