"""Numbers the pixels of masks of instances by the boxes that are left, where these leave the pipeline or were joined with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.kinds.numbering import MOST_INSTANCES
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan import stages as s
from pipegen.plan.items import resized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.families.pasting import PastingTransform
    from pipegen.plan.stages import Stage
    from pipegen.types import ElementType, FeatureType

    Emitted = Iterator[tuple[Stage, dict[str, FeatureType]]]
    """Stages, each with the types of what it changes."""


def number_of(type_: ElementType, home: str) -> str | None:
    """Returns the feature that has the number of each item of `home`, under whatever name a view of it has; `None` where none has."""
    return next((rider for rider in type_.riders(home) if kind_of(type_[rider]).numbers_items), None)


def masks_of(type_: ElementType, home: str) -> tuple[str, ...]:
    """Returns the masks whose pixels have the numbers of the items of `home`."""
    return tuple(name for name, t in type_.items() if t.instances == home)


def renumbered(type_: ElementType, home: str | None = None, sources: int = 1) -> Emitted:
    """Yields what gives the pixels of masks the places of their items, of those of `home` or of any."""
    for name, t in type_.items():
        number = number_of(type_, t.instances) if t.instances is not None else None
        if number is not None and t.instances is not None and home in (None, t.instances):
            yield s.Renumber(name, t.instances, number, t.ignore, sources), {name: t.with_(dtype="uint8")}


def joined(type_: ElementType, home: str, sources: int) -> Emitted:
    """Yields what follows when the items of several images were joined: no more stay than masks tell apart, the largest, and both get new
    numbers."""
    number = number_of(type_, home)
    if number is None or not masks_of(type_, home):
        return
    room = type_[home].shape[0]
    if room is not None and room > MOST_INSTANCES:
        limit = s.Limit(home, type_[home].kind, room, MOST_INSTANCES, type_.riders(home))
        yield limit, resized(limit, type_, MOST_INSTANCES)
    yield from renumbered(type_, home, sources)
    yield s.NumberItems(home, number), {}


def no_pasting(step: PastingTransform, type_: ElementType, received: tuple[str, ...]) -> OpError | None:
    """Returns what is wrong with a step that pastes by a mask where the model receives a mask of instances."""
    found = next((name for name in received if name in type_ and type_[name].instances is not None), None)
    if found is None:
        return None
    message = f"`{step.op}` pastes objects over others, and has no rule for the numbers of `{type_[found].instances}` in `{found}`"
    return OpError("PG203", message, help=f"leave `{found}` out of `output`, or `{step.op}` out of `transforms`")
