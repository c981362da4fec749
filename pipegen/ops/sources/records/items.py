"""Features with any number of items per record, such as boxes, or of classes: read once for all records, and held in memory like those of
arrays."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from zipfile import BadZipFile

from pipegen.errors import OpError
from pipegen.kept import keep_or_warn, open_kept
from pipegen.memory import available_cores
from pipegen.ops.kinds.base import Column
from pipegen.ops.kinds.numbering import counted_up, item_number_type, number_name
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.columns import split_text
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.kinds.base import Place
    from pipegen.ops.sources.features.any_kind import AnyKind
    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.index import Indexed
    from pipegen.ops.sources.records.paths import Found

    Values = Sequence[Any]
    """The stored value of each record: a list of numbers or texts, perhaps nested, or an array."""

_THREADS = 16


class Stored(Protocol):
    """A source of records, as far as its items are read; see `RecordSource`."""

    @property
    def features(self) -> dict[str, RecordFeature]: ...

    @property
    def kept_in(self) -> Path | None: ...

    def stored_values(self, name: str, key: str, shard: Found, offsets: Ints, lengths: Ints) -> Values: ...


def items_of_records(source: Stored, found: Indexed) -> tuple[dict[str, Column], list[Note]]:
    """Reads the features of items of all records, or finds them in the source's folder; see `read_items`."""
    features = {name: f for name, f in source.features.items() if f.several or not kind_of(f).labels}
    return read_items(features, partial(_values, source, found), lambda _: found.place, partial(_Kept, source, found))


def read_items(
    features: Mapping[str, AnyKind], values: Callable[[str], Values], place_in: Callable[[str], Place], kept: Callable[[str], _Kept] | None
) -> tuple[dict[str, Column], list[Note]]:
    """Reads the features of items of all records. Returns them, those that others are `with` first, and findings.

    Args:
        features: All features of the source, but for labels that are not read here.
        values: Reads the values of a feature.
        place_in: Returns the function that describes the place of a record's value of a feature.
        kept: Returns where the items of a feature are kept, if anywhere.

    Raises:
        OpError: `PG431` for a value that cannot be one of the feature, `PG418` for another number of items than that of the feature that it
            is `with`; or an error of the kind.
    """
    wanted = {name: feature for name, feature in features.items() if kind_of(feature).ragged or kind_of(feature).labels}
    columns: dict[str, Column] = {}
    notes: list[Note] = []
    for name in sorted(wanted, key=lambda name: wanted[name].home is not None):
        feature = wanted[name]
        home = columns[feature.home].values.lengths.tolist() if feature.home is not None else None
        file, place = kept(name) if kept is not None else None, place_in(name)
        items = file.read() if file is not None else None
        try:
            if items is None:
                items = _items(name, feature, values(name), home, place)
                if file is not None:
                    file.write(items)
            columns[name] = kind_of(feature).read_array(name, feature, items, place)
        except OpError as error:
            own = (error.field or "").startswith("features.")  # set by what reads labels, too
            field = error.field if own else f"features.{name}" + (f".{error.field}" if error.field else "")
            raise OpError(error.code, error.message, field=field, help=error.help) from None
        own = columns[name].values.lengths.tolist() if home is not None else []
        odd = next((i for i, (a, b) in enumerate(zip(own, home or own, strict=True)) if a != b), None)
        if odd is not None and home is not None:
            message = f"{place(odd)} has {count(own[odd], 'item')} of `{name}` and {home[odd]} of `{feature.home}`"
            raise OpError("PG418", message, field=f"features.{name}", help=f"each of `{feature.home}` needs one of `{name}`")
        notes += columns[name].notes
    for home in dict.fromkeys(feature.home for feature in features.values() if feature.home and kind_of(feature).marks_items):
        columns[number_name(home)] = Column(counted_up(columns[home].values.lengths), item_number_type(home))
    return columns, notes


def _values(source: Stored, found: Indexed, name: str) -> Values:
    """Reads the stored values of a feature of all records, several files at a time."""
    keys = source.features[name].keys_of(name)

    def read(shard: int) -> Values:
        if not found.index.rows[shard]:
            return ()
        try:
            parts = [source.stored_values(name, key, found.shards[shard], *found.index.of(shard)) for key in keys]
            return parts[0] if len(parts) == 1 else list(map(side_by_side, zip(*parts, strict=True)))
        except (OSError, ValueError) as error:  # a kept index hides damage of the file
            raise OpError("PG430", f"`{name}` of {found.shards[shard].path!r} cannot be read: {error}") from None

    with ThreadPoolExecutor(min(_THREADS, max(1, 4 * available_cores()))) as pool:
        return [value for values in pool.map(read, range(len(found.shards))) for value in values]


def side_by_side(parts: tuple[Any, ...]) -> Any:
    """Joins the lists of a record, with one number per item each, to one row per item; lists of other lengths stay as they are."""
    import numpy as np

    rows = [np.ravel(part) for part in parts]
    return np.stack(rows, -1) if len({len(row) for row in rows}) == 1 else list(parts)


def _items(name: str, feature: AnyKind, values: Values, home: list[int] | None, place: Callable[[int], str]) -> Ragged:
    """Converts stored values to items; numbers one after another get the shape of an item."""
    import numpy as np

    rows, lengths, texts = [], [], False
    for record, value in enumerate(values):
        try:
            row = _array(value if feature.separator is None else split_text(value, feature.separator))
            if row.dtype.kind in "US" and row.size and not kind_of(feature).counts:
                raise ValueError(f"it holds {str(row.flat[0])!r:.40}, not numbers")
            if row.ndim == 1:
                row = row.reshape(-1, *kind_of(feature).item_shape(feature, row.size, home[record] if home is not None else None))
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
    import numpy as np

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


class _Kept:
    """The items of a feature in the folder for indexes.

    Args:
        source: The source.
        found: Its shards.
        name: The feature.
    """

    def __init__(self, source: Stored, found: Indexed, name: str) -> None:
        feature = source.features[name]
        of = feature.home and source.features[feature.home].keys_of(feature.home)
        self._folder, self._records, self._name = source.kept_in, int(found.index.first[-1]), name
        self._file = found.kept_as("items", feature.keys_of(name), feature.kind, of, feature.names, feature.shape, feature.separator)

    def read(self) -> Ragged | None:
        """Returns the items, unless they are missing or damaged."""
        import numpy as np

        if self._folder is None:
            return None
        try:
            with open_kept(self._folder, self._file) as stream, np.load(io.BytesIO(stream.read()), allow_pickle=False) as held:
                found = Ragged(held["values"], held["lengths"])
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None
        whole = found.lengths.shape == (self._records,) and int(found.lengths.sum()) == len(found.values)
        return found if whole else None

    def write(self, items: Ragged) -> None:
        """Keeps the items."""
        import numpy as np

        if self._folder is not None:
            stream = io.BytesIO()
            np.savez(stream, values=items.values, lengths=items.lengths)
            keep_or_warn(self._folder, self._file, [stream.getvalue()], f"`{self._name}` of the records")
