"""Looks at the columns of a table for a first spec: numbers, names of classes, or neither."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.cli.init.spec import plain
from pipegen.spec.compose import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipegen.ops.sources.tables.table import TextTable


LABELS = ("label", "labels", "class", "class_name", "classname", "target", "category", "y")
"""What columns of labels are called."""
_WEIGHTS = ("weight", "weights", "sample_weight")
_MOST_CLASSES = 1000
_SHOWN = 12


@dataclass(frozen=True)
class Column:
    """Describes one column.

    Attributes:
        number: Its number, from 0.
        called: How a spec names it.
        name: What a feature of it may be called.
        numbers: The least and the largest number; `None` where a cell is none.
        whole: Whether all numbers are whole.
        values: How many different cells it has.
        empty: Cells that hold nothing.
        repeats: Whether each value stands in two rows on average, and there is more than one: it may be a class.
    """

    number: int
    called: str
    name: str
    numbers: tuple[float, float] | None
    whole: bool
    values: int
    empty: int
    repeats: bool

    @property
    def labels(self) -> bool:
        """Tells whether it may hold classes."""
        return self.repeats and not self.empty and self.values <= _MOST_CLASSES and (self.numbers is None or self.whole)

    def feature(self) -> str:
        """Returns a line of `features` that reads it, or that says why none can."""
        if self.empty:
            return f"{plain(self.name)}: not read, as {self.empty:,} {'cell is' if self.empty == 1 else 'cells are'} empty"
        if self.numbers is not None and self.name.lower() in _WEIGHTS and self.numbers[0] >= 0:
            return f"{self.name}: {{kind: weight, column: {self.called}}}  # for `output: {{sample_weight: {self.name}}}`"
        if self.numbers is not None:
            low, high = self.numbers
            return f"{self.name}: {{kind: tensor, column: {self.called}}}  # from {low:g} to {high:g}"
        if self.labels:
            return f"{self.name}: {{kind: label, column: {self.called}}}  # {self.values:,} classes"
        return f"{plain(self.name)}: not read, as it is text of {self.values:,} {'value' if self.values == 1 else 'different values'}"


def columns_of(table: TextTable) -> list[Column]:
    """Returns the columns of a table, in order."""
    taken: set[str] = set()
    return [_column(table, number, taken) for number in range(table.width)]


def _column(table: TextTable, number: int, taken: set[str]) -> Column:
    cells = [row[number].strip() for row in table.rows]
    numbers = [_number(cell) for cell in cells]
    known = [value for value in numbers if value is not None]
    values = len(set(cells))
    named = table.names[number] if table.names is not None else f"column_{number}"
    name = re.sub(r"\W+", "_", named, flags=re.ASCII).strip("_") or f"column_{number}"
    name = f"column_{name}" if name[0].isdigit() else name
    name = name if name not in taken else f"{name}_{number}"
    taken.add(name)
    return Column(
        number,
        flow_scalar(table.names[number]) if table.names is not None and table.names.count(named) == 1 else str(number),
        name,
        (min(known), max(known)) if known and len(known) == len(cells) else None,
        all(value.is_integer() for value in known) and not any("." in cell for cell in cells),
        values,
        cells.count(""),
        1 < values <= len(cells) // 2,
    )


def _number(cell: str) -> float | None:
    try:
        value = float(cell.replace("_", "x"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def unused(columns: list[Column], used: Collection[int], indent: str) -> list[str]:
    """Returns comments on the columns that a spec does not read, each as the line that would."""
    left = [column for column in columns if column.number not in used]
    lines = [f"{indent}# {column.feature()}" for column in left[:_SHOWN]]
    return [*lines, f"{indent}# and {len(left) - _SHOWN:,} more columns"] if len(left) > _SHOWN else lines
