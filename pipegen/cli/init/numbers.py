"""A first spec for a table without images: numbers in, a class or a number out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.cli.columns import LABELS, Column, columns_of, unused
from pipegen.cli.init.spec import PARTS, batch_for
from pipegen.errors import OpError
from pipegen.ops.sources.tables.table import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.tables.table import TextTable

_SHOWN = 40
_TARGET = "  # the last column; name another where that is not what the model is to predict"


def numbers_in(file: str, separators: Sequence[str | None]) -> tuple[TextTable, str | None, bool] | None:
    """Finds the first way of reading a file in which two columns or more hold numbers.

    Returns:
        The table, what to say of the separator, and whether there is a header; `None` where there is no such way.
    """
    for separator in separators:
        try:
            table = read_table("", file, separator=separator, header=False)
        except OpError:
            continue
        if table.width < 2 or table.num_rows < 2:
            continue
        headed = read_table("", file, separator=separator, header=True)
        below = columns_of(headed)
        # A first row that is text where all others have numbers is a header.
        header = any(c.numbers is not None and not p.numbers for c, p in zip(below, columns_of(table), strict=True))
        if sum(c.numbers is not None for c in (below if header else columns_of(table))) >= 2:
            return (headed if header else table), separator, header
    return None


def number_lines(table: TextTable) -> tuple[list[str], list[str], str]:
    """Writes what a spec says of a table of numbers.

    Returns:
        The lines of `features`, those after the source, and a few words on what was found.
    """
    columns = columns_of(table)
    label = _label(columns)
    target = None if label is not None else next(c for c in reversed(columns) if c.numbers is not None)
    chosen = label or target
    inputs = [c for c in columns if c.numbers is not None and c is not chosen and c.name.lower() not in ("id", "index")]
    shown = inputs[:_SHOWN]
    features = [f"      inputs: {{kind: tensor, columns: [{', '.join(c.called for c in shown)}]}}"]
    name = "label" if label is not None else "target"
    if chosen is not None:
        kind = "label" if label is not None else "tensor"
        guessed = _TARGET if target is not None and target.name.lower() not in LABELS else ""
        features.append(f"      {name}: {{kind: {kind}, column: {chosen.called}}}{guessed}")
    features += unused(columns, {c.number for c in (*shown, *([chosen] if chosen else []))}, "      ")
    rows = table.num_rows
    stratify = ", stratify: label" if label is not None else ""
    after = [
        f"splits: {{{PARTS}{stratify}}}",
        f"batch: {{size: {batch_for(rows)}}}",
        f"output: {{x: inputs, y: {name}}}",
    ]
    classes = f", in {label.values} classes" if label is not None else ""
    return features, after, f"{rows:,} rows of {len(inputs)} numbers{classes}"


def _label(columns: list[Column]) -> Column | None:
    """Finds the column of classes: one that is called so, or one of text."""
    named = [c for c in columns if c.labels and c.name.lower() in LABELS]
    text = [c for c in columns if c.labels and c.numbers is None]
    return next(iter(named), min(text, key=lambda c: c.values, default=None))
