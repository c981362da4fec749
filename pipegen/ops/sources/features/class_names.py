"""`Classes`: renamed and ignored classes of a column of labels."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, Field

from pipegen.diagnostics.suggest import closest
from pipegen.errors import PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.features.columns import parts
from pipegen.ops.sources.features.label_values import LIST, Values, plain
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.sources.listing.strings import Ints


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"the class {next(name for name in names if names.count(name) > 1)!r} is listed twice")
    return names


ClassName: TypeAlias = int | str  # a class by name, or by stored number
KnownClasses: TypeAlias = Annotated[int, Field(ge=1)] | Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_each_once)]
"""The number of classes, or their distinct names."""
_MOST_COMPARED = 1_000


@dataclass(frozen=True)
class Classes:
    """Renamed and ignored classes."""

    names: Mapping[ClassName, ClassName] = field(default_factory=dict)  # the meant class of each stored one
    ignored: tuple[ClassName, ...] = ()  # the classes, after renaming, whose rows are left out

    def check(self, listed: int | tuple[str, ...] | None) -> None:
        """Raises `PartError` if they contradict each other or the listed classes."""
        meant = {str(name) for name in self.names.values()}
        known = listed if isinstance(listed, tuple) else None
        for stored, name in self.names.items():
            if known is not None and str(name) not in known and str(name) not in map(str, self.ignored):
                near = closest(str(name), known)
                help_ = f"is {near!r} meant?" if near else f"it lists {quoted(known)}"
                message = f"`map` renames {str(stored)!r} to {str(name)!r}, which `classes` does not list"
                raise PartError(message, "map", stored, help=help_)
        for i, name in enumerate(self.ignored):
            if name in self.names and str(self.names[name]) != str(name) and str(name) not in meant:
                message = f"`ignore` leaves out {str(name)!r}, which `map` renames to {str(self.names[name])!r}"
                raise PartError(message, "ignore", i, help="remove it from one of the two; `ignore` comes after `map`")
            if known is not None and str(name) in known:
                raise PartError(
                    f"`ignore` leaves out {str(name)!r}, which `classes` lists", "ignore", i, help="remove it from one of the two"
                )

    def __bool__(self) -> bool:
        return bool(self.names or self.ignored)

    def renamed(self, cells: Sequence[str], separator: str | None) -> Sequence[str]:
        """Renames the cells of a column; `separator` separates several classes in a cell."""
        if not self.names:
            return cells
        names = {str(stored): str(name) for stored, name in self.names.items()}

        def name_of(text: str) -> str:
            return names.get(text, names.get(plain(text), text))

        if separator is None:
            return [name_of(cell) for cell in cells]
        return ["".join(LIST + name_of(part) for part in parts(cell, separator)) for cell in cells]

    def without_ignored(self, cells: Sequence[str], separator: str | None) -> list[int]:
        """Returns the numbers of the renamed cells without ignored classes."""
        gone = {str(name) for name in self.ignored}
        if separator is None:
            return [row for row, cell in enumerate(cells) if cell not in gone and plain(cell) not in gone]
        return [row for row, cell in enumerate(cells) if gone.isdisjoint([*(found := parts(cell, separator)), *map(plain, found)])]

    def of_values(self, stored: Values) -> tuple[Values, Ints]:
        """Returns the meant labels, and which are kept: bool `(n,)`."""
        held = stored.as_texts()
        meant = self.renamed(held.texts, None)
        stays: Ints = np.zeros(len(meant), bool)
        stays[self.without_ignored(meant, None)] = True
        found = Values.of_texts(meant)
        return Values(None, found.texts, found.codes[held.codes]), stays[held.codes]

    def notes(self, cells: Sequence[str], separator: str | None, field: str) -> Iterator[Note]:
        """Reports names that no stored cell has."""
        stored = set(cells) if separator is None else {part for cell in set(cells) for part in parts(cell, separator)}
        stored |= set(map(plain, stored))
        names = {str(own): str(name) for own, name in self.names.items()}
        yield from _unknown("map", names, stored, field)
        yield from _unknown("ignore", map(str, self.ignored), {names.get(name, name) for name in stored}, field)


def _unknown(argument: str, names: Iterable[str], there: set[str], field: str) -> Iterator[Note]:
    missing = [name for name in names if name not in there]
    if not missing:
        return
    shown = sorted(there)[:_MOST_COMPARED]
    near = closest(missing[0], shown)
    help_ = f"is {near!r} meant?" if near else f"the column holds {quoted(shown)}"
    message = f"`{argument}` names {quoted(missing)}, which no row has"
    yield Note("PG451", message, help_, f"{field}.{argument}")
