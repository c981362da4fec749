"""The plan of a split of a mix of sources.

Each part is planned as if it were alone, its own steps before the common ones. The nodes at the end that are equal in all
plans become those of the mix; the nodes before them run when a record of that part is read. So each part has the pixels that
it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import takewhile
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.item_stages import Move
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.stage import StepRef
from pipegen.plan import stages as s
from pipegen.plan.bucketed_plans import at_places
from pipegen.plan.build import ALL, Builder, Built, Given, Records
from pipegen.plan.evaluation_plans import learning_steps
from pipegen.plan.nodes import Batch, Element, Index, Kernel, Node, PartDraws, Plan, Read, Shard, Shuffle
from pipegen.plan.outputs import settled
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, received
from pipegen.spec.variants import joined, of_bucket, part_path, relocate_part, relocated_part
from pipegen.types import ElementType, FeatureType


def build_mixed(spec: PipelineSpec, split: str, locate: Locate, records: Records, given: Given = ALL) -> Built:
    """Builds the plan of a split of a mix."""
    parts = {name: part for name, part in spec.source.mixed().items() if split in part.split_names()}
    findings = [*_lacking(spec, parts, records, locate), *_misplaced(spec, parts, locate)]
    if findings:
        return Built(None, findings, set())
    kept = [records[name] for name in parts]  # in one order, features that all parts have
    common = [feature for feature in next(iter(kept), ()) if all(feature in type_ for type_ in kept)]
    records = {name: ElementType(tuple((feature, records[name][feature]) for feature in common)) for name in parts}
    alone = {
        name: Builder(of_bucket(joined(spec, name)), split, relocated_part(locate, spec, name), records[name]).build(given)
        for name in parts
    }
    found = at_places((name, built.findings) for name, built in alone.items())
    ordinary = {finding for built in alone.values() for finding in built.ordinary if finding in found}
    plans = {name: built.plan for name, built in alone.items() if built.plan is not None}
    if len(plans) < len(parts) or not plans:
        return Built(None, [*found], ordinary)
    made, wrong = _merged(spec, split, plans, locate)
    return Built(made, [*found, *wrong], ordinary)


def _lacking(spec: PipelineSpec, parts: Mapping[str, Any], records: Records, locate: Locate) -> list[Diagnostic]:
    """Finds features that the model receives and that only some parts have."""
    found = []
    for feature in received(settled(spec)):
        having = [name for name in records if feature in records[name]]
        for name in parts if having else ():
            if feature not in records[name]:
                message = f"the part `{name}` has no feature `{feature}`, which the model receives; the part `{having[0]}` has one"
                help_ = f"name the part's own: `features: {{{feature}: NAME}}`"
                if kind_of(records[having[0]][feature]).storage == "dense":
                    help_ += f"; or give all its examples one value: `fill: {{{feature}: VALUE}}`"
                found.append(make("PG463", message, locate(part_path(name), key=True), help=help_))
    return found


def _misplaced(spec: PipelineSpec, parts: Mapping[str, Any], locate: Locate) -> list[Diagnostic]:
    """Finds steps of a part that have to be common to all, and fitted common steps while a part has steps of its own before them."""
    found = []
    for name, i, step in ((name, i, step) for name, part in parts.items() for i, step in enumerate(part.transforms)):
        at, alone = locate((*part_path(name), "transforms", i, step.op), key=True), f"so it cannot be a step of `{name}` alone"
        common = "write it in `transforms`, which all parts go through"
        if isinstance(step, CustomTransform):
            found.append(make("PG468", f"`{step.op}` calls a Python function, {alone}", at, help=common))
        if isinstance(step, FittedTransform) and step.learns():
            message = f"`{step.op}` is fitted to the whole training split, {alone}"
            found.append(make("PG466", message, at, help=f"{common}; {step.untrained}"))
        if isinstance(step, CombiningTransform):
            found.append(make("PG465", f"`{step.op}` combines examples of all parts, {alone}", at, help="write it in `transforms`"))
    own = next((name for name, part in spec.source.mixed().items() if part.transforms), None)
    for i, step in learning_steps(spec) if own is not None else ():
        message = f"`{step.op}` is fitted to the training split, but the part `{own}` has steps of its own before it"
        help_ = (step.untrained, f"or leave out the `transforms` of `{own}`")
        found.append(make("PG466", message, locate(("transforms", i, step.op), key=True), help=help_))
    return found


def _merged(spec: PipelineSpec, split: str, plans: Mapping[str, Plan], locate: Locate) -> tuple[Plan | None, list[Diagnostic]]:
    """Joins the plans of the parts, or finds why they cannot be joined."""
    placed = _Placed(spec, plans)
    bodies = {name: placed.body(name) for name in plans}
    entries = {name: plan.read for name, plan in plans.items()}
    shared = _alike(bodies, entries)
    first = max(plans, key=lambda name: (-len(spec.source.mixed()[name].transforms), -list(plans).index(name)))
    if shared is None:
        wide = _widened(bodies, entries)
        bodies, shared = (bodies, None) if wide is None else (wide, _alike(wide, entries))
        if shared is None:
            return None, [_apart(bodies, entries, locate)]
    tail = bodies[first][len(bodies[first]) - shared :]
    heads = {name: body[: len(body) - shared] for name, body in bodies.items()}
    entry = heads[first][-1].out if heads[first] else entries[first]
    programs: tuple[tuple[Read | Element, ...], ...] = tuple(
        (Read(entries[name]), *[n for n in head if isinstance(n, Element)]) for name, head in heads.items()
    )
    source = plans[first]
    shuffle = next((n for n in source.nodes if isinstance(n, Shuffle)), None)
    index = replace(
        source.index,
        order=shuffle.order if shuffle else "stored",
        window_bytes=shuffle.window_bytes if shuffle else None,
        draws=placed.draws(first),
        sampled=any(plan.index.sampled for plan in plans.values()),
        parts=tuple(PartDraws(name, placed.draws(name)) for name in plans),
        width=placed.width,
    )
    shard = [Shard(entry)] if any(isinstance(n, Shard) for n in source.nodes) else []
    read = Read(entry, programs if any(map(len, heads.values())) else ())
    return Plan(split, (index, read, *shard, *tail)), []


class _Placed:
    """Places of the steps of all parts: in the spec, and in the one vector of draws, common steps first."""

    def __init__(self, spec: PipelineSpec, plans: Mapping[str, Plan]) -> None:
        self._plans = plans
        self._own = {name: len(spec.source.mixed()[name].transforms) for name in plans}
        self._of: dict[str, dict[str, tuple[int, int, int]]] = {name: {} for name in plans}
        """By part and by image key: where the image's draws begin, and the numbers of draws of own and of common steps."""
        for name, plan in plans.items():
            for ref in plan.index.draws:
                begin, own, common = self._of[name].get(_image(ref), (ref.start, 0, 0))
                mine = len(ref.path) > 1 and isinstance(ref.path[1], int) and ref.path[1] < self._own[name]
                self._of[name][_image(ref)] = begin, own + mine * ref.num_draws, common + (not mine) * ref.num_draws
        images = dict.fromkeys(image for of in self._of.values() for image in of)
        most = {i: [max(of[i][k] for of in self._of.values() if i in of) for k in (1, 2)] for i in images}
        self._begin: dict[str, int] = {}
        self.width = 0
        for image, (own, common) in most.items():
            self._begin[image], self.width = self.width, self.width + own + common
        self._common = {image: common for image, (_, common) in most.items()}

    def ref(self, name: str, ref: StepRef) -> StepRef:
        """Moves a use of a step from a part's plan to its place in the mix."""
        path = relocate_part(ref.path, name, self._own[name])
        if not ref.num_draws and ref.choice is None:
            return replace(ref, start=0, path=path)
        image = _image(ref)
        begin, own, _ = self._of[name][image]
        start = ref.start - begin
        start = self._begin[image] + (self._common[image] + start if start < own else start - own)
        choice = replace(ref.choice, policy=self.ref(name, ref.choice.policy)) if ref.choice is not None else None
        return replace(ref, start=start, path=path, choice=choice)

    def draws(self, name: str) -> tuple[StepRef, ...]:
        """The uses that draw in a part, in the order of the vector."""
        return tuple(sorted((self.ref(name, ref) for ref in self._plans[name].index.draws), key=lambda ref: ref.start))

    def body(self, name: str) -> tuple[Node, ...]:
        """The nodes of a part's plan after `Read`, with the places of the mix."""
        kept = (n for n in self._plans[name].nodes if not isinstance(n, (Index, Read, Shuffle, Shard)))
        return tuple(_with_uses(n, lambda ref: self.ref(name, ref)) for n in kept)


