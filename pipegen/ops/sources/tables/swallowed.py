"""Finds rows swallowed by a stray quote, which makes one cell of everything up to the next quote."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENDING = re.compile(r"\.[^\W\d_]\w{0,4}\Z")
_COMPARED = 1000
"""Rows whose cells are compared."""


class Inside(NamedTuple):
    """Rows that a cell of several lines may hold.

    Attributes:
        rows: The rows; the first and the last include the other cells of the row.
        place: The column of the cell.
    """

    rows: list[list[str]]
    place: int


def rows_inside(row: Sequence[str], separator: str, width: int) -> Inside | None:
    """Returns the rows in a cell of several lines, if each line has as many cells as the table has columns.

    Args:
        row: The cells, of which one spans lines.
        separator: The separator of cells.
        width: The number of columns.
    """
    for place, cell in enumerate(row):
        lines = cell.splitlines()
        if len(lines) < 2:
            continue
        found = [[part.strip() for part in line.split(separator)] for line in lines]
        found[0], found[-1] = [*row[:place], *found[0]], [*found[-1], *row[place + 1 :]]
        if all(len(inner) == width for inner in found):
            return Inside(found, place)
    return None


def verdict(inside: Inside, others: Sequence[Sequence[str]]) -> Literal["rows", "perhaps", "text"]:
    """Compares possible rows of a cell with the table's rows: numbers, file names, and repeated texts.

    Args:
        inside: The result of `rows_inside`.
        others: The other rows.

    Returns:
        `rows` if the lines are like them, `perhaps` if only the number of cells agrees, `text` if a line differs.
    """
    sure = False
    last = len(inside.rows) - 1
    for column, every in enumerate(zip(*inside.rows, strict=True)):
        # The row's own cells before and after the cell prove nothing.
        own = [cell for i, cell in enumerate(every) if (i or column >= inside.place) and (i < last or column <= inside.place)]
        there = [row[column] for row in others[:_COMPARED]] or [every[0]]
        forms, values = set(map(_form, there)), set(there)
        if any(_form(cell) not in forms for cell in own):
            return "text"
        sure |= any(_form(cell) not in ("text", "nothing") or (cell and cell in values) for cell in own)
    return "rows" if sure else "perhaps"


def _form(cell: str) -> str:
    """Classifies a cell: a number, a file ending, a text, or nothing."""
    cell = cell.strip()
    if not cell:
        return "nothing"
    try:
        float(cell)
    except ValueError:
        ending = _ENDING.search(cell)
        return ending[0].lower() if ending is not None else "text"
    return "number"
