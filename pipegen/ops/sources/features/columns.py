"""Reads columns of a table: numbers, class names, lists of class names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.kinds.ragged import Ragged, changed
from pipegen.ops.sources.features.classes import check_written_lists, read_labels
from pipegen.ops.sources.features.label_values import LIST, Values, parts
from pipegen.ops.sources.features.numbers import NumberType, check_cells, whole_number
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from pipegen.ops.sources.features.any_kind import AnyKind

_LARGEST = 3.4028234663852886e38  # the largest float32


def read_numbers(cells: Sequence[str], place: Callable[[int], str], field: str, dtype: NumberType | None, *, weights: bool = False) -> Any:
    """Reads a column as float32 or int64 `(n,)`.

    Args:
        cells: The text of each row.
        place: Describes the place of a row.
        field: The argument that names the column, for errors.
        dtype: The target; `None` is float32 without rounded integers.
        weights: Whether negative numbers are errors.

    Raises:
        OpError: `PG423` for a cell that is not a finite number, or for int64 not an integer; `PG666` for an integer that float32 cannot
            represent.
    """
    values: Any = np.empty(len(cells), dtype or np.float32)
    read = whole_number if dtype == "int64" else _number
    wrong: list[tuple[str, str]] = []
    for row, cell in enumerate(cells):
        try:
            values[row] = read(cell)
        except ValueError:
            wrong.append((_no_number(place(row), cell, whole=dtype == "int64"), "remove such rows, or correct them"))
            continue
        if weights and values[row] < 0:
            help_ = "weights must be 0 or more; an example of weight 2 counts twice in the loss"
            wrong.append((f"{place(row)} has the weight {values[row]:g}", help_))
    if wrong:
        more = f"; {count(len(wrong) - 1, 'more row is wrong', 'more rows are wrong')} in this column" if len(wrong) > 1 else ""
        raise OpError("PG423", wrong[0][0] + more, field=field, help=wrong[0][1])
    if dtype is None and not weights:
        check_cells(cells, place, ".".join(field.split(".")[:2]))
    return values


def _number(cell: str) -> float:
    """Parses a finite number; `ValueError` for anything else."""
    value = float(cell.replace("_", "x"))  # underscores between digits are Python's own
    if not abs(value) <= _LARGEST:
        raise ValueError(cell)
    return value


def _no_number(where: str, cell: str, *, whole: bool) -> str:
    if cell.startswith(LIST):
        return f"{where} holds a list; it needs one number"
    what = "a 64-bit integer" if whole else "a number"
    return f"{where} has {cell!r}, which is not {what}" if cell else f"{where} has an empty cell; it needs a number"


def read_several_labels(
    name: str, cells: Sequence[str], feature: AnyKind, place: Callable[[int], str], notes: list[Note]
) -> tuple[Any, tuple[str, ...]]:
    """Reads a column of any number of classes per row: uint8 `(n, classes)`, 1 for each class of a row, and the classes.

    Args:
        name: The feature, for messages.
        cells: The text of each row, with the meant classes.
        feature: Its arguments, with a separator; blanks around it are ignored.
        place: Describes the place of a row.
        notes: Collects findings about the classes.

    Raises:
        OpError: `PG420` for an unknown class, for lists written as text, and if no row has any.
    """
    flat = [(row, part) for row, cell in enumerate(cells) for part in parts(cell, feature.separator or "")]
    if not flat:
        raise OpError("PG420", f"no row has a label: the column is empty in {count(len(cells), 'row')}")
    check_written_lists([cell for cell in dict.fromkeys(cells) if cell], (), lambda text: f"the label at {place(cells.index(text))}")
    rows, texts = zip(*flat, strict=True)
    of_part = lambda i: f"the label at {place(rows[i])}"  # noqa: E731
    indices, names = read_labels(name, feature.classes, feature.offset, Values.of_texts(texts), of_part, notes)
    values: Any = np.zeros((len(cells), len(names)), np.uint8)
    values[rows, indices] = 1
    return values, names


def split_text(value: Any, separator: str) -> Any:
    """Splits the classes of a record in a text, or in the only text of a list; returns other lists as they are."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    text = listed[0] if isinstance(listed, (list, tuple)) and len(listed) == 1 else listed
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return parts(text, separator) if isinstance(text, str) else value


def classes_used(column: Any, names: tuple[str, ...]) -> set[str]:
    """Returns those of the classes of a column of labels that some row has."""
    values = column.values if isinstance(column, Ragged) else column
    used = values.any(0).nonzero()[0] if values.ndim == 2 else np.unique(values)
    return {names[i] for i in used.tolist()}


def with_classes(column: Any, own: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Renumbers labels with their own classes by another list, which has all used ones."""
    index = {name: i for i, name in enumerate(names)}
    if isinstance(column, Ragged) or column.ndim == 1:
        return changed(column, np.array([index.get(name, -1) for name in own], np.int64).__getitem__)
    values: Any = np.zeros((len(column), len(names)), np.uint8)
    for i, name in enumerate(own):
        if name in index:
            values[:, index[name]] = column[:, i]
    return values