def _image(ref: StepRef) -> str:
    """The key of a use's draws beside the step's id: the image's name, or "" for the first image."""
    return ref.id.partition("@")[2]


def _plain(ref: StepRef) -> StepRef:
    """A use of a step without its id, which can differ between parts for a common step."""
    choice = replace(ref.choice, policy=_plain(ref.choice.policy)) if ref.choice is not None else None
    return replace(ref, id="", choice=choice)


def _with_uses(node: Node, change: Callable[[StepRef], StepRef]) -> Node:
    """Changes each use of a step in a node."""
    return replace(node, stages=s.with_refs(node.stages, change)) if isinstance(node, (Element, Kernel)) else node


def _alike(bodies: Mapping[str, tuple[Node, ...]], entries: Records) -> int | None:
    """The number of equal nodes at the end of all plans that start from one type; `None` unless it includes the batch."""
    plain = [[_with_uses(node, _plain) for node in body] for body in bodies.values()]
    first = plain[0]
    same = sum(1 for _ in takewhile(lambda nodes: nodes.count(nodes[0]) == len(nodes), zip(*map(reversed, plain), strict=False)))
    least = next(i for i, node in enumerate(reversed(first), 1) if isinstance(node, Batch))
    for count in range(same, least - 1, -1):
        heads = {name: body[: len(body) - count] for name, body in bodies.items()}
        types = [head[-1].out if head else entries[name] for name, head in heads.items()]
        if all(t == types[0] for t in types) and _closed(heads, first[len(first) - count :]):
            return count
    return None


