"""Reads columns that are held in memory: numbers (int64, or float32 without rounding integers), lists of class names, items."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import Advice, write
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.kinds.base import Column, ExampleClass, InstanceNumber, ItemClass, kind_of
from pipegen.ops.kinds.item_number import counted_up, item_number_type, number_name
from pipegen.ops.kinds.ragged import Ragged, changed, spread
from pipegen.ops.sources.features.classes import check_written_lists, read_labels
from pipegen.ops.sources.features.label_values import LIST, Values, parts
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.ops.kinds.base import Place
    from pipegen.ops.sources.features.any_kind import AnyKind
    from pipegen.ops.sources.features.feature import NumberType
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.strings import Ints

    StoredValues = Sequence[Any]
    """The stored value of each record: a list of numbers or texts, perhaps nested, or an array."""

EXACT = 2**24  # largest integer up to which float32 is exact
_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?", re.ASCII)
_INT64 = 2**63


def whole_number(text: str) -> int:
    """Parses an integer without going through a float; `ValueError` for anything else, or beyond int64."""
    found = _WHOLE.fullmatch(text.strip())
    number = int(found[1]) if found is not None and len(text) < 100 else _INT64
    if not -_INT64 <= number < _INT64:
        raise ValueError(text)
    return number


def without_fractions(values: Any, dtype: NumberType | None) -> Any:
    """Converts integral floats to int64 if that is the target, to join them with integers that no float can represent."""
    if dtype != "int64" or values.dtype.kind != "f":
        return values
    whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < float(_INT64))
    return values.astype(np.int64) if whole.all() else values


def check_cells(cells: Sequence[str], place: Callable[[int], str], field: str) -> None:
    """Raises `PG666` if float32 would round a column of integers; columns with other numbers may be rounded."""
    found = [_WHOLE.fullmatch(cell) for cell in cells]
    if None in found:
        return
    for row, match in enumerate(found):
        number = int(match[1]) if match is not None else 0
        if abs(number) > EXACT and int(np.float32(number)) != number:
            raise rounded(place(row), number, field)


def as_numbers(values: Any, dtype: NumberType | None, row: Callable[[int], OpError], place: Callable[[int], str], field: str | None) -> Any:
    """Converts an array to float32 or int64.

    Args:
        values: Numbers `(n, ...)`.
        dtype: The target; `None` is float32 without rounded integers.
        row: Makes the error of a row with a number that is not finite, or for int64 not an integer.
        place: Describes the place of a row.
        field: The argument of errors.

    Raises:
        OpError: From `row`; `PG666`.
    """

    def first(wrong: Any) -> int | None:
        rows = wrong.any(tuple(range(1, wrong.ndim)))
        return int(np.argmax(rows)) if rows.any() else None

    if dtype == "int64":
        if values.dtype.kind == "f":
            odd = first(~(np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < float(_INT64))))
        else:
            odd = first(values >= np.uint64(_INT64)) if values.dtype == np.uint64 else None
        if odd is not None:
            raise row(odd)
        return values.astype(np.int64)
    with np.errstate(all="ignore"):  # overflow becomes infinite, which is found below
        found = values.astype(np.float32)
    odd = first(~np.isfinite(found))
    if odd is not None:
        raise row(odd)
    if dtype is None and values.size:
        lost = changed_whole(values, found)
        odd = first(lost) if lost is not None else None
        if odd is not None:
            at = np.unravel_index(int(np.argmax(lost[odd])), lost[odd].shape) if lost.ndim > 1 else ()
            raise rounded(place(odd), int(values[odd][at]), field)
    return found


def changed_whole(values: Any, found: Any) -> Any:
    """Tells which integers float32 rounded, bool `(n, ...)`; `None` if that is impossible, or if some values are fractions."""
    if values.dtype.kind in "iu" and values.dtype.itemsize >= 4:
        if int(values.max()) <= EXACT and int(values.min()) >= -EXACT:
            return None
        with np.errstate(all="ignore"):
            return found.astype(values.dtype) != values
    if values.dtype.kind == "f" and values.dtype.itemsize > 4 and bool((np.floor(values) == values).all()):
        return found.astype(values.dtype) != values
    return None


def rounded(where: str, number: int, field: str | None) -> OpError:
    """Returns the `PG666` error of an integer that would be rounded."""
    near = int(np.float32(number))
    message = f"{where} holds {number}, which float32 would round to {near}"
    return OpError("PG666", message, field=field, help=keep_whole())


def keep_whole() -> tuple[Advice, Advice]:
    """Returns advice for an integer that float32 cannot represent."""
    return (
        write("dtype: int64", "arguments", "{} keeps integers exact"),
        write("dtype: float32", "arguments", "{} rounds them"),
    )


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
    """Returns the classes of a column of labels that some row has."""
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


def read_items(
    features: Mapping[str, AnyKind],
    values: Callable[[str], StoredValues],
    place_in: Callable[[str], Place],
    kept: Callable[[str, Callable[[], Ragged]], Ragged] | None = None,
    used: Ints | None = None,
) -> dict[str, Column]:
    """Reads the features of items of all records. Returns those that others are `with` first.

    Args:
        features: All features of the source, but for labels that are not read here.
        values: Reads the values of a feature.
        place_in: Returns the function that describes the place of a record's value of a feature.
        kept: Returns the kept items of a feature, else those that the given function reads, and keeps them.
        used: The numbers of the records that are used, by default of all; others have no items.

    Raises:
        OpError: `PG431` for a value that cannot be one of the feature, `PG418` for another number of items than that of the feature that it
            is `with`; or an error of the kind.
    """
    wanted = {name: feature for name, feature in features.items() if kind_of(feature).ragged or kind_of(feature).has(ExampleClass)}
    stored: dict[str, Ragged] = {}
    columns: dict[str, Column] = {}
    for name in sorted(wanted, key=lambda name: wanted[name].home is not None):
        feature, home = wanted[name], stored[wanted[name].home or ""].lengths if wanted[name].home else None
        place = place_in(name)
        read = partial(_items, name, feature, values, home, place)
        try:
            items = stored[name] = kept(name, read) if kept is not None else read()
            columns[name] = _of_used(name, feature, items, place, used)
        except OpError as error:
            own = (error.field or "").startswith("features.")  # set by what reads labels, too
            raise error if own else error.below(f"features.{name}") from None
        odd = np.flatnonzero(items.lengths != home) if home is not None else np.zeros(0, np.int64)
        odd = odd if used is None else np.intersect1d(odd, used)
        if home is not None and len(odd):
            first, has = int(odd[0]), count(int(items.lengths[odd[0]]), "item")
            message = f"{place(first)} has {has} of `{name}` and {int(home[first])} of `{feature.home}`"
            raise OpError("PG418", message, field=f"features.{name}", help=f"each of `{feature.home}` needs one of `{name}`")
    for home_name in dict.fromkeys(feature.home for feature in features.values() if feature.home and kind_of(feature).has(InstanceNumber)):
        columns[number_name(home_name)] = Column(counted_up(columns[home_name].values.lengths), item_number_type(home_name))
    return columns


def _of_used(name: str, feature: AnyKind, items: Ragged, place: Place, used: Ints | None) -> Column:
    """Reads the items of the records that are used; the room for items, and their classes, are those of these records."""
    if used is None:
        return kind_of(feature).read_array(name, feature, items, place)
    numbers, total = used.tolist(), len(items)
    found = kind_of(feature).read_array(name, feature, items[used], lambda i: place(numbers[i]))
    stays = None if found.stays is None else spread(found.stays, used, total)
    return replace(found, values=spread(found.values, used, total), stays=stays)


def side_by_side(parts: tuple[Any, ...]) -> Any:
    """Joins the lists of a record, with one number per item each, to one row per item; lists of other lengths stay as they are."""
    rows = [np.ravel(part) for part in parts]
    return np.stack(rows, -1) if len({len(row) for row in rows}) == 1 else list(parts)


def _items(name: str, feature: AnyKind, values: Callable[[str], StoredValues], home: Ints | None, place: Place) -> Ragged:
    """Reads stored values, and converts them to items; numbers one after another get the shape of an item."""
    rows, lengths, texts = [], [], False
    counts = home.tolist() if home is not None else None
    for record, value in enumerate(values(name)):
        try:
            row = _array(value if feature.separator is None else split_text(value, feature.separator))
            if row.dtype.kind in "US" and row.size and not kind_of(feature).has(ExampleClass, ItemClass):
                raise ValueError(f"it holds {str(row.flat[0])!r:.40}, not numbers")
            if row.ndim == 1:
                row = row.reshape(-1, *kind_of(feature).item_shape(feature, row.size, counts[record] if counts is not None else None))
        except ValueError as error:
            raise OpError("PG431", f"{place(record)} cannot be `{name}`: {error}") from None
        texts = texts or row.dtype.kind in "USO"
        rows.append(row)
        lengths.append(len(row))
    full = [row for row in rows if len(row)]
    if len({row.shape[1:] for row in full}) > 1:
        odd = next(i for i, row in enumerate(rows) if len(row) and row.shape[1:] != full[0].shape[1:])
        message = f"{place(odd)} has items of the shape {rows[odd].shape[1:]}, but others have {full[0].shape[1:]}"
        raise OpError("PG431", message)
    held = np.concatenate(full) if full else np.zeros(0, np.float32)
    return Ragged(held.astype(str) if texts else held, np.array(lengths, np.int64))


def _array(value: Any) -> Any:
    """Converts the list of a record to an array, bytes to texts; `ValueError` if it is none."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, (list, tuple)) and any(isinstance(one, bytes) for one in listed):
        try:
            value = [one.decode() if isinstance(one, bytes) else one for one in listed]
        except UnicodeDecodeError:
            raise ValueError("it holds bytes that are not text") from None
    try:
        row = np.asarray(value)
    except ValueError:
        row = np.empty(1, object)
    if row.dtype == object or row.ndim == 0:
        raise ValueError("its items differ in length, or are no numbers" if row.ndim else "it is one value, not a list")
    return row
