"""Looks at the columns of a table for a first spec: numbers, names of classes, or neither."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.cli.init.spec import plain
from pipegen.spec.compose import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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


MOST_CLASSES = 1000
LABEL_KEYS = frozenset({*LABELS, "cls", "image/class/label", "fine_label"})
_IMAGES = ("image", "img", "picture", "photo", "jpg", "png")
_WORDS = ("label", "class", "target", "categor")
_MOST_NAMED = 6


def last_of(key: str) -> str:
    """Returns the name that a key ends in: of a path all that counts in `tf.Example`, and of others the last part, without what stands for
    numbers."""
    name = key.lower().removesuffix("*").rstrip("-_:/.")
    return name if name in LABEL_KEYS else re.split(r"[/.]", name)[-1]


def image_among(keys: Sequence[str], argument: str = "key") -> tuple[str, list[str]]:
    """Chooses the images: the first that are called so, or the first.

    Args:
        keys: The keys, or columns, of images: at least one.
        argument: What names a key in a feature.

    Returns:
        The key, and comments: where there are several, how to take another, or more of them.
    """
    named = ((key, re.split(r"[/._\-*]", key.lower())) for key in keys)
    chosen = next((key for key, parts in named if any(part in _IMAGES for part in parts)), keys[0])
    others = [key for key in keys if key != chosen]
    if not others:
        return chosen, []
    name = re.sub(r"\W+", "_", last_of(others[0])).strip("_") or "other"
    added = f"`{name if name != 'image' else 'other'}: {{kind: image, {argument}: {flow_scalar(plain(others[0]))}}}`"
    listed = _listed(others)
    return chosen, [
        f"`image` reads {_quoted(chosen)}; {listed} {'is an image' if len(others) == 1 else 'are images'}, too: {added} adds one"
    ]


@dataclass(frozen=True)
class Values:
    """Counts the values under a key that may hold labels.

    Attributes:
        distinct: How many different ones there are; 0 where they are no labels.
        rows: The records that were looked at.
        named: Whether they are names, and no numbers.
    """

    distinct: int
    rows: int
    named: bool

    @property
    def likely(self) -> bool:
        """Returns whether they look like classes: few, each of which several records have."""
        return 1 < self.distinct <= min(MOST_CLASSES, self.rows // 2)


def label_among(seen: Mapping[str, Values], usual: Collection[str], argument: str = "key") -> tuple[str | None, list[str]]:
    """Chooses the labels: what is called so, or else what looks like classes, names before numbers.

    Args:
        seen: The values under the keys that may hold labels, where they were looked at.
        usual: Keys that are called like labels.
        argument: What names a key in a feature.

    Returns:
        The key, or `None`, and comments: why, and what else may be labels, unless the name says enough.
    """
    likely = [key for key, values in seen.items() if values.likely]
    if usual:
        chosen = next((key for key in usual if key in likely), next(iter(usual)))
        others = [key for key in usual if key != chosen]
        return chosen, [f"`label` reads {_quoted(chosen)}; {_listed(others)} may be labels, too"] if others else []
    if not likely:
        return None, []
    chosen = min(likely, key=lambda key: (not any(word in key.lower() for word in _WORDS), not seen[key].named, seen[key].distinct))
    others = [key for key in likely if key != chosen]
    counted = f"{seen[chosen].distinct:,} values in {seen[chosen].rows:,} records"
    said = f"`label` reads {_quoted(chosen)}, which has {counted}: no key is called like a label"
    return chosen, [said, *([f"{_listed(others)} may be labels, too: `{argument}` takes another"] if others else [])]


def _quoted(key: str) -> str:
    return f"`{plain(key)}`"


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MOST_NAMED
    return " and ".join([", ".join(map(_quoted, keys[:_MOST_NAMED])), *([f"{more:,} more"] if more > 0 else [])])
