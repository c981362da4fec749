"""Passes that drop work: on features that the model does not receive, in steps that change nothing, and in steps that all views repeat."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from pipegen.ops.families.crops import ChooseWindow, window_name
from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.item_stages import Measure
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, retyped, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Node, Plan, Read
from pipegen.plan.outputs import received
from pipegen.types import ElementType, FeatureType


@rewrite("E0", "features that the model does not receive need no work")
def drop_unused(plan: Plan, context: PassContext, note: Note) -> Plan:
    """image, mask, depth; the model gets image and mask → image, mask.

    A feature that the model does not receive is not read, decoded, processed or cached, unless a received feature depends on its file. So
    an image stays if a received mask in a file is aligned with it: both have to be of one size, which is that of the image's file. The
    vector of draws stays as it is, so that every step keeps its draws.
    """
    left = without_unused(plan)
    gone = [f"`{name}`" for name in _types(plan) if name not in _types(left)]
    if gone:
        note(f"the model does not receive {' and '.join(gone)}")
    return left


def without_unused(plan: Plan) -> Plan:
    """Removes unused features from a plan with one stage a node."""
    if plan.buckets:
        return plan.each(without_unused)
    needed = _needed(plan)
    unused = tuple(name for name in _types(plan) if name not in needed)
    if not unused:
        return plan

    def less(node: Node) -> Node:
        return replace(node, out=node.out.without(*unused))

    def of_part(part: tuple[Read | Element, ...]) -> tuple[Any, ...]:
        works = [node for node in part if isinstance(node, Read) or node.stages[0].feature in needed]
        return tuple(
            less(node if isinstance(node, Read) else replace(node, stages=tuple(_less(st, needed) for st in node.stages))) for node in works
        )

    kept: list[Node | Placed] = []
    for item in unpack(plan):
        if not isinstance(item, Placed):
            kept.append(less(replace(item, parts=tuple(map(of_part, item.parts))) if isinstance(item, Read) else item))
        elif item.stage.feature in needed:
            kept.append(Placed(_less(item.stage, needed), item.before.without(*unused), item.after.without(*unused)))
    return pack(plan, kept)


def _less(stage: Stage, needed: set[str]) -> Stage:
    """Removes unused views from a fork, and unused riders from a stage on items."""
    riders = getattr(stage, "riders", ())
    if riders:
        return replace(stage, riders=tuple(name for name in riders if name in needed))
    if not isinstance(stage, s.Fork):
        return stage
    kept = [i for i, name in enumerate(stage.names) if name in needed]
    names, homes, besides = (tuple(several[i] for i in kept if several) for several in (stage.names, stage.homes, stage.besides))
    return replace(stage, names=names, homes=homes, besides=besides)


def _types(plan: Plan) -> dict[str, FeatureType]:
    """The features of all edges."""
    parts = (node for read in plan.nodes if isinstance(read, Read) for part in read.parts for node in part)
    return {name: t for node in (*plan.nodes, *parts) for name, t in node.out.items()}


def _needed(plan: Plan) -> set[str]:
    """The features that the model receives, and those that they depend on."""
    needed = set(received(plan.emit.output))
    # A padded feature and the mask of its valid items need each other; features beside them lose items with them.
    needed |= {t.beside for name, t in _types(plan).items() if name in needed and t.beside is not None}
    valid = [{name, t.of} for name, t in _types(plan).items() if t.of is not None and kind_of(t).valid]
    needed |= {name for pair in valid if pair & needed for name in pair}
    stages = (*plan.part_stages(), *plan.stages())
    before = 0
    while before != (before := len(needed)):  # a needed feature may be made from another one
        needed |= {name for st in stages if st.feature in needed for name in st.needs()}
    used = {window_name(ref) for st in stages if st.feature in needed for ref in st.uses()}
    needed |= {part for st in stages if isinstance(st, ChooseWindow) and window_name(st.ref) in used for part in st.touches()}
    needed |= {st.like[0] for st in stages if isinstance(st, (Decode, Measure)) and st.feature in needed and st.like}
    return needed | {st.feature for st in stages if isinstance(st, s.Fork) and needed & {*st.names}}


@rewrite("E0", "steps that change nothing cost nothing", in_parts=True)
def drop_identities(plan: Plan, context: PassContext, note: Note) -> Plan:
    """`random_rotation: {degrees: 0}` → nothing.

    Drops stages that provably change no value: steps that declare it, arithmetic of scale 1 and offset 0 that keeps the dtype, and the
    resampling of a segment with no steps left.
    """
    kept: list[Node | Placed] = []
    emptied: set[str] = set()
    pending: dict[str, FeatureType] = {}
    for item in unpack(plan):
        if not isinstance(item, Placed):
            kept.append(item)
            continue
        stage, feature = item.stage, item.stage.feature
        if isinstance(stage, s.Composes):
            x = item.before[feature] if stage.opens else pending[feature]
            pending[feature] = stage.ref.step.infer(x)
            opens = stage.opens or feature in emptied
            if pending[feature] == x and stage.ref.step.is_identity(x):
                emptied |= {feature} if opens else set()
                note(f"`{stage.ref.id}` changes nothing")
                continue
            emptied.discard(feature)
            kept.append(Placed(replace(stage, opens=opens), item.before, item.after))
        elif isinstance(stage, (s.Resample, s.ApplyColour)) and feature in emptied:
            emptied.discard(feature)
        elif feature in item.after and stage.is_identity(item.before[feature], item.after[feature]):
            *_, what = f"arithmetic on `{feature}`", *(f"`{ref.id}`" for ref in stage.uses())
            note(f"{what} changes nothing")
        else:
            kept.append(item)
    return pack(plan, kept)


@rewrite("E0", "steps that all views begin with run once", in_parts=True)
def share_views(plan: Plan, context: PassContext, note: Note) -> Plan:
    """As image_1 and image_2, decode image_1, decode image_2, flip → decode image, as image_1 and image_2, flip.

    The first steps that all views of an example have in common run once: reading, decoding, and equal steps up to the first one that draws.
    Arithmetic at the end of these stays with each view, where it can be folded, and segments stay whole.
    """
    items = unpack(plan)
    forks = [item.stage for item in items if isinstance(item, Placed) and isinstance(item.stage, s.Fork)]
    if not forks:
        return plan
    first = next(i for i, item in enumerate(items) if isinstance(item, Placed))
    end = next((i for i, item in enumerate(items) if isinstance(item, Batch)), len(items))
    between = [item for item in items[first:end] if isinstance(item, Placed)]
    home = {name: fork.feature for fork in forks for name in fork.names}
    shared = _shared(forks, between, home)
    done: list[Placed] = []
    early: list[Placed] = []
    seen: dict[str, int] = {}
    for item in between:
        feature = item.stage.feature
        number = seen[feature] = seen.get(feature, -1) + 1
        if feature not in home or number >= shared[home[feature]]:
            done += [] if isinstance(item.stage, s.Fork) else [item]
        elif feature == next(fork for fork in forks if fork.feature == home[feature]).names[0]:
            types = {home[name]: item.after[name] for name in item.stage.touches()}
            after = ElementType(tuple((name, t.with_(of=home.get(t.of or "", t.of))) for name, t in types.items()))
            early.append(Placed(_renamed(item.stage, home), item.before, after))
    for fork in forks:
        if shared[fork.feature]:
            steps = dict.fromkeys(f"`{ref.id}`" for item in early if item.stage.feature == fork.feature for ref in item.stage.uses())
            note(f"once for the {len(fork.names)} views of `{fork.feature}`: {', '.join(steps)}")
    entry = between[0].before
    edges = [Placed(fork, entry, entry) for fork in forks]
    return pack(plan, [*items[:first], *retyped([*early, *edges, *done], entry), *items[end:]])


def _shared(forks: list[s.Fork], items: list[Placed], home: dict[str, str]) -> dict[str, int]:
    """Counts the first stages that the views of each feature have in common; `home` has the features of the record, by view."""
    found: dict[str, int] = {}
    chains = {name: [item.stage for item in items if item.stage.feature == name] for name in home}
    for fork in forks:
        own = chains[fork.names[0]]
        alike = [[s.plainly(_renamed(stage, home)) for stage in chains[name]] for name in fork.names]
        count = 0
        while all(count < len(chain) and chain[count] == alike[0][count] for chain in alike) and not s.is_random(own[count]):
            count += 1
        while count and (own[count - 1].cheap or isinstance(own[count - 1], s.Composes)):
            count -= 1
        found[fork.feature] = count
    for name, chain in chains.items():  # a stage that reads another feature's file needs that file in each view
        for stage in chain[found[home[name]] :]:
            if isinstance(stage, (Decode, Measure)) and stage.like:
                found[home.get(stage.like[0], stage.like[0])] = 0
    return found


def _renamed(value: Any, home: dict[str, str]) -> Any:
    """Renames the features of a view's stage to those of the record."""

    def named(own: Any) -> Any:
        return home.get(own, own) if isinstance(own, str) else tuple(map(named, own)) if type(own) is tuple else own

    return replace(value, **{part.name: named(getattr(value, part.name)) for part in fields(value)})
