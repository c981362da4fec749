"""Planning for items of ragged features, such as points, which move with their image into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import Fill
from pipegen.ops.families import item_stages as i
from pipegen.ops.families.combining import anchor
from pipegen.ops.families.crops import ItemCrop
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.base import Geometry, Indices, InstanceNumber, geometry_of, kind_of, kinds
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.step_bases import CropTransform, GeometricTransform
from pipegen.ops.traits import Family
from pipegen.plan.nodes import Kernel
from pipegen.plan.recipe import alternatives, type_after
from pipegen.spec.locate import Locate
from pipegen.types import MOST_INSTANCES, ElementType, FeatureType, valid_name


@dataclass
class Items:
    """An open run of steps whose matrices are multiplied, as for the image."""

    feature: str
    mode: tuple[Fill, str] | None  # the fill and the interpolation of its steps; a step with others starts a new run. A mirror has none.
    entry: FeatureType  # the type of the image that enters
    size: tuple[int | None, int | None]  # height and width of the image that leaves, in pixels
    type_: ElementType  # the type of an example
    closed: bool = False  # whether the run takes no more steps
    displaced: bool = False  # whether its only step has a displacement field in place of a matrix
    projective: bool = False  # whether the matrix of a step can have a last row other than (0, 0, 1)
    policy: StepRef | None = None  # the policy that gives each example one of the steps, which all act on the image that enters
    refs: list[StepRef] = field(default_factory=list)

    def stage(self) -> Stage:
        """Makes the stage that moves the items, for single examples if a size is unknown."""
        canvas = self.entry.height, self.entry.width
        known = self.entry.uniform or None not in (*canvas, *self.size)
        x, riders = self.type_[self.feature], self.type_.riders(self.feature)
        made = (i.Bend if known else i.BendEach) if self.displaced else (i.Move if known else i.MoveEach)
        return made(self.feature, x.kind, tuple(self.refs), canvas, self.size, x.details, riders, x.beside, self.projective)


class Images:
    """The images that items move with: their types so far, which hold the sizes."""

    def __init__(self) -> None:
        self._types: dict[str, FeatureType] = {}

    def stored(
        self, feature: str, type_: ElementType, like: tuple[str, StepRef[DecodeTransform]] | None
    ) -> Iterator[tuple[Stage, FeatureType]]:
        """Notes the stored image of the items of a feature, before the first step.

        Yields a stage that measures the image, if sizes differ, and one that brings the items into the form that steps work
        on, each with the type of the items after it. `like` is the image's name and decoder, if it is a file.
        """
        if feature in self._types:
            return
        items = type_[feature]
        image = type_[anchor(type_, feature)]
        if like is not None and image.encoded:
            yield i.Measure(feature, like), items
            image = like[1].step.infer(image)
        elif None in (image.height, image.width) and not image.uniform and not image.encoded:
            yield i.Measure(feature, (anchor(type_, feature), None)), items
        self._types[feature] = image = image.with_(dtype="float32", interval=None)
        prepared = geometry_of(items.kind).prepared_type(items)
        if prepared is not None:
            canvas = image.height, image.width
            made = i.EnterEach if None in canvas and not image.uniform else i.Enter
            yield made(feature, items.kind, canvas, items.details, type_.riders(feature), items.beside), prepared

    def canvas(self, feature: str) -> tuple[int | None, int | None]:
        """Height and width in pixels of the image that the items of a feature are on so far."""
        image = self._types[feature]
        return image.height, image.width

    def moved(self, open_: object, ref: StepRef, feature: str, type_: ElementType) -> Items:
        """Adds a use of a step to the open run, or opens a new one. Raises `OpError`: `PG203` for a step that items of that kind cannot
        follow; any error of the step on the image."""
        run = open_ if isinstance(open_, Items) and open_.feature == feature else None
        policy = alternatives(ref)
        joined = run is not None and run.policy is not None and run.policy == policy
        image, items = run.entry if run is not None and joined else self._types[feature], type_[feature]
        step, traits = ref.step, ref.step.traits(image)
        if not geometry_of(items.kind).follows(traits):
            help_ = f"leave `{feature}` or the step out"
            raise OpError("PG203", f"`{step.op}` has no rule for a feature of kind `{items.kind}`", help=help_)
        after = self._types[feature] = type_after(ref, image)
        mode = (step.fill, step.interpolation) if isinstance(step, GeometricTransform) and not traits.mirrors else None
        alone = traits.pads or traits.family is not Family.GEOMETRIC or (isinstance(step, GeometricTransform) and step.exact)
        alone |= ref.conditional and step.only_sizes
        divided = run is not None and None not in (mode, run.mode) and mode != run.mode
        if run is None or (not joined and (run.closed or alone or divided)):
            run = Items(feature, mode, image, (None, None), type_, displaced=traits.displaces, policy=policy)
        run.refs.append(ref)
        run.mode, run.projective = run.mode or mode, run.projective or traits.projective
        run.size = after.height, after.width
        run.closed = alone or isinstance(step, CropTransform) or image.shape != after.shape
        return run

    def repeats_objects(self, ref: StepRef, feature: str) -> OpError | None:
        """The lint on a fill that repeats objects of the image, of which the items have no copies."""
        step = ref.step
        if not isinstance(step, GeometricTransform) or step.fill not in ("reflect", "wrap"):
            return None
        if step.traits(self._types[feature]).moves_pixels_only:
            return None
        message = f"`{step.op}` fills with `{step.fill}`, which repeats objects that `{feature}` does not have"
        return OpError("PG580", message, field="fill", help=write("fill: {constant: 0}", "arguments"))


def nothing_chooses(ref: StepRef, feature: str) -> OpError:
    """The lint on a crop that has no items to choose its window by."""
    step = ref.of(ItemCrop).step
    named = " or ".join(sorted(kind.plural for kind in kinds() if kind.guides(*step.led_by)))
    other, then = step.without_items
    message = f"`{step.op}` chooses its window by {named}, but `{feature}` has none, so {then}"
    return OpError("PG590", message, help=f"give the {named} as a feature of the source, or use `{other}`")


def limits_in(type_: ElementType) -> dict[str, int]:
    """The largest number of items of each feature that limits it."""
    return {name: most for name, t in type_.items() if (own := kind_of(t).geometry) and (most := own.limit(t)) is not None}


def limits(type_: ElementType) -> Iterator[i.Limit]:
    """Yields the stages that limit features to their largest number of items."""
    for name, most in limits_in(type_).items():
        if most != type_[name].shape[0]:
            yield i.Limit(name, type_[name].kind, type_[name].shape[0], most, type_.riders(name))


def resized(stage: Stage, type_: ElementType, room: int | None) -> dict[str, FeatureType]:
    """The types of all features that a stage touches, with `room` for items."""
    return {name: type_[name].with_(shape=(room, *type_[name].shape[1:])) for name in stage.touches()}


def wrong_buckets(type_: ElementType, locate: Locate) -> list[Diagnostic]:
    """Finds features whose `buckets` are not ascending lengths."""
    wrong = {name: ", ".join(map(str, t.buckets)) for name, t in type_.items() if any(a >= b for a, b in pairwise((0, *t.buckets)))}
    said = (f"the `buckets` of `{name}` are {lengths}; lengths have to ascend from 1" for name, lengths in wrong.items())
    return [make("PG105", message, locate(("source",))) for message in said]


def shortened(edge: ElementType) -> Iterator[Kernel]:
    """Yields the kernels that cut batches of features with `buckets` to a bucket's length."""
    for name, t in edge.items():
        if kind_of(t).ragged and t.buckets and t.beside is None:
            stage = i.Shorten(name, t.buckets, edge.riders(name))
            edge = edge.replace(**{part: edge[part].with_(shape=(None, *edge[part].shape[1:])) for part in stage.touches()})
            yield Kernel(edge, (stage,))


