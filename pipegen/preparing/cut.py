"""Finds a place to cut a spec in two: deterministic steps, whose results are stored, and the steps after them.

A cut lies between two steps, and never within a segment, so that pixels are still resampled only once. The same steps come before it on
every split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.families.item_stages import Enter, Measure
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import StepRef
from pipegen.plan import stages as s
from pipegen.plan.evaluation_plans import learning_steps
from pipegen.plan.nodes import Element, Read
from pipegen.spec.steps import ids_of
from pipegen.types import FLOATING, ElementType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.stage import Stage
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import FeatureType

_ALWAYS = -1
"""The place of a default decoder, which is not in the spec."""


class NoCutError(Exception):
    """Nothing can be stored; the message is the reason, and `help` the way out."""

    def __init__(self, message: str, help_: str) -> None:
        super().__init__(message)
        self.help = help_


@dataclass(frozen=True)
class Cut:
    """A place to cut a spec at: the number of steps and the stages of each split before it.

    Attributes:
        type: The type of an example at the cut, alike for every split; sides of images that differ between splits are unknown.
        least: Height and width in pixels: the spec decodes an image with both sides at least twice as long at a fraction of its size, which
            depends on steps after the cut; `None` if it never does.
    """

    steps: int
    stages: Mapping[str, tuple[Stage, ...]]
    type: ElementType
    least: tuple[int, int] | None = None


def find_cut(spec: PipelineSpec, plans: Mapping[str, Plan], at: str | None = None) -> Cut:
    """Finds the last place to cut a spec by its plainest plans, or the one after the step with the name or the id `at`.

    Raises:
        NoCutError: If it cannot be cut.
    """
    if spec.source.mixed():
        message = "the parts of a `mix` have other numbers and orders in each epoch, and a store has one list of records"
        raise NoCutError(message, "prepare the source of each part by itself, and use the stores as parts of the mix")
    if spec.stages:
        raise NoCutError("`stages` set params, and the spec of a store has none", "prepare it without `stages`")
    if any(plan.buckets for plan in plans.values()):
        message = "`buckets` depend on the original size of each image, which a store does not have"
        raise NoCutError(message, "prepare it with one size, without `batch.buckets`")
    if at is not None:
        return _after(spec, plans, at)
    why = ""
    for steps in range(_fixed(spec, plans), -1, -1):
        found = _cut(plans, steps)
        if isinstance(found, Cut) and all(t.dtype not in FLOATING for _, t in found.type.items() if kind_of(t).pictured):
            return found
        why = why or (found if isinstance(found, str) else "the last deterministic step makes floats, four times as large as bytes")
    raise NoCutError(f"nothing to prepare: {why}", "put the deterministic steps first, `decode` among them")


def _after(spec: PipelineSpec, plans: Mapping[str, Plan], at: str) -> Cut:
    ids = ids_of(spec.transforms)
    places = [i for i, (step, own) in enumerate(zip(spec.transforms, ids, strict=True)) if at in (own, step.op)]
    if not places:
        raise NoCutError(f"there is no step `{at}`", f"the steps are {', '.join(f'`{own}`' for own in ids) or 'none'}")
    steps = places[-1] + 1
    if steps > _fixed(spec, plans):
        first = ids[_fixed(spec, plans)]
        message = f"the results of `{first}` are not the same in every epoch and on every split"
        raise NoCutError(message, f"cut before it: `--at` names a step before `{first}`")
    found = _cut(plans, steps)
    if isinstance(found, str):
        raise NoCutError(f"nothing can be stored after `{at}`: {found}", "leave `--at` out: then the last possible place is used")
    return found


def _fixed(spec: PipelineSpec, plans: Mapping[str, Plan]) -> int:
    """Counts the steps before the first one that is random, or has another form in evaluation."""
    random = {_place(ref) for plan in plans.values() for stage in plan.stages() for ref in stage.uses() if ref.is_random}
    random |= {i for i, step in enumerate(spec.transforms) if step.random or step.inner_steps() or step.evaluation_form()}
    random |= {i for i, _ in learning_steps(spec)}  # they learn from the training split, for all splits
    return min([i for i in random if i >= 0] + [len(spec.transforms)])  # steps of a branch of views do not count


def _place(ref: StepRef) -> int:
    """The number of a use's step in the spec."""
    policy = ref.choice.policy if ref.choice is not None else ref
    return next((part for part in policy.path if isinstance(part, int)), _ALWAYS)


