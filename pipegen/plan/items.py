"""Follows the items of a ragged feature, such as points, through the steps that move their image, into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.errors import OpError
from pipegen.ops.acting import anchor
from pipegen.ops.arguments.geometry import Fill
from pipegen.ops.base import CropTransform, GeometricTransform
from pipegen.ops.families.crops import ItemCrop
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.items import (
    Bend,
    BendEach,
    Enter,
    EnterEach,
    Limit,
    Measure,
    Move,
    MoveEach,
    NumberItems,
    PasteItems,
    Renumber,
    Shorten,
)
from pipegen.ops.kinds.numbering import MOST_INSTANCES
from pipegen.ops.kinds.registry import kind_of, kinds
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.traits import Family
from pipegen.plan.nodes import Kernel
from pipegen.spec.locate import Locate
from pipegen.types import ElementType, FeatureType, valid_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.families.items import PastingTransform


@dataclass
class Items:
    """An open run of steps whose matrices multiply, as they do for the image.

    Attributes:
        feature: The items.
        kind: Their kind.
        mode: The fill and the interpolation of its steps, which divide runs; those of a mirror show nowhere.
        canvas: Height and width of the image that enters, in pixels.
        size: The same of the image that leaves.
        type_: The type of an example.
        alike: Whether images have one size, if only the data says which.
        closed: Whether no more steps belong to it.
        displaced: Whether its step, which stands alone, has a field in place of a matrix.
        projective: Whether the matrix of a step can have a last row other than (0, 0, 1).
        refs: The uses of steps so far.
    """

    feature: str
    kind: str
    mode: tuple[Fill, str] | None
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]
    type_: ElementType
    alike: bool
    closed: bool = False
    displaced: bool = False
    projective: bool = False
    refs: list[StepRef] = field(default_factory=list)

    def stage(self) -> Stage:
        """Returns the stage that moves the items; where a size is not known, one that works on each example by itself."""
        known = self.alike or None not in (*self.canvas, *self.size)
        x, riders = self.type_[self.feature], self.type_.riders(self.feature)
        made = (Bend if known else BendEach) if self.displaced else (Move if known else MoveEach)
        return made(self.feature, self.kind, tuple(self.refs), self.canvas, self.size, x.details, riders, x.beside, self.projective)


class Images:
    """The images that items are moved with: their types so far, as far as the size goes."""

    def __init__(self) -> None:
        self._types: dict[str, FeatureType] = {}

    def stored(
        self, feature: str, type_: ElementType, like: tuple[str, StepRef[DecodeTransform]] | None
    ) -> Iterator[tuple[Stage, FeatureType]]:
        """Notes what image, as it is stored, the items of a feature are aligned with, before the first step. Yields what measures it, where
        images differ in size (of a file, `like` has the name and what decodes it), and what brings the items into the form that steps work
        on; each with the type that the items then have."""
        if feature in self._types:
            return
        items = type_[feature]
        image = type_[anchor(type_, feature)]
        if like is not None and image.encoded:
            yield Measure(feature, like), items
            image = like[1].step.infer(image)
        elif None in (image.height, image.width) and not image.uniform and not image.encoded:
            yield Measure(feature, (anchor(type_, feature), None)), items
        self._types[feature] = image = image.with_(dtype="float32", interval=None)
        if kind_of(items).needs_preparing(items):
            canvas = image.height, image.width
            made = EnterEach if None in canvas and not image.uniform else Enter
            yield made(feature, items.kind, canvas, items.details, type_.riders(feature), items.beside), kind_of(items).prepared_type(items)

    def canvas(self, feature: str) -> tuple[int | None, int | None]:
        """Returns height and width of the image that the items of a feature are on so far, in pixels."""
        image = self._types[feature]
        return image.height, image.width

    def moved(self, open_: object, ref: StepRef, feature: str, type_: ElementType) -> Items:
        """Adds a use of a step to the run that is open, whatever it is, or opens another one.

        Raises:
            OpError: `PG203` for a step that items of that kind cannot follow; and what the step says of the image.
        """
        image, items = self._types[feature], type_[feature]
        step, traits = ref.step, ref.step.traits(image)
        if not kind_of(items).follows(traits):
            help_ = f"leave `{feature}` or the step out"
            raise OpError("PG203", f"`{step.op}` has no rule for a feature of kind `{items.kind}`", help=help_)
        after = self._types[feature] = step.infer(image)
        mode = (step.fill, step.interpolation) if isinstance(step, GeometricTransform) and not traits.mirrors else None
        alone = traits.pads or traits.family is not Family.GEOMETRIC or (isinstance(step, GeometricTransform) and step.exact)
        run = open_
        divided = isinstance(run, Items) and None not in (mode, run.mode) and mode != run.mode
        if not isinstance(run, Items) or run.feature != feature or run.closed or alone or divided:
            sizes = (image.height, image.width), (None, None)
            run = Items(feature, items.kind, mode, *sizes, type_, image.uniform, displaced=traits.displaces)
        run.refs.append(ref)
        run.mode, run.projective = run.mode or mode, run.projective or traits.projective
        run.size = after.height, after.width
        run.closed = alone or isinstance(step, CropTransform) or image.shape != after.shape
        return run

    def repeats_objects(self, ref: StepRef, feature: str) -> OpError | None:
        """Returns the lint on a use of a step whose fill shows what is on the image once more, beside the items of a feature."""
        step = ref.step
        if not isinstance(step, GeometricTransform) or step.fill not in ("reflect", "wrap"):
            return None
        if step.traits(self._types[feature]).moves_pixels_only:
            return None
        message = f"`{step.op}` fills with `{step.fill}`, which shows objects a second time, and those are not in `{feature}`"
        return OpError("PG580", message, field="fill", help=write("fill: {constant: 0}", "arguments"))


def nothing_chooses(ref: StepRef, feature: str) -> OpError:
    """Returns the lint on a crop that has no items to choose its window by."""
    step = ref.of(ItemCrop).step
    named = [kind.plural for kind in kinds() if kind.crop_guide in step.led_by]
    other, then = step.without_items
    message = f"`{step.op}` chooses its window by {' or '.join(sorted(named))}, and there are none on `{feature}`, so {then}"
    return OpError("PG590", message, help=f"give the {' or '.join(sorted(named))} as a feature of the source, or use `{other}`")


def limits(type_: ElementType) -> Iterator[Limit]:
    """Yields what gives each feature that says so its number of places."""
    for name, t in type_.items():
        most = kind_of(t).limit(t)
        if most is not None and most != t.shape[0]:
            yield Limit(name, t.kind, t.shape[0], most, type_.riders(name))


def resized(stage: Stage, type_: ElementType, room: int | None) -> dict[str, FeatureType]:
    """Returns the types of what a stage touches with so many places for items."""
    return {name: type_[name].with_(shape=(room, *type_[name].shape[1:])) for name in stage.touches()}


def wrong_buckets(type_: ElementType, locate: Locate) -> list[Diagnostic]:
    """Returns a finding for each feature whose `buckets` are no lengths in ascending order."""
    return [
        make(
            "PG105",
            f"the `buckets` of `{name}` are {', '.join(map(str, t.buckets))}, and lengths have to ascend from 1",
            locate(("source",)),
        )
        for name, t in type_.items()
        if any(a >= b for a, b in pairwise((0, *t.buckets)))
    ]


def shortened(edge: ElementType) -> Iterator[Kernel]:
    """Yields what cuts the batches of each feature that has `buckets`."""
    for name, t in edge.items():
        if kind_of(t).ragged and t.buckets and t.beside is None:
            stage = Shorten(name, t.buckets, edge.riders(name))
            edge = edge.replace(**{part: edge[part].with_(shape=(None, *edge[part].shape[1:])) for part in stage.touches()})
            yield Kernel(edge, (stage,))


if TYPE_CHECKING:
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
            yield Renumber(name, t.instances, number, t.ignore, sources), {name: t.with_(dtype="uint8")}


def joined(type_: ElementType, home: str, sources: int) -> Emitted:
    """Yields what follows when the items of several images were joined: no more stay than masks tell apart, the largest, and both get new
    numbers."""
    number = number_of(type_, home)
    if number is None or not masks_of(type_, home):
        return
    room = type_[home].shape[0]
    if room is not None and room > MOST_INSTANCES:
        limit = Limit(home, type_[home].kind, room, MOST_INSTANCES, type_.riders(home))
        yield limit, resized(limit, type_, MOST_INSTANCES)
    yield from renumbered(type_, home, sources)
    yield NumberItems(home, number), {}


def about_items(type_: ElementType, home: str) -> dict[str, Any]:
    """Returns what a stage that joins the items of `home` with those of other images knows of them, as its arguments."""
    t, riders = type_[home], type_.riders(home)
    moved = tuple((rider, type_[rider].kind, type_[rider].details) for rider in riders if kind_of(type_[rider]).needs_image)
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
) -> tuple[PasteItems, tuple[Stage, ...]]:
    """Returns what joins the items that a mask of instances pastes, and what comes before anything is pasted: its numbers become places, so
    that pixels of items that were dropped are none's."""
    home, number = type_[mask].instances, number_of(type_, type_[mask].instances or "")
    assert home is not None and number is not None  # noqa: S101, PT018 - a mask of instances has both
    items = PasteItems(home, ref=ref, canvas=canvas, mask=mask, ignore=type_[mask].ignore, **about_items(type_, home))
    return items, (*(stage for stage, _ in renumbered(type_, home)), NumberItems(home, number))