Emitted = Iterator[tuple[Stage, dict[str, FeatureType]]]  # stages, each with the types of the features that it changes


def number_of(type_: ElementType, home: str) -> str | None:
    """The feature that holds the number of each item of `home` (or of its view), if any."""
    return next((rider for rider in type_.riders(home) if kind_of(type_[rider]).has(InstanceNumber)), None)


def renumbered(type_: ElementType, home: str | None = None, sources: int = 1) -> Emitted:
    """Yields the stages that replace item numbers in masks by positions, for the items of `home` or of all."""
    for name, t in type_.items():
        number = number_of(type_, t.instances) if t.instances is not None else None
        if number is not None and t.instances is not None and home in (None, t.instances):
            yield i.Renumber(name, t.instances, number, t.ignore, sources), {name: t.with_(dtype="uint8")}


def joined(type_: ElementType, home: str, sources: int) -> Emitted:
    """Yields the stages after a join of the items of several images: a limit to the number that masks can hold, keeping the
    largest, and new numbers for items and masks."""
    number = number_of(type_, home)
    if number is None or all(t.instances != home for _, t in type_.items()):  # no mask has these numbers
        return
    room = type_[home].shape[0]
    if room is not None and room > MOST_INSTANCES:
        limit = i.Limit(home, type_[home].kind, room, MOST_INSTANCES, type_.riders(home))
        yield limit, resized(limit, type_, MOST_INSTANCES)
    yield from renumbered(type_, home, sources)
    yield i.NumberItems(home, number), {}


