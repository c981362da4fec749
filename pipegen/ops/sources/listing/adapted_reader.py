"""A reader with renamed features, other classes, or constant features."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.listing.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.listing.reader import Hold, Read, Together


@dataclass(frozen=True)
class Changes:
    """How the records of a reader differ from the stored ones."""

    names: Mapping[str, str] = field(default_factory=dict)  # the reader's name of each renamed feature, by the new name
    tables: Mapping[str, Ints] = field(default_factory=dict)
    """For labels by their new names, the meant class of each stored class index: int64."""
    values: Mapping[str, Any] = field(default_factory=dict)  # constant features by their new names: an array of the shape of one

    def own(self, name: str) -> str:
        """Returns the reader's name of a feature."""
        return self.names.get(name, name)


_UNCHANGED = (
    "in_place", "at_once", "called", "starts", "checksums",
    "file_of", "check", "hold_window", "keeps", "damaged_files", "digest",
)  # fmt: skip
"""Attributes and methods that an adapted reader forwards to the other one."""


class AdaptedReader(Reader):
    """A reader that applies changes to another reader's records."""

    def __init__(self, inner: Reader, changes: Changes) -> None:
        self._inner, self._changes = inner, changes
        for name in _UNCHANGED:
            setattr(self, name, getattr(inner, name))

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.record_values import renumbered, same_for_all

        if feature in self._changes.values:
            return same_for_all(self._changes.values[feature])
        read = self._inner.open(self._changes.own(feature), ram_budget, hold)
        table = self._changes.tables.get(feature)
        return read if table is None else lambda *place: renumbered(read(*place), table)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together | None:
        changes, features = self._changes, tuple(features)
        stored = [name for name in features if name not in changes.values]
        read = self._inner.open_together([changes.own(name) for name in stored], ram_budget, hold) if stored else None
        if stored and read is None:
            return None
        from pipegen.ops.lowering.record_values import renumbered, same_for_all

        alike = {name: same_for_all(changes.values[name]) for name in features if name in changes.values}

        def changed(wanted: Iterable[str], *places: Any) -> dict[str, Any]:
            wanted = list(wanted)
            mine = [name for name in wanted if name not in alike]
            found = read([changes.own(name) for name in mine], *places) if read is not None and mine else {}
            values = {name: found[changes.own(name)] for name in mine}
            values |= {name: renumbered(values[name], changes.tables[name]) for name in mine if name in changes.tables}
            return {name: alike[name](*places) if name in alike else values[name] for name in wanted}

        return changed

    def column(self, name: str, files: Ints) -> Ints | None:
        changes = self._changes
        if name in changes.values:
            value = np.asarray(changes.values[name])
            return value.reshape(()) if value.size == 1 else None
        found, table = self._inner.column(changes.own(name), files), changes.tables.get(name)
        return found if found is None or table is None else table[found].astype(found.dtype)

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return self._inner.stored(self._changes.own(feature), *place)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return self._inner.python([self._changes.own(name) for name in features if name not in self._changes.values], ram_budget)

    def verifying(self) -> Reader:
        return AdaptedReader(self._inner.verifying(), self._changes)


def read_with(listing: Listing, changes: Changes) -> Listing:
    """Returns a listing whose records are read with some changes."""
    return replace(listing, readers={split: AdaptedReader(reader, changes) for split, reader in listing.readers.items()})
