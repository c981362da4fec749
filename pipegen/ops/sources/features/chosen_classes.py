"""`ChoosesClasses`: the arguments `map` and `ignore` of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator, model_validator

from pipegen.errors import OpError, PartError
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.class_names import Classes, ClassName
from pipegen.ops.sources.features.classes import as_values, read_labels
from pipegen.ops.sources.features.label_values import IndexedNames
from pipegen.ops.sources.features.pictures import Index, OwnArguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.strings import Ints


class ChoosesClasses(OwnArguments):
    """The arguments `map` and `ignore` of a feature."""

    if TYPE_CHECKING:
        kind: str
        classes: int | tuple[str, ...] | None
        offset: int

    map: Annotated[dict[ClassName, ClassName], Field(min_length=1)] | None = None
    """For a label: the class meant by a stored one, such as `{pug: dog, chow: dog}`. Several with one name become one class; others stay.
    Applied before `classes` and `offset`."""
    ignore: Index | tuple[ClassName, ...] = 0
    """For a label: classes (after `map`) whose examples are left out, such as `[unknown]`; for several labels, one of them is enough. For a
    mask: the class index of pixels that a constant fill uncovers, such as 255 for pixels that the loss ignores."""

    @field_validator("ignore")
    @classmethod
    def _none_ignored(cls, ignore: int | tuple[ClassName, ...]) -> int | tuple[ClassName, ...]:
        return ignore or 0

    @model_validator(mode="after")
    def _ignores_what_it_has(self) -> ChoosesClasses:
        kind = kind_of(self)
        if self.ignore and kind.aligns is isinstance(self.ignore, tuple):
            form = "one class index" if kind.aligns else "a list of classes, such as `[unknown]`"
            raise PartError(f"`ignore` of `kind: {self.kind}` must be {form}", "ignore")
        self.chosen.check(self.classes)
        return self

    @property
    def chosen(self) -> Classes:
        """The renamed and ignored classes."""
        return Classes(self.map or {}, self.ignore if isinstance(self.ignore, tuple) else ())

    def told_by(self, names: tuple[str, ...]) -> dict[str, object]:
        """Returns the arguments changed by class names from the data."""
        if not self.chosen:
            return {"classes": IndexedNames(names)}
        given = {str(stored): name for stored, name in (self.map or {}).items()}
        return {"map": {i: given.get(name, name) for i, name in enumerate(names)}}


def chosen_labels(
    name: str, feature: ChoosesClasses, given: Any, place: Callable[[int], str] | None = None, notes: list[Note] | None = None
) -> tuple[Ints, tuple[str, ...], Ints]:
    """Applies `map` and `ignore` to labels: class indices int64 `(n,)` (-1 for rows left out), the classes, and the rows kept, bool `(n,)`.

    For arguments and errors see `read_labels`.
    """
    import numpy as np

    where = place or (lambda row: f"row {row} of `{name}`")
    stored = as_values(name, given)
    if not len(stored):
        return (*read_labels(name, feature.classes, feature.offset, stored, where), np.ones(0, bool))
    meant, stays = feature.chosen.of_values(stored)
    if not stays.any():
        message = f"none of the {len(stored):,} labels of `{name}` has a class that `ignore` keeps"
        raise OpError("PG402", message, field="ignore")
    kept = np.flatnonzero(stays)
    found, names = read_labels(name, feature.classes, feature.offset, meant.take(kept), lambda row: where(int(kept[row])), notes)
    indices: Ints = np.full(len(stored), -1, np.int64)
    indices[kept] = found
    return indices, names, stays
