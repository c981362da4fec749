"""Makes the plan that shows augmented images: without the normalisation at the end, which only the model needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.ops.families.fitted import StepPart
from pipegen.ops.kinds.registry import kind_of, kinds
from pipegen.passes.base import Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Emit
from pipegen.spec.models import Output

if TYPE_CHECKING:
    from pipegen.plan.nodes import Node, Plan
    from pipegen.types import ElementType, FeatureType

INDEX = ("@epoch", "@slot", "@record", "@draws")
"""What the index says of each example, by the names that the backend gives it."""


def finishes(stage: s.Stage) -> bool:
    """Returns whether a stage at the end only brings an image into the form that a model takes."""
    if isinstance(stage, s.Neighbourhood):
        return isinstance(stage.ref.step, StepPart)
    return stage.cheap and not isinstance(stage, s.Express)


def varies(split: str, plan: Plan) -> bool:
    """Returns whether the examples of a split differ from epoch to epoch: only training goes on to the next."""
    return split == "train" and bool(plan.index.draws)


def forks_of(plan: Plan) -> list[s.Fork]:
    """The stages that make views."""
    return [stage for stage in (*plan.part_stages(), *plan.stages()) if isinstance(stage, s.Fork)]


def views_of(plan: Plan, feature: str) -> tuple[str, ...]:
    """The views of a feature; itself where it has none."""
    return next((fork.names for fork in forks_of(plan) if fork.feature == feature), (feature,))


def augmented(plan: Plan, size: int | None) -> Plan:
    """The plainest plan of a split without the stages that finish an image, whose pictures are all that it hands over.

    Args:
        plan: The plainest plan, one stage a node.
        size: Batches of this many, of which the last may be smaller; `None` leaves them.
    """
    if plan.buckets:
        return plan.each(lambda own: augmented(own, size))
    items = unpack(plan)
    last = {item.stage.feature: i for i, item in enumerate(items) if isinstance(item, Placed) and not finishes(item.stage)}
    kept: dict[str, FeatureType] = {}

    def mended(type_: ElementType) -> ElementType:
        mended_ = type_.replace(**{name: t for name, t in kept.items() if name in type_})
        return mended_ if size is None or type_.batch is None else mended_.with_batch(0)

    done: list[Node | Placed] = []
    for i, item in enumerate(items):
        if isinstance(item, Placed):
            feature = item.stage.feature
            if finishes(item.stage) and i > last.get(feature, -1):
                kept |= {name: item.before[name] for name in item.stage.touches() if name not in kept}
            else:
                done.append(Placed(item.stage, mended(item.before), mended(item.after)))
        elif isinstance(item, Batch) and size is not None:
            done.append(replace(item, out=mended(item.out), size=size, remainder="keep"))
        elif isinstance(item, Emit):
            out = mended(item.out)
            done.append(Emit(out, Output(x={name: name for name in (*pictures(out), *ragged(out))}, y=None)))
        else:
            done.append(replace(item, out=mended(item.out)))
    return pack(plan, done)


def pictures(type_: ElementType) -> tuple[str, ...]:
    """The features that can be looked at: images, then masks."""
    return tuple(name for kind in kinds() if kind.pictured for name, t in type_.items() if t.kind == kind.name)


def ragged(type_: ElementType) -> tuple[str, ...]:
    """The features that have any number of items, and what says which of those are there."""
    return tuple(name for name, t in type_.items() if kind_of(t).padded and not kind_of(t).numbers_items)


def with_index(plan: Plan) -> Plan:
    """A compiled plan that hands over as well what the index says of each example."""
    if plan.buckets:
        return plan.each(with_index)
    out = plan.emit.out
    names = {name: name for name in (*pictures(out), *ragged(out), *INDEX)}
    emit = Emit(out, Output.model_construct(x=names, y=None, sample_weight=None))
    return plan.with_nodes([emit if isinstance(node, Emit) else node for node in plan.nodes])
