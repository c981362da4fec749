"""Features of records with any number of items or of classes: the values are read once from all files, and kept beside the index."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol
from zipfile import BadZipFile

from pipegen.errors import OpError
from pipegen.kept import keep_or_warn, open_kept
from pipegen.lazy import np
from pipegen.memory import available_cores
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.columns import read_items, side_by_side

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.kinds.base import Column
    from pipegen.ops.sources.features.columns import StoredValues
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.index import Indexed
    from pipegen.ops.sources.shards.paths import Found


_THREADS = 16


class Stored(Protocol):
    """A source of records, as far as its items are read; see `RecordSource`."""

    @property
    def features(self) -> dict[str, RecordFeature]: ...
    @property
    def kept_in(self) -> Path | None: ...
    def stored_values(self, name: str, key: str, shard: Found, offsets: Ints, lengths: Ints) -> StoredValues: ...


def items_of_records(source: Stored, found: Indexed) -> dict[str, Column]:
    """Reads the features of items of all records, or finds them in the source's folder; see `read_items`."""
    features = {name: f for name, f in source.features.items() if f.several or not kind_of(f).labels}
    used = found.kept.nonzero()[0] if found.kept is not None else None
    return read_items(features, partial(_values, source, found), lambda _: found.place, partial(_Kept, source, found), used)


def _values(source: Stored, found: Indexed, name: str) -> StoredValues:
    """Reads the stored values of a feature of all records, several files at a time."""
    keys = source.features[name].keys_of(name)

    def read(shard: int) -> StoredValues:
        if not found.index.rows[shard]:
            return ()
        try:
            parts = [source.stored_values(name, key, found.shards[shard], *found.index.of(shard)) for key in keys]
            return parts[0] if len(parts) == 1 else list(map(side_by_side, zip(*parts, strict=True)))
        except (OSError, ValueError) as error:  # a kept index hides damage of the file
            raise OpError("PG430", f"`{name}` of {found.shards[shard].path!r} cannot be read: {error}") from None

    with ThreadPoolExecutor(min(_THREADS, max(1, 4 * available_cores()))) as pool:
        return [value for values in pool.map(read, range(len(found.shards))) for value in values]


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
        if self._folder is not None:
            stream = io.BytesIO()
            np.savez(stream, values=items.values, lengths=items.lengths)
            keep_or_warn(self._folder, self._file, [stream.getvalue()], f"`{self._name}` of the records")
