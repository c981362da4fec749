"""Reads the features of which a record has any number of items, and several labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Place, Ragged, counted_up, spread
from pipegen.ops.fields.labels import split_text
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import ExampleClass, InstanceNumber, ItemClass, item_type, timeline_of
from pipegen.ops.kinds.events import events_of_frames
from pipegen.ops.kinds.mask import number_name
from pipegen.ops.sources.features.feature import AnyKind, Feature

StoredValues = Sequence[Any]
"""The stored value of each record: a list of numbers or texts, perhaps nested, or an array."""


@dataclass(frozen=True)
class Rows:
    """The rows that records of several rows have: their values of a feature, and their places; and the numbers of those of each record."""

    values: Callable[[str], StoredValues]
    place_in: Callable[[str], Place]
    of_records: Sequence[Sequence[int]]

    def joined(self, items: Ragged) -> Ragged:
        """Joins the items of the rows of each record."""
        order: Ints = np.array([row for rows in self.of_records for row in rows], np.int64)
        lengths = [int(items.lengths[list(rows)].sum()) for rows in self.of_records]
        return Ragged(items[order].values, np.array(lengths, np.int64))


def read_items(
    features: Mapping[str, AnyKind],
    values: Callable[[str], StoredValues],
    place_in: Callable[[str], Place],
    kept: Callable[[str, Callable[[], Ragged]], Ragged] | None = None,
    used: Ints | None = None,
    rows: Rows | None = None,
) -> dict[str, Column]:
    """Reads the features of items of all records. Returns those that others are `with` first.

    Args:
        features: All features of the source, but for labels that are not read here.
        values: Reads the values of a feature.
        place_in: Returns the function that describes the place of a record's value of a feature.
        kept: Returns the kept items of a feature, else those that the given function reads, and keeps them.
        used: The numbers of the records that are used, by default of all; others have no items.
        rows: The rows that the records are made of, if they have several; labels of frames are read for whole records.

    Raises:
        OpError: `PG431` for a value that cannot be one of the feature, `PG418` for another number of items than that of the feature that it
            is `with`; or an error of the kind.
    """
    wanted = {name: feature for name, feature in features.items() if feature.own_kind.ragged or feature.own_kind.has(ExampleClass)}
    stored: dict[str, Ragged] = {}
    of_rows: dict[str, Ints] = {}
    columns: dict[str, Column] = {}
    for name in homes_first(wanted):
        feature, events = wanted[name], stored[wanted[name].home or ""] if wanted[name].home else None
        place, home, hop = place_in(name), None if events is None else events.lengths, hop_of(name, wanted)
        read = partial(_items, name, feature, values, home, place)
        if rows is not None and hop is None:
            read = partial(_items_of_rows, name, feature, rows, of_rows)
        elif hop is not None:
            read = partial(items_of_frames, name, feature, values, events, hop, place)
        try:
            items = stored[name] = kept(name, read) if kept is not None else read()
            columns[name] = _of_used(name, feature, items, place, used)
        except OpError as error:
            own = (error.field or "").startswith("features.")  # set by what reads labels, too
            raise error if own else error.below(f"features.{name}") from None
        if home is not None:
            odd = items_apart(name, items.lengths, str(feature.home), home, place, used)
            if odd is not None:
                raise odd
    return columns | item_numbers(features, columns)


def _items_of_rows(name: str, feature: AnyKind, rows: Rows, lengths: dict[str, Ints]) -> Ragged:
    """Reads the items of records of several rows, whose `lengths` it notes; in each row, features that belong together need as many."""
    home, place = None if feature.home is None else lengths[feature.home], rows.place_in(name)
    items = _items(name, feature, rows.values, home, place)
    lengths[name] = items.lengths
    odd = None if home is None else items_apart(name, items.lengths, str(feature.home), home, place)
    if odd is not None:
        raise odd
    return rows.joined(items)


def homes_first(features: Mapping[str, Any]) -> list[str]:
    """Returns the names of features, those that others are `with` before these."""
    return sorted(features, key=lambda name: getattr(features[name], "home", None) is not None)


def hop_of(name: str, features: Mapping[str, Any]) -> float | None:
    """Returns the seconds between two frames of which a feature has a value each, as the events that it is or is `with`; else `None`."""
    milliseconds = getattr(features[getattr(features[name], "home", None) or name], "hop_ms", None)
    return None if milliseconds is None else milliseconds / 1000


def items_of_frames(
    name: str, feature: AnyKind, values: Callable[[str], StoredValues], events: Ragged | None, hop: float, place: Place
) -> Ragged:
    """Reads values for each frame as those of events: `events` themselves, float64 `(events, 2)`, if they are `None`, else the value of
    their first frames. Raises `OpError` `PG431` for values that are no labels, `PG418` for fewer frames than `events` have."""

    def plain(name: str) -> StoredValues:
        return [["" if one is None else one for one in row] if isinstance(row, (list, tuple)) else row for row in values(name)]

    frames = _items(name, feature, plain, None, place)
    of_classes = frames.values.ndim > 1 and feature.own_kind.has(ItemClass)
    if events is None or of_classes:
        _check_labels(name, frames, place)
        found, labels = events_of_frames(frames, hop)
        if events is None:
            return found
        if not np.array_equal(found.lengths, events.lengths) or not np.array_equal(found.values, events.values):
            message = f"the frames of `{name}` have other events than those of `{feature.home}`"
            raise OpError("PG418", message, help=f"read `{name}` and `{feature.home}` from the same list")
        return Ragged(labels, events.lengths)
    records: Ints = np.repeat(np.arange(len(events)), events.lengths)
    first, end = np.rint(events.values / hop).astype(np.int64).T
    short = np.flatnonzero(end > frames.lengths[records])
    if len(short):
        record, needed = int(records[short[0]]), int(end[short[0]])
        message = (
            f"{place(record)} has {count(int(frames.lengths[record]), 'frame')} of `{name}`, and at least {needed} of `{feature.home}`"
        )
        raise OpError("PG418", message, help=f"each frame of `{feature.home}` needs one of `{name}`")
    starts = np.cumsum(frames.lengths) - frames.lengths
    return Ragged(frames.values[starts[records] + first], events.lengths)


def _check_labels(name: str, frames: Ragged, place: Place) -> None:
    """Raises `OpError` `PG431` if the values of frames are no class indices, or with several classes not all 0 or 1."""
    if frames.values.dtype.kind not in "iufb":
        return
    several, given = frames.values.ndim > 1, frames.values
    wrong = (given != 0) & (given != 1) if several else given != np.rint(given)
    if wrong.any():
        frame = int(np.argmax(wrong.reshape(len(given), -1).any(1)))
        value = given[frame][np.argmax(wrong[frame])] if several else given[frame]
        needed = "frames of several classes hold 0 or 1" if several else "the label of a frame is a class index, or a name"
        record, number = frames.place(frame)
        raise OpError("PG431", f"{place(record)} cannot be `{name}`: frame {number} holds {value:g}; {needed}")


def items_apart(name: str, own: Ints, home_name: str, home: Ints, place: Place, used: Ints | None = None) -> OpError | None:
    """Returns the `PG418` error of a feature with more or fewer items than the feature that it is `with`; `None` without one."""
    odd = np.flatnonzero(own != home)
    odd = odd if used is None else np.intersect1d(odd, used)
    if not len(odd):
        return None
    first = int(odd[0])
    message = f"{place(first)} has {count(int(own[first]), 'item')} of `{name}` and {int(home[first])} of `{home_name}`"
    return OpError("PG418", message, field=f"features.{name}", help=f"each of `{home_name}` needs one of `{name}`")


def item_numbers(features: Mapping[str, Feature], columns: Mapping[str, Column]) -> dict[str, Column]:
    """Numbers the items of masks of instances."""
    homes = dict.fromkeys(feature.home for feature in features.values() if feature.home and feature.own_kind.has(InstanceNumber))
    return {
        number_name(home): Column(counted_up(columns[home].values.lengths), item_type("item_number", home, "float32")) for home in homes
    }


def earlier(column: Column, seconds: Any) -> Column:
    """Moves what happens in the sounds of all records to earlier times, by `seconds` each, float64 `(n,)`."""
    items: Ragged = column.values
    moved = timeline_of(column.type.kind).earlier(items.values, np.repeat(seconds, items.lengths), column.type)
    return replace(column, values=Ragged(moved, items.lengths))


def _of_used(name: str, feature: AnyKind, items: Ragged, place: Place, used: Ints | None) -> Column:
    """Reads the items of the records that are used; the room for items, and their classes, are those of these records."""
    if used is None:
        return feature.own_kind.read_array(name, feature, items, place)
    numbers, total = used.tolist(), len(items)
    found = feature.own_kind.read_array(name, feature, items[used], lambda i: place(numbers[i]))
    stays = None if found.stays is None else spread(found.stays, used, total)
    return replace(found, values=spread(found.values, used, total), stays=stays)


def side_by_side(parts: tuple[Any, ...]) -> Any:
    """Joins the lists of a record, with one number per item each, to one row per item; others stay as they are, and are an error later."""
    try:
        rows = [np.ravel(part) for part in parts]
    except ValueError:  # lists within a list
        return list(parts)
    return np.stack(rows, -1) if len({len(row) for row in rows}) == 1 else list(parts)


def _items(name: str, feature: AnyKind, values: Callable[[str], StoredValues], home: Ints | None, place: Place) -> Ragged:
    """Reads stored values, and converts them to items; numbers one after another get the shape of an item."""
    rows, lengths, texts = [], [], False
    counts = home.tolist() if home is not None else None
    for record, value in enumerate(values(name)):
        try:
            row = _array(value if feature.separator is None else split_text(value, feature.separator))
            if row.dtype.kind in "US" and row.size and feature.hop_ms is None and not feature.own_kind.has(ExampleClass, ItemClass):
                raise ValueError(f"it holds {str(row.flat[0])!r:.40}, not numbers")
            if row.ndim == 1:
                row = row.reshape(-1, *feature.own_kind.item_shape(feature, row.size, counts[record] if counts is not None else None))
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
        lengths = list(dict.fromkeys(len(one) for one in listed if hasattr(one, "__len__"))) if row.ndim else []
        if len(lengths) > 1:
            raise ValueError(f"it has lists of {lengths[0]} and of {count(lengths[1], 'item')}")
        raise ValueError("its items are no numbers" if row.ndim else "it is one value, not a list")
    return row