def about_items(type_: ElementType, home: str) -> dict[str, Any]:
    """The arguments, but for its own, of a stage that joins the items of `home` with those of other images."""
    t, riders = type_[home], type_.riders(home)
    moved = tuple((rider, type_[rider].kind, type_[rider].details) for rider in riders if kind_of(type_[rider]).has(Geometry))
    return {"kind": t.kind, "details": t.details, "riders": riders, "moved": moved, "number": number_of(type_, home)}


def pasted_by(
    step: i.PastingTransform, type_: ElementType, taken: Iterable[str], received: tuple[str, ...]
) -> tuple[str | None, OpError | None]:
    """Selects the instance mask that a step pastes by, and the error in that choice, if any.

    A mask that the model receives, or whose items it receives, comes first: no other mask decides which of them stay.
    `None` if the step pastes by a mask of classes, or by none.
    """
    marked = {name: home for name in taken if (home := type_[name].instances) is not None}
    due = [name for name, home in marked.items() if {name, home, valid_name(home), *type_.riders(home)} & {*received}]
    classes = any(kind_of(type_[name]).has(Indices) and name not in marked for name in taken)
    chosen = step.mask if step.mask is not None else next(iter(due or (() if classes else marked)), None)
    other = next((name for name in due if chosen is None or marked[name] != marked.get(chosen)), None)
    if other is not None and chosen in marked:
        message = f"`{step.op}` pastes the objects of `{chosen}`, but `{other}` numbers other objects, `{marked[other]}`"
        help_ = f"leave `{other}` and the items it numbers out of `output`, or `{step.op}` out of `transforms`"
        return chosen, OpError("PG203", message, help=help_)
    if other is not None:
        message = f"`{step.op}` pastes by `{chosen}`, whose pixels do not number the items of `{marked[other]}`"
        return None, OpError("PG203", message, field="mask", help=write(f"mask: {other}", "arguments", "paste by its numbers: {}"))
    if chosen not in marked:
        return None, None
    if getattr(step, "background", 0):
        message = f"`background` is a class, but `{chosen}` numbers objects, with 0 for background"
        return chosen, OpError("PG596", message, field="background", help="leave `background` out")
    return chosen, None


def pasted(
    ref: StepRef[i.PastingTransform], type_: ElementType, mask: str, canvas: tuple[int | None, int | None]
) -> tuple[i.PasteItems, tuple[Stage, ...]]:
    """Makes the stage that joins the items of an instance mask, and the stages before it.

    These replace the mask's numbers by positions, so that pixels of dropped items belong to none.
    """
    home, number = type_[mask].instances, number_of(type_, type_[mask].instances or "")
    assert home is not None and number is not None  # noqa: S101, PT018 - a mask of instances has both
    items = i.PasteItems(home, ref=ref, canvas=canvas, mask=mask, ignore=type_[mask].ignore, **about_items(type_, home))
    return items, (*(stage for stage, _ in renumbered(type_, home)), i.NumberItems(home, number))
