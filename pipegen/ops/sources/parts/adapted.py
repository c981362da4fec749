"""The listing of a part of a mix, and its reader: renamed features, filled features, and labels with merged classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.columns import Packed, with_classes
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import ItemClass, having, kind_of, several_labels
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.listing.reader import Hold, Read, Reader, Together
from pipegen.types import ElementType, FeatureType

PART = "part"  # the feature with the part of a mix that an example is from, unless the name is taken


@dataclass(frozen=True)
class Adapting:
    """How the features of a part become those of the mix."""

    names: Mapping[str, str]  # the name in the mix of each renamed feature, by its own name
    fill: Mapping[str, tuple[FeatureType, Any]]  # type and value of each feature that the part lacks
    order: tuple[str, ...]  # all features in the order of the mix
    parts: tuple[str, ...] = ()  # the names of the parts, if a feature holds the part of an example; else empty

    def name(self, own: Any) -> Any:
        """Returns the name of a feature in the mix; `None` stays."""
        return self.names.get(own, own)

    def type_of(self, own: ElementType) -> ElementType:
        """Converts the type of a record to that in the mix."""
        new = self.name
        found = {new(name): t.with_(of=new(t.of), beside=new(t.beside), instances=new(t.instances)) for name, t in own.items()}
        found |= {name: t for name, (t, _) in self.fill.items()}
        ordered = sorted(found, key=lambda name: self.order.index(name) if name in self.order else len(self.order))
        return ElementType(tuple((name, found[name]) for name in ordered))


def adapted(listing: Listing, adapting: Adapting) -> Listing:
    """Adapts the listing of a part's source to the mix; filled labels are set once all classes are known."""
    names = adapting.name
    if adapting.names:
        listing = read_with(listing, Changes({new: own for own, new in adapting.names.items()}))
    return replace(
        listing,
        columns={names(name): values for name, values in listing.columns.items()},
        classes={names(name): classes for name, classes in listing.classes.items()},
        label=None if listing.label is None else names(listing.label),
        beside={names(name): further for name, further in listing.beside.items()},
        type=None if listing.type is None else adapting.type_of(listing.type),
    )


def filled(listing: Listing, adapting: Adapting, classes: Mapping[str, tuple[str, ...]]) -> Listing:
    """Adds the features that a part lacks to its listing.

    Args:
        listing: The listing of a part.
        adapting: How its features become those of the mix.
        classes: The classes of each label of the mix.

    Raises:
        OpError: `PG463` if a value does not fit its feature.
    """
    every = {**classes, PART: adapting.parts} if adapting.parts else classes
    values = {name: kind_of(t).meaning.filled(name, t, value, every.get(name, ())) for name, (t, value) in adapting.fill.items()}
    known = {**listing.classes, **{name: classes[name] for name in values if name in classes}}
    return with_values(replace(listing, classes=known), values)


def with_values(listing: Listing, values: Mapping[str, Any]) -> Listing:
    """Adds features that have the same value, an array, for all records."""
    if listing.shards is not None:
        return read_with(listing, Changes(values=values))
    columns = {name: np.broadcast_to(value, (len(listing.keys), *value.shape)) for name, value in values.items()}
    return replace(listing, columns={**listing.columns, **columns})


def merge_classes(listing: Listing, classes: Mapping[str, tuple[str, ...]]) -> Listing:
    """Renumbers the labels of a listing by the classes of all parts."""
    columns = dict(listing.columns)
    tables: dict[str, Ints] = {}
    for name, own in listing.classes.items():
        if name in columns:
            columns[name] = with_classes(columns[name], own, classes[name])
        elif own != classes[name][: len(own)]:
            tables[name] = np.array([classes[name].index(text) for text in own], np.int64)
    type_ = listing.type
    if type_ is not None:
        counted = {name: (type_[name], len(every)) for name, every in classes.items() if name in type_}
        shapes = {name: (number,) if several_labels(t) else t.shape for name, (t, number) in counted.items()}
        type_ = type_.replace(**{name: t.with_(classes=number, shape=shapes[name]) for name, (t, number) in counted.items()})
    made = replace(listing, columns=columns, classes={name: classes[name] for name in listing.classes}, type=type_)
    return read_with(made, Changes(tables=tables)) if tables else made


def item_classes(listing: Listing) -> dict[str, tuple[str, ...]]:
    """Returns the classes of the labels of items, which may number the pixels of masks."""
    names = () if listing.type is None else having(listing.type, ItemClass)
    return {name: own for name, own in listing.classes.items() if name in names}


def counts_classes(listing: Listing, name: str) -> bool:
    """Checks for a packed mask whose pixels are the classes of the labels, which then cannot be renamed."""
    return isinstance(listing.columns.get(name), Packed) and listing.type is not None and listing.type[name].classes is not None


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