def _cut(plans: Mapping[str, Plan], steps: int) -> Cut | str:
    """Cuts before step number `steps`; returns a message if that is impossible."""
    stages: dict[str, tuple[Stage, ...]] = {}
    types: list[ElementType] = []
    least: tuple[int, int] | None = None
    for split, plan in plans.items():
        taken = _taken(plan, steps)
        if isinstance(taken, str):
            return taken
        stages[split], type_, needed = taken
        types.append(type_)
        least = _lesser(least, needed)
    together = _together(types)
    return together if isinstance(together, str) else Cut(steps, stages, together, least)


def _taken(plan: Plan, steps: int) -> tuple[tuple[Stage, ...], ElementType, tuple[int, int] | None] | str:
    """Takes the stages before a step from a split's plan; returns them, the type after them, and `Cut.least`; or a message."""
    read = next(node for node in plan.nodes if isinstance(node, Read))
    now, kept, least = dict(read.out.items()), [], None
    open_: set[str] = set()
    last: dict[str, Stage] = {}
    for node in plan.nodes:
        if not isinstance(node, Element):
            continue
        for stage in node.stages:
            name, own = stage.feature, stage
            # Items are brought into form before the first step.
            before = {True} if isinstance(stage, (Measure, Enter)) else {_place(ref) < steps for ref in stage.uses()}
            if isinstance(stage, DecodeWindow) and _place(stage.decode) < steps <= _place(stage.crop):
                own = Decode(name, stage.decode, None)
                least = _lesser(least, stage.needed)
                now[name] = stage.decode.step.infer(now[name])
            elif len(before) == 2:
                return f"the steps before and after it are merged into one on `{name}`"
            elif not before and name not in open_:
                continue  # a stage of the output, after every step
            elif before == {False}:
                if name in open_:
                    return f"`{stage.uses()[0].id}` and the step before it resample `{name}` once, as one segment"
                last.setdefault(name, stage)
                continue
            elif name in last:
                raise InternalError("the stages of a plan are not in the order of the spec's steps")
            else:
                now[name] = node.out[name]
            open_ = open_ | {name} if isinstance(stage, s.Composes) else open_ - {name}
            kept.append(own)
    for i, stage in enumerate(kept):
        if isinstance(stage, Decode) and stage.needed is not None and not any(b.feature == stage.feature for b in kept[i + 1 :]):
            least = _lesser(least, stage.needed)
            kept[i] = Decode(stage.feature, stage.ref, None, stage.like)
    return tuple(kept), ElementType(tuple(now.items())), least


def _lesser(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """The minimum of two sizes, side by side."""
    return b if a is None else a if b is None else (min(a[0], b[0]), min(a[1], b[1]))


def _together(types: list[ElementType]) -> ElementType | str:
    """Unites the types of the splits; returns a message if they do not fit."""
    features: dict[str, FeatureType] = {}
    for name, first in types[0].items():
        others = [type_[name] for type_ in types]
        if any((t.kind, t.dtype, len(t.shape)) != (first.kind, first.dtype, len(first.shape)) for t in others):
            return f"`{name}` has different types on the splits"
        if first.encoded and kind_of(first).pictured:
            return f"`{name}` is not decoded before it"
        if kind_of(first).valid:
            continue  # computed with its items
        if kind_of(first).ragged:
            # The items of an example, padded on every split to the largest number of places of any.
            most = 0 if first.beside is not None else max((t.shape[0] or 0 for t in others), default=0)
            prepared = kind_of(first).prepared_type(first)
            features[name] = prepared.with_(shape=(None, *first.shape[1:]), uniform=False, most=most)
            continue
        shape = tuple(side if all(t.shape[i] == side for t in others) else None for i, side in enumerate(first.shape))
        if any(side is None for side in shape[2:] if kind_of(first).pictured):
            return f"`{name}` has different numbers of channels on the splits"
        features[name] = first.with_(shape=shape, uniform=False)
    return ElementType(tuple(features.items()))
