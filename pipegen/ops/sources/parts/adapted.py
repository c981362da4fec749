"""The listing of a part of a mix: features under the names that they have there, those that are filled, and labels of united classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.kinds.registry import kind_of, several_labels
from pipegen.ops.sources.listing.reader import Reader
from pipegen.types import ElementType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.types import FeatureType


PART = "part"
"""The feature that says which part of a mix an example is of, where nothing else has this name."""


@dataclass(frozen=True)
class Adapting:
    """Says how the features of a part become those of the mix.

    Attributes:
        names: For features that are called otherwise, by their own names those of the mix.
        fill: The features that the part lacks: for each its type, and its value.
        order: All features in the order that they have in the mix.
        parts: The names of the parts, where a feature says which one an example is of; else none.
    """

    names: Mapping[str, str]
    fill: Mapping[str, tuple[FeatureType, Any]]
    order: tuple[str, ...]
    parts: tuple[str, ...] = ()

    def name(self, own: str) -> str:
        """The name in the mix of a feature of the part's own source."""
        return self.names.get(own, own)

    def type_of(self, own: ElementType) -> ElementType:
        """The type of a record in the mix, from that in the part's own source."""
        found = {self.name(name): t.with_(of=self.name(t.of) if t.of is not None else None) for name, t in own.items()}
        found |= {name: t for name, (t, _) in self.fill.items()}
        ordered = sorted(found, key=lambda name: self.order.index(name) if name in self.order else len(self.order))
        return ElementType(tuple((name, found[name]) for name in ordered))


def adapted(listing: Listing, adapting: Adapting) -> Listing:
    """The listing of a part's own source as the mix has it; values of labels that are filled are set once all classes are known."""
    names = adapting.name
    readers = {split: _Renamed(reader, {new: own for own, new in adapting.names.items()}) for split, reader in listing.readers.items()}
    return replace(
        listing,
        readers=readers if adapting.names else listing.readers,
        columns={names(name): values for name, values in listing.columns.items()},
        column_classes={names(name): classes for name, classes in listing.column_classes.items()},
        beside={names(name): files for name, files in listing.beside.items()},
        type=None if listing.type is None else adapting.type_of(listing.type),
    )


class _Renamed(Reader):
    """Reads features under other names."""

    def __init__(self, inner: Reader, own: Mapping[str, str]) -> None:
        self._inner, self._own = inner, own
        self.numbered, self.called = inner.numbered, inner.called  # type: ignore[misc]
        self.at_once, self.starts = inner.at_once, inner.starts

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        return self._inner.open(self._own.get(feature, feature), ram_budget, hold)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together | None:
        names = {name: self._own.get(name, name) for name in features}
        read = self._inner.open_together(names.values(), ram_budget, hold)
        if read is None:
            return None

        def renamed(wanted: Iterable[str], *places: Any) -> dict[str, Any]:
            wanted = list(wanted)
            found = read([names[name] for name in wanted], *places)
            return {name: found[names[name]] for name in wanted}

        return renamed

    def check(self) -> None:
        self._inner.check()

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        self._inner.hold_window(num_bytes, ram_budget)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return self._inner.python([self._own.get(name, name) for name in features], ram_budget)

    def labels(self, files: Ints) -> Ints | None:
        return self._inner.labels(files)

    def digest(self, *, whole: bool = False) -> str:
        return self._inner.digest(whole=whole)


def filled(listing: Listing, adapting: Adapting, column_classes: Mapping[str, tuple[str, ...]]) -> Listing:
    """A listing with the features that its part lacks; its classes, and those of its columns, are known by now.

    Raises:
        OpError: `PG463` where a value does not fit its feature.
    """
    import numpy as np

    columns, labels = dict(listing.columns), listing.labels
    for name, (t, value) in adapting.fill.items():
        classes = adapting.parts if name == PART and adapting.parts else column_classes.get(name, listing.class_names)
        made = _filled(name, t, value, classes, len(listing.keys))
        if name not in column_classes and kind_of(t).labels and not (name == PART and adapting.parts):
            labels = made.astype(np.int32)
        else:
            columns[name] = made
    return replace(listing, columns=columns, labels=labels)


def _filled(name: str, t: FeatureType, value: Any, classes: tuple[str, ...], count: int) -> Any:
    """A column with the value of a feature that a part lacks, for so many records.

    Raises:
        OpError: `PG463` where the value does not fit the type.
    """
    import numpy as np

    kind = kind_of(t)
    if kind.labels and not several_labels(t):
        if isinstance(value, str):
            if value not in classes:
                message = f"there is no class {value!r} to fill `{name}` with"
                raise OpError("PG463", message, field=f"fill.{name}", help=f"the classes are {', '.join(classes)}")
            value = classes.index(value)
        if not isinstance(value, (int, float)) or value != int(value) or not 0 <= value < max(1, t.classes or len(classes) or 2**31):
            message = f"`{name}` is a label, so it is filled with a class"
            raise OpError("PG463", message, field=f"fill.{name}", help="write the name of a class, or its index from 0")
        return np.broadcast_to(np.int64(value), (count,))
    if kind.numbers and not isinstance(value, str):
        row = np.asarray(value, np.float32)
        if row.ndim == 0 or row.shape == t.shape:
            return np.broadcast_to(row, (count, *(d or 0 for d in t.shape)))
        message = f"`{name}` has {t.shape[0] if t.shape else 1} numbers for each example, and `fill` has {row.size}"
        raise OpError("PG463", message, field=f"fill.{name}", help="write one number for all of them, or a list of as many")
    message = f"a part cannot be filled with `{name}`, which holds {kind.plural}"
    raise OpError("PG463", message, field=f"fill.{name}", help="fill labels, tensors and weights; leave other features out of `output`")


def united(listing: Listing, classes: tuple[str, ...], column_classes: Mapping[str, tuple[str, ...]]) -> Listing:
    """A listing whose labels count the classes of all parts."""
    import numpy as np

    def table(own: tuple[str, ...], every: tuple[str, ...]) -> Ints:
        return np.array([every.index(name) for name in own], np.int32)

    labels, columns = listing.labels, dict(listing.columns)
    if labels is not None:
        labels = table(listing.class_names, classes)[labels]
    for name, own in listing.column_classes.items():
        columns[name] = table(own, column_classes[name])[columns[name]].astype(columns[name].dtype)
    type_ = listing.type
    if type_ is not None:
        counted = {name: len(every) for name, every in column_classes.items() if name in type_}
        type_ = type_.replace(**{name: type_[name].with_(classes=number) for name, number in counted.items()})
    known = {name: every for name, every in column_classes.items() if name in columns}
    return replace(listing, labels=labels, class_names=classes, columns=columns, column_classes=known, type=type_)
