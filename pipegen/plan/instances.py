"""Numbers the pixels of masks of instances by the boxes that are left, where these leave the pipeline or were joined with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.ops.kinds.numbering import MOST_INSTANCES
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan import stages as s
from pipegen.plan.items import resized
from pipegen.types import valid_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipegen.ops.families.items import PastingTransform
    from pipegen.plan.stages import Stage, StepRef
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


def about_items(type_: ElementType, home: str) -> dict[str, Any]:
    """Returns what a stage that joins the items of `home` with those of other images knows of them, as its arguments."""
    t, riders = type_[home], type_.riders(home)
    moved = tuple((rider, type_[rider].kind, type_[rider].details) for rider in riders if kind_of(type_[rider]).lives)
    return {"kind": t.kind, "details": t.details, "riders": riders, "moved": moved, "number": number_of(type_, home)}


def pasted_by(
    step: PastingTransform, type_: ElementType, taken: Iterable[str], received: tuple[str, ...]
) -> tuple[str | None, OpError | None]:
    """Returns the mask of instances by which a step pastes: where the model receives one, or the items that one numbers, no other mask says
    what becomes of these. `None` where it pastes by a mask of classes, or by none. And what is wrong with the mask that it is to paste by.
    """
    marked = {name: home for name in taken if (home := type_[name].instances) is not None}
    due = [name for name, home in marked.items() if {name, home, valid_name(home), *type_.riders(home)} & {*received}]
    classes = any(kind_of(type_[name]).categorical and name not in marked for name in taken)
    chosen = step.mask if step.mask is not None else next(iter(due or (() if classes else marked)), None)
    other = next((name for name in due if chosen is None or marked[name] != marked.get(chosen)), None)
    if other is not None and chosen in marked:
        message = f"`{step.op}` pastes the objects that `{chosen}` shows, and `{other}` numbers others, `{marked[other]}`"
        return chosen, OpError(
            "PG203", message, help=f"leave `{other}` and what it numbers out of `output`, or `{step.op}` out of `transforms`"
        )
    if other is not None:
        message = f"`{step.op}` pastes by `{chosen}`, which does not say which of `{marked[other]}` a pixel shows"
        return None, OpError("PG203", message, field="mask", help=write(f"mask: {other}", "arguments", "paste by its numbers: {}"))
    if chosen not in marked:
        return None, None
    if getattr(step, "background", 0):
        message = f"`background` is a class, and `{chosen}` numbers the objects, with 0 where there is none"
        return chosen, OpError("PG596", message, field="background", help="leave `background` out")
    return chosen, None


def pasted(
    ref: StepRef[PastingTransform], type_: ElementType, mask: str, canvas: tuple[int | None, int | None]
) -> tuple[s.PasteItems, tuple[Stage, ...]]:
    """Returns what joins the items that a mask of instances pastes, and what comes before anything is pasted: its numbers become places, so
    that pixels of items that were dropped are none's."""
    home, number = type_[mask].instances, number_of(type_, type_[mask].instances or "")
    assert home is not None and number is not None  # noqa: S101, PT018 - a mask of instances has both
    items = s.PasteItems(home, ref=ref, canvas=canvas, mask=mask, ignore=type_[mask].ignore, **about_items(type_, home))
    return items, (*(stage for stage, _ in renumbered(type_, home)), s.NumberItems(home, number))
