"""Planning of a step that combines examples: images of one size, soft labels, and a rule for every other feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.errors import OpError
from pipegen.ops.families.combining import Combine, CombiningTransform, anchor
from pipegen.ops.families.item_stages import CombineInstances, CombineItems, Paste, PasteInstances, PastePoints, PastingTransform
from pipegen.ops.kinds.base import ExampleClass, Indices, Presence, kind_of, several_labels
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.traits import Family
from pipegen.plan.item_planning import about_items, pasted, pasted_by
from pipegen.plan.outputs import encode, encoding_of, is_encoded, unbatchable
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, received
from pipegen.types import ElementType, FeatureType

_SOFT = ("one_hot", "binary", "multi_hot")  # the encodings whose weighted mean is meaningful


@dataclass
class CombiningPlan:
    """The stages of one use of a combining step, and its errors."""

    encodings: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)
    """Stages on single examples, before they are stacked; those of the other lists work on whole batches."""
    stages: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)
    items: list[CombineItems] = field(default_factory=list)
    before: list[Stage] = field(default_factory=list)
    last: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)  # stages that change masks, after all others have read these
    errors: list[OpError] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)  # findings about something else than the step
    poisoned: set[str] = field(default_factory=set)
    """Features whose later findings are suppressed; `combining` for an error that belongs to no single feature."""


def plan_combining(
    spec: PipelineSpec,
    split: str,
    ref: StepRef[CombiningTransform],
    type_: ElementType,
    taken: dict[str, FeatureType],
    later: tuple[StepRef, ...],
    locate: Locate,
) -> CombiningPlan:
    """Plans one use of a combining step, with `later` steps after it.

    `taken` has the types after it of the features that it acts on; labels follow from them.
    """
    plan = CombiningPlan()
    by, masks = {}, {}  # type: dict[str, str], dict[str, str]
    if isinstance(ref.step, PastingTransform):
        by, wrong = _by_instances(ref.step, type_, taken, received(spec.output))
        if wrong is not None:
            return CombiningPlan(errors=[wrong], poisoned={"combining"})
        pasting = {None, *(type_[mask].instances for mask in by.values())}
        taken = {feature: y for feature, y in taken.items() if y.instances in pasting}
        masks = _masks(plan, ref, type_, taken, by)
    for feature, y in sorted(taken.items(), key=lambda one: one[0] in masks.values()):  # what reads a mask comes before it changes
        if type_[feature].is_static:
            left = y if y.instances is None else y.with_(dtype="int32")  # as long as it has the numbers of several images
            stages = plan.last if masks and (y.instances is not None or feature in masks.values()) else plan.stages
            stages.append((feature, _stage(ref, feature, y, masks, type_), left))
        elif any(r.step.traits(y).family is Family.ELEMENT for r in later):  # too late to fix the shape: the finding is about that step
            plan.poisoned.add("combining")
        else:
            plan.findings.append(unbatchable(spec, split, type_[feature], locate))
            plan.poisoned.add(feature)
    canvas = next(map(_canvas, taken.values()), (None, None))
    deciding = next(iter(masks.values()), None)
    points = [name for name, t in type_.items() if kind_of(t).guides("points") and t.beside is None]
    joining = {*points, *(type_[mask].instances for mask in by.values())} if masks else None
    for name in received(spec.output):
        if name in type_ and name not in taken:
            of = type_[name].beside or (type_[name].of if kind_of(type_[name]).has(Presence) else None) or name
            home = type_.get(of) or type_[name]
            lies = anchor(type_, of) if of in type_ else of
            near = lies in (of, *taken) or ref.step.acts_on(kind_of(type_[lies]))  # what lies on something else has no rule
            joined = _joins(home) and near if joining is None else of in joining
            _follower(plan, spec, ref, name, type_, canvas, deciding, joined=joined)
    if joining is None:
        joins = [name for name, t in type_.items() if _joins(t) and t.beside is None and anchor(type_, name) in (name, *taken)]
        plan.items += [CombineItems(name, ref=ref, canvas=canvas, **about_items(type_, name)) for name in joins]
    else:
        for mask in by.values():
            items, before = pasted(ref.of(PastingTransform), type_, mask, canvas)
            plan.items.append(items)
            plan.before.extend(before)
        for name, hiding in ((name, masks[anchor(type_, name)]) for name in points if anchor(type_, name) in masks):
            ignore, join = type_[hiding].ignore, _joins(type_[name])
            about = about_items(type_, name)
            plan.items.append(PastePoints(name, ref=ref, canvas=canvas, mask=hiding, ignore=ignore, joins=join, **about))
    if plan.errors:
        plan.poisoned.add("combining")
    return plan


def _joins(x: FeatureType) -> bool:
    """Checks that items of a type can be joined with those of another example."""
    return (geometry := kind_of(x).geometry) is not None and geometry.joins(x)


def _by_instances(
    step: PastingTransform, type_: ElementType, taken: Iterable[str], output: tuple[str, ...]
) -> tuple[dict[str, str], OpError | None]:
    """Selects the instance mask to paste by for each image, if any, and the error in that choice."""
    found: dict[str, str] = {}
    for image in dict.fromkeys(anchor(type_, name) for name in taken):
        mask, wrong = pasted_by(step, type_, [name for name in taken if anchor(type_, name) == image], output)
        if wrong is not None:
            return {}, wrong
        found |= {image: mask} if mask is not None else {}
    return found, None


def late(combined: StepRef, ref: StepRef) -> OpError:
    """The error of a step on single examples after a combining step."""
    message = f"`{ref.step.op}` works on single images, but `{combined.step.op}` before it has stacked and combined them"
    return OpError("PG224", message, help=f"put it before `{combined.step.op}`")


def _masks(
    plan: CombiningPlan, ref: StepRef[CombiningTransform], type_: ElementType, taken: dict[str, FeatureType], by: dict[str, str]
) -> dict[str, str]:
    """Selects the mask to paste by for each image and its aligned features; `by` has the instance masks of images."""
    step = ref.of(PastingTransform).step
    if step.mask is not None and (step.mask not in taken or not kind_of(taken[step.mask]).has(Indices)):
        known = [name for name, y in taken.items() if kind_of(y).has(Indices)]
        help_ = write(f"mask: {known[0]}", "entry") if known else "leave the step out"
        plan.errors.append(OpError("PG596", f"`{step.op}` pastes by `{step.mask}`, which is not a mask", field="mask", help=help_))
        return {}
    found = {}
    for name in taken:
        home = anchor(type_, name)
        masks = [m for m in taken if kind_of(taken[m]).has(Indices) and anchor(type_, m) == home]
        if by.get(home, step.mask) in masks:
            masks = [by.get(home) or step.mask or ""]
        if len(masks) != 1:
            has = f"has {len(masks)} masks" if masks else "has no mask"
            help_ = write(f"mask: {masks[0]}", "arguments", "name one: {}") if masks else f"leave `{step.op}` out, or give `{home}` a mask"
            plan.errors.append(OpError("PG596", f"`{step.op}` pastes by a mask, but `{home}` {has}", help=help_))
            return {}
        found[name] = masks[0]
    return found


def _stage(ref: StepRef[CombiningTransform], feature: str, y: FeatureType, masks: dict[str, str], type_: ElementType) -> Stage:
    """The stage of a step on a feature that it acts on."""
    if feature not in masks:
        numbered = y.instances is not None
        return CombineInstances(feature, ref, _canvas(y), y.ignore) if numbered else Combine(feature, ref, _canvas(y), label=False)
    paste = Paste if y.instances is None else PasteInstances
    return paste(feature, ref.of(PastingTransform), masks[feature], type_[masks[feature]].ignore, label=False)


def _follower(
    plan: CombiningPlan,
    spec: PipelineSpec,
    ref: StepRef[CombiningTransform],
    name: str,
    type_: ElementType,
    canvas: tuple[int | None, int | None],
    mask: str | None,
    *,
    joined: bool,
) -> None:
    """Plans a feature of the output that the step does not act on: labels are combined, images stay, items are `joined`; others are
    errors."""
    op, x = ref.step.op, type_[name]
    if ref.step.acts_on(kind_of(x)) or x.encoded or joined:
        return
    if not kind_of(x).has(ExampleClass):
        message = f"`{op}` has no rule to combine `{name}`, a feature of kind `{kind_of(x).rules_of or x.kind}`"
        plan.errors.append(OpError("PG203", message, help=f"leave `{name}` out of `output`, or `{op}` out of `transforms`"))
        return
    encoding = encoding_of(spec.output, name, x)
    if encoding not in _SOFT:
        message = f"`{op}` combines labels, but a class index such as `{name}` cannot hold two classes"
        plan.errors.append(OpError("PG223", message, help=write(f"output: {{encode: {{{name}: one_hot}}}}", "spec")))
        return
    if encoding == "multi_hot" and not (several_labels(x) or is_encoded(x)):
        return  # reported with the output
    y = x
    if not is_encoded(x):
        stage, y = encode(name, encoding, x)
        plan.encodings.append((name, stage, y))
    if mask is None:
        plan.stages.append((name, Combine(name, ref, canvas, label=True), y))
    else:
        plan.stages.append((name, Paste(name, ref.of(PastingTransform), mask, type_[mask].ignore, label=True), y))


def _canvas(x: FeatureType) -> tuple[int | None, int | None]:
    """The first two axes: height and width of an image, frames and channels of a sound."""
    return x.shape[0], x.shape[1]
