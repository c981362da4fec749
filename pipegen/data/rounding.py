"""Whole numbers in given proportions: for one row, and for a table whose margins are both fixed."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SLACK = Fraction(1, 10**6)
"""Tolerance for a sum of fractions that should be 1."""


def exact(value: float) -> Fraction:
    """Converts a float to the decimal fraction that was written, so that 0.1 of 30 is 3."""
    return Fraction(repr(value))


def apportion(total: int, shares: Sequence[Fraction]) -> list[int]:
    """Splits `total` into whole numbers, each less than one away from its share (largest remainder).

    The shares sum to 1. On a tie the larger share wins, then the later one.
    """
    quotas = [share * total for share in shares]
    sizes = [int(quota) for quota in quotas]
    order = sorted(range(len(shares)), key=lambda i: (quotas[i] - sizes[i], shares[i], i), reverse=True)
    for i in order[: total - sum(sizes)]:
        sizes[i] += 1
    return sizes


def round_table(rows: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """Computes a table with these sums of rows and columns, each cell less than one away from its proportional value.

    Such a table always exists. Rows are rounded up one after the other where their remainders are largest; where every
    such column is full, a unit is moved along rows that were rounded before (an augmenting path of a flow).
    """
    total = sum(rows)
    if total == 0:
        return [[0] * len(columns) for _ in rows]
    table = [[row * column // total for column in columns] for row in rows]
    remainders = [[row * column % total for column in columns] for row in rows]
    rounding = _Rounding(remainders, [column - sum(line[j] for line in table) for j, column in enumerate(columns)])
    for i, row in enumerate(rows):
        for _ in range(row - sum(table[i])):
            rounding.round_up(i)
    for j, holders in enumerate(rounding.holders):
        for i in holders:
            table[i][j] += 1
    return table


class _Rounding:
    """Chooses the cells to round up; `holders` has the rows of these cells for each column, in order."""

    def __init__(self, remainders: list[list[int]], room: list[int]) -> None:
        self.remainders = remainders
        self.room = room
        self.holders: list[dict[int, None]] = [{} for _ in room]

    def _may(self, row: int, column: int) -> bool:
        return self.remainders[row][column] > 0 and row not in self.holders[column]

    def round_up(self, row: int) -> None:
        """Rounds up one more cell of a row."""
        starts = [j for j in range(len(self.room)) if self._may(row, j)]
        starts.sort(key=lambda j: -self.remainders[row][j])
        came: dict[int, tuple[int, int] | None] = dict.fromkeys(starts)  # column -> (the column before, the row that moves)
        queue = deque(starts)
        while queue:
            column = queue.popleft()
            if self.room[column] > 0:
                self._apply(row, column, came)
                return
            for other in range(len(self.room)):
                mover = None if other in came else next((r for r in self.holders[column] if self._may(r, other)), None)
                if mover is not None:
                    came[other] = (column, mover)
                    queue.append(other)
        raise ArithmeticError("the margins of the table do not agree")

    def _apply(self, row: int, column: int, came: dict[int, tuple[int, int] | None]) -> None:
        self.room[column] -= 1
        step = came[column]
        while step is not None:
            before, mover = step
            del self.holders[before][mover]
            self.holders[column][mover] = None
            column, step = before, came[before]
        self.holders[column][row] = None