def _closed(heads: Mapping[str, tuple[Node, ...]], tail: list[Node]) -> bool:
    """Tests if only features pass from the heads to the tail: no pending matrix, and no measured size."""
    for head in heads.values():
        stages = [stage for node in head if isinstance(node, Element) for stage in node.stages]
        ends = (*s.Composes, s.Resample, s.ApplyColour)
        pending = {stage.feature: isinstance(stage, s.Composes) for stage in stages if isinstance(stage, ends)}  # the last one counts
        if any(pending.values()):
            return False
    moves = [stage for node in tail if isinstance(node, (Element, Kernel)) for stage in node.stages if isinstance(stage, Move)]
    return not any(heads.values()) or all(None not in stage.canvas for stage in moves)


def _widened(bodies: Mapping[str, tuple[Node, ...]], entries: Records) -> dict[str, tuple[Node, ...]] | None:
    """Widens the intervals of values that enter the batch to those of all parts; `None` if more than intervals differ."""
    at = {name: next(i for i, node in enumerate(body) if isinstance(node, Batch)) for name, body in bodies.items()}
    lengths = {len(body) - at[name] for name, body in bodies.items()}
    if len(lengths) > 1:
        return None
    made = {name: list(body) for name, body in bodies.items()}
    for back in range(-1 - lengths.pop(), 0):
        types = {name: body[back].out if len(body) >= -back else entries[name] for name, body in bodies.items()}
        wide = _union(list(types.values()))
        if wide is None or any(len(body) < -back for body in bodies.values()):
            return None
        for body in made.values():
            body[back] = replace(body[back], out=wide)
    return {name: tuple(body) for name, body in made.items()}


def _union(types: list[ElementType]) -> ElementType | None:
    """The type that includes all `types`; `None` if they differ in more than intervals."""
    first, *others = types
    found = []
    for name, t in first.items():
        same: list[FeatureType] = [t, *(other[name] for other in others if name in other)]
        if len(same) < len(types) or any(_essence(x) != _essence(t) for x in same):
            return None
        interval = t.interval
        for x in same[1:]:
            interval = interval.union(x.interval) if interval is not None and x.interval is not None else None
        uniform, centred = all(x.uniform for x in same), any(x.centred for x in same)
        found.append((name, t.with_(interval=interval, centred=centred, file_channels=None, file_bits=None, uniform=uniform)))
    return ElementType(tuple(found), first.batch)


def _argument_apart(feature: str, types: Mapping[str, FeatureType]) -> str | None:
    """Describes an argument of a feature that differs between two parts, if any."""
    (first, one), (other, another) = ((part, kind_of(t).arguments_of(t)) for part, t in types.items())
    name = next((name for name in {**one, **another} if one.get(name) != another.get(name)), None)
    if name is None:
        return None
    said, there = (f"`{name}: {own[name]}`" if name in own else f"no `{name}`" for own in (one, another))
    return f"`{feature}` has {said} in the part `{first}` and {there} in `{other}`; a batch takes one of them"


_SAID = {"ignore": "`ignore`", "classes": "number of classes", "of": "image", "details": "description"}
"""Names of parts of a type in messages."""


def _essence(t: FeatureType) -> FeatureType:
    return t.with_(interval=None, centred=False, file_channels=None, file_bits=None, uniform=t.uniform and None in t.shape)


def _apart(bodies: Mapping[str, tuple[Node, ...]], entries: Records, locate: Locate) -> Diagnostic:
    """The finding about parts whose types differ where the common steps begin."""
    types: dict[str, ElementType] = {}
    for name, body in bodies.items():
        at = next(i for i, node in enumerate(body) if isinstance(node, Batch))
        types[name] = body[at - 1].out if at else entries[name]
    first, *others = types
    help_ = "make the steps of each part end at the same size, channels and dtype"
    for other in others:
        for feature, t in types[first].items():
            there = types[other].get(feature)
            if there is None or _essence(there) != _essence(t):
                message = f"`{feature}` is {t} in the part `{first}` and {there} in `{other}`; a batch takes one of them"
                if there is not None and (t.dtype, t.shape) == (there.dtype, there.shape):
                    part = next(p.name for p in fields(t) if getattr(_essence(t), p.name) != getattr(_essence(there), p.name))
                    told = f"{getattr(t, part)} in the part `{first}` and {getattr(there, part)} in `{other}`"
                    message = f"the {_SAID.get(part, part)} of `{feature}` is {told}; a batch takes one of them"
                    message = _argument_apart(feature, {first: t, other: there}) or message
                    help_ = f"make both equal, or leave `{feature}` out of one"
                return make("PG462", message, locate(part_path(other), key=True), help=help_)
    other = others[0] if others else first
    message = f"the common steps differ between the parts `{first}` and `{other}`, as their values have different ranges"
    return make("PG462", message, locate(part_path(other), key=True), help=help_)
