"""Checks what a step that mixes examples needs around it: images of one size, labels that can be weighed, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.errors import OpError
from pipegen.ops.acting import anchor
from pipegen.ops.families.items import MixInstances, MixItems, Paste, PasteInstances, PastePoints, PastingTransform
from pipegen.ops.families.mixing import Mix, MixingTransform
from pipegen.ops.kinds.registry import kind_of, several_labels
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.traits import Family
from pipegen.plan.items import about_items, pasted, pasted_by
from pipegen.plan.outputs import encode, encoding_of, is_encoded, received, unbatchable
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType, FeatureType

_SOFT = ("one_hot", "binary", "multi_hot")
"""The encodings whose mean says how much of each class there is."""


@dataclass
class MixPlan:
    """The stages of one use of a mixing step, and what is wrong with it.

    Attributes:
        encodings: What has to be done to single examples before they are stacked.
        stages: What works on whole batches.
        items: What joins the items of two examples.
        before: What comes before all of these.
        last: What changes masks that all others read, and so comes behind them.
        errors: Findings about the step.
        findings: Findings about something else.
        poisoned: Features of which no more is said; `mixing` where there is an error that concerns none in particular.
    """

    encodings: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)
    stages: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)
    items: list[MixItems] = field(default_factory=list)
    before: list[Stage] = field(default_factory=list)
    last: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)
    errors: list[OpError] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    poisoned: set[str] = field(default_factory=set)


def plan_mixing(
    spec: PipelineSpec,
    split: str,
    ref: StepRef[MixingTransform],
    type_: ElementType,
    taken: dict[str, FeatureType],
    later: tuple[StepRef, ...],
    locate: Locate,
) -> MixPlan:
    """Work out one use of a mixing step on what enters it, with the steps `later`.

    `taken` is what leaves of each feature that it acts on itself; labels follow.
    """
    plan = MixPlan()
    by, masks = {}, {}  # type: dict[str, str], dict[str, str]
    if isinstance(ref.step, PastingTransform):
        by, wrong = _by_instances(ref.step, type_, taken, received(spec.output))
        if wrong is not None:
            return MixPlan(errors=[wrong], poisoned={"mixing"})
        pasting = {None, *(type_[mask].instances for mask in by.values())}
        taken = {feature: y for feature, y in taken.items() if y.instances in pasting}
        masks = _masks(plan, ref, type_, taken, by)
    for feature, y in sorted(taken.items(), key=lambda one: one[0] in masks.values()):  # what reads a mask comes before it changes
        if type_[feature].is_static:
            left = y if y.instances is None else y.with_(dtype="int32")  # as long as it has the numbers of several images
            stages = plan.last if masks and (y.instances is not None or feature in masks.values()) else plan.stages
            stages.append((feature, _stage(ref, feature, y, masks, type_), left))
        elif any(r.step.traits(y).family is Family.ELEMENT for r in later):  # it cannot fix the shape any more, and is the finding
            plan.poisoned.add("mixing")
        else:
            plan.findings.append(unbatchable(spec, split, type_[feature], locate))
            plan.poisoned.add(feature)
    canvas = next(map(_canvas, taken.values()), (None, None))
    deciding = next(iter(masks.values()), None)
    points = [name for name, t in type_.items() if kind_of(t).points and t.beside is None]
    joining = {*points, *(type_[mask].instances for mask in by.values())} if masks else None
    for name in received(spec.output):
        if name in type_ and name not in taken:
            of = type_[name].beside or (type_[name].of if kind_of(type_[name]).valid else None) or name
            home = type_.get(of) or type_[name]
            joined = kind_of(home).joins(home) if joining is None else of in joining
            _follower(plan, spec, ref, name, type_, canvas, deciding, joined=joined)
    if joining is None:
        plan.items += [MixItems(name, ref=ref, canvas=canvas, **about_items(type_, name)) for name in _joined(type_)]
    else:
        _pasting(plan, ref, type_, canvas, by, {name: masks.get(anchor(type_, name)) for name in points})
    if plan.errors:
        plan.poisoned.add("mixing")
    return plan


def _joined(type_: ElementType) -> Iterator[str]:
    """Yields what an image has any number of, so that it can stand beside that of another one."""
    yield from (name for name, t in type_.items() if kind_of(t).joins(t) and t.beside is None)


def _pasting(
    plan: MixPlan,
    ref: StepRef[MixingTransform],
    type_: ElementType,
    canvas: tuple[int | None, int | None],
    by: dict[str, str],
    points: dict[str, str | None],
) -> None:
    """Adds what becomes of items where `by` has the masks of instances that say what is pasted, and `points` for each feature the mask that
    hides some of it."""
    for mask in by.values():
        items, before = pasted(ref.of(PastingTransform), type_, mask, canvas)
        plan.items.append(items)
        plan.before.extend(before)
    for name, hiding in points.items():
        if hiding is not None:
            ignore, joins = type_[hiding].ignore, kind_of(type_[name]).joins(type_[name])
            about = about_items(type_, name)
            plan.items.append(PastePoints(name, ref=ref, canvas=canvas, mask=hiding, ignore=ignore, joins=joins, **about))


def _by_instances(
    step: PastingTransform, type_: ElementType, taken: Iterable[str], output: tuple[str, ...]
) -> tuple[dict[str, str], OpError | None]:
    """Returns the mask of instances that says of each image what is pasted into it, where one does; and what is wrong with it."""
    found: dict[str, str] = {}
    for image in dict.fromkeys(anchor(type_, name) for name in taken):
        mask, wrong = pasted_by(step, type_, [name for name in taken if anchor(type_, name) == image], output)
        if wrong is not None:
            return {}, wrong
        found |= {image: mask} if mask is not None else {}
    return found, None


def late(mixed: StepRef, ref: StepRef) -> OpError:
    """Reports a step that works on single examples and comes after the mixing."""
    message = f"`{ref.step.op}` works on one image at a time, and `{mixed.step.op}` before it has stacked and mixed them"
    return OpError("PG224", message, help=f"put it before `{mixed.step.op}`")


def _masks(
    plan: MixPlan, ref: StepRef[MixingTransform], type_: ElementType, taken: dict[str, FeatureType], by: dict[str, str]
) -> dict[str, str]:
    """Returns the mask that decides for each image and what is aligned with it, of a step that pastes by masks; `by` has those of instances
    that do, by their image."""
    step = ref.of(PastingTransform).step
    if step.mask is not None and (step.mask not in taken or not kind_of(taken[step.mask]).categorical):
        known = [name for name, y in taken.items() if kind_of(y).categorical]
        help_ = write(f"mask: {known[0]}", "entry") if known else "leave the step out"
        plan.errors.append(OpError("PG596", f"`{step.op}` pastes by `{step.mask}`, which is no mask", field="mask", help=help_))
        return {}
    found = {}
    for name in taken:
        home = anchor(type_, name)
        masks = [m for m in taken if kind_of(taken[m]).categorical and anchor(type_, m) == home]
        if by.get(home, step.mask) in masks:
            masks = [by.get(home) or step.mask or ""]
        if len(masks) != 1:
            which = f"there are {len(masks)} of `{home}`" if masks else f"`{home}` has none"
            help_ = (
                write(f"mask: {masks[0]}", "arguments", "say which one: {}") if masks else f"leave `{step.op}` out, or give `{home}` a mask"
            )
            plan.errors.append(OpError("PG596", f"`{step.op}` pastes what a mask shows, and {which}", help=help_))
            return {}
        found[name] = masks[0]
    return found


def _stage(ref: StepRef[MixingTransform], feature: str, y: FeatureType, masks: dict[str, str], type_: ElementType) -> Stage:
    """The stage of a step on a feature that it acts on itself."""
    if feature not in masks:
        return Mix(feature, ref, _canvas(y), label=False) if y.instances is None else MixInstances(feature, ref, _canvas(y), y.ignore)
    paste = Paste if y.instances is None else PasteInstances
    return paste(feature, ref.of(PastingTransform), masks[feature], type_[masks[feature]].ignore, label=False)


def _follower(
    plan: MixPlan,
    spec: PipelineSpec,
    ref: StepRef[MixingTransform],
    name: str,
    type_: ElementType,
    canvas: tuple[int | None, int | None],
    mask: str | None,
    *,
    joined: bool,
) -> None:
    """A feature of the output that the step does not act on itself: a label follows, other images stay, the items of two are `joined`,
    and the rest has no rule."""
    op, x = ref.step.op, type_[name]
    if ref.step.acts_on(kind_of(x)) or x.encoded:
        return
    if joined:
        return
    if not kind_of(x).labels:
        message = f"`{op}` mixes two examples, and has no rule for a feature of kind `{kind_of(x).rules_of or x.kind}`, which `{name}` is"
        plan.errors.append(OpError("PG203", message, help=f"leave `{name}` out of `output`, or `{op}` out of `transforms`"))
        return
    encoding = encoding_of(spec.output, name, x)
    if encoding not in _SOFT:
        message = f"`{op}` gives each image a part of two labels, and a class index as `{name}` can hold one alone"
        plan.errors.append(OpError("PG223", message, help=write(f"output: {{encode: {{{name}: one_hot}}}}", "spec")))
        return
    if encoding == "multi_hot" and not (several_labels(x) or is_encoded(x)):
        return  # a finding about the output
    y = x
    if not is_encoded(x):
        stage, y = encode(name, encoding, x)
        plan.encodings.append((name, stage, y))
    if mask is None:
        plan.stages.append((name, Mix(name, ref, canvas, label=True), y))
    else:
        plan.stages.append((name, Paste(name, ref.of(PastingTransform), mask, type_[mask].ignore, label=True), y))


def _canvas(x: FeatureType) -> tuple[int | None, int | None]:
    return (x.height, x.width)
