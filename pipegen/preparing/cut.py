"""Cuts a spec in two: deterministic steps, whose results are stored, and the spec that reads these and does the steps after them.

A cut lies between two steps, and never within a segment, so that pixels are still resampled only once. The same steps come before it on
every split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.catalog import make
from pipegen.errors import InternalError, SpecError
from pipegen.frozen import dataclass
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.families.item_stages import Enter, EnterSound, Measure
from pipegen.ops.kinds.base import InstanceNumber, Levels, PixelValues, having, kind_of, kinds
from pipegen.ops.sampling_sections import LengthBuckets
from pipegen.ops.stage import Stage, StepRef, step_kwargs
from pipegen.phases.compilation import load
from pipegen.phases.specs import Spec
from pipegen.plan import stages as s
from pipegen.plan.evaluation_plans import learning_steps
from pipegen.plan.nodes import Element, Plan
from pipegen.spec.allowed import CHECKED
from pipegen.spec.lengths import has_length
from pipegen.spec.models import PipelineSpec
from pipegen.spec.runtime_fix import Dumper, to_yaml
from pipegen.spec.step_list import ids_of
from pipegen.types import FLOATING, INTEGER_RANGES, ElementType, FeatureType, times

if TYPE_CHECKING:
    from pipegen.ops.sources.prepared import Pixels
    from pipegen.preparing.options import Options

_AS_IT_IS = "build the spec as it is: a store would not be read faster"
_ALWAYS = -1  # the place of a default decoder, which is not in the spec


class NoCutError(Exception):
    """Nothing can be stored; the message is the reason, and `help` the way out."""

    def __init__(self, message: str, help_: str = "") -> None:
        super().__init__(message)
        self.help = help_


@dataclass(frozen=True)
class Cut:
    """A place to cut a spec at: the number of steps and the stages of each split before it."""

    steps: int
    stages: Mapping[str, tuple[Stage, ...]]
    type: ElementType  # the type of an example at the cut, alike for every split; sides of images that differ between splits are unknown
    least: tuple[int, int] | None = None
    """Height and width in pixels: the spec decodes an image with both sides at least twice as long at a fraction of its size, which depends
    on steps after the cut; `None` if it never does."""

    @property
    def rounds(self) -> bool:
        """Whether a store has windows that steps computed one by one: those of a batch can differ in rounding."""
        touched = {stage.feature for own in self.stages.values() for stage in own} & {*self.type}
        return any(kind_of(self.type[name]).samples is not None and not kind_of(self.type[name]).packed for name in touched)


def find_cut(spec: PipelineSpec, plans: Mapping[str, Plan], at: str | None = None) -> Cut:
    """Finds the last place to cut a spec by its plainest plans, or the one after the step with the name or the id `at`. Raises
    `NoCutError` if it cannot be cut."""
    if spec.source.mixed():
        message = "the parts of a `mix` have other numbers and orders in each epoch, and a store has one list of records"
        raise NoCutError(message, "prepare the source of each part by itself, and use the stores as parts of the mix")
    if spec.stages:
        raise NoCutError("`stages` set params, and the spec of a store has none", "prepare it without `stages`")
    if spec.batch.buckets is not None and not isinstance(spec.batch.buckets, LengthBuckets):
        message = "`buckets` depend on the original size of each image, which a store does not have"
        raise NoCutError(message, "prepare it with one size, without `batch.buckets`")
    plans = single(plans)
    fixed = _fixed(spec, plans)
    if at is not None:
        ids = ids_of(spec.transforms)
        steps = max((i + 1 for i, step in enumerate(spec.transforms) if at in (ids[i], step.op)), default=0)
        if not steps:
            raise NoCutError(f"there is no step `{at}`", f"the steps are {', '.join(f'`{own}`' for own in ids) or 'none'}")
        if steps > fixed:
            message = f"the results of `{ids[fixed]}` are not the same in every epoch and on every split"
            raise NoCutError(message, f"cut before it: `--at` names a step before `{ids[fixed]}`")
        try:
            return _cut(plans, steps)
        except NoCutError as error:
            message = f"nothing can be stored after `{at}`: {error}"
            raise NoCutError(message, "leave `--at` out: then the last possible place is used") from None
    why = help_ = ""
    for steps in range(fixed, -1, -1):
        try:
            found = _cut(plans, steps)
            if all(t.dtype not in FLOATING for _, t in found.type.items() if kind_of(t).has(Levels)):
                return found
            why = why or "the last deterministic step makes floats, four times as large as bytes"
        except NoCutError as error:
            why, help_ = (why, help_) if why else (str(error), error.help)
    raise NoCutError(f"nothing to prepare: {why}", help_ or "put the deterministic steps first, `decode` among them")


def single(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """Returns the plan of the first bucket for each split that has buckets of lengths: examples are padded after every step."""
    return {split: plan.buckets[0] if plan.buckets else plan for split, plan in plans.items()}


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


def _cut(plans: Mapping[str, Plan], steps: int) -> Cut:
    """Cuts before step number `steps`."""
    stages, types, least = zip(*(_taken(plan, steps) for plan in plans.values()), strict=True)
    for plan, own in zip(plans.values(), stages, strict=True):
        as_it_is = [name for name, x in plan.read.items() if kind_of(x).samples is not None and not kind_of(x).packed]
        if as_it_is and not own and not having(plan.read, PixelValues):
            raise NoCutError(f"`{as_it_is[0]}` is read from one array as it is, with nothing to decode or compute", _AS_IT_IS)
        packed = {name: x for name, x in plan.read.items() if kind_of(x).packed}
        for name, x in packed.items():
            if not x.encoded:
                raise NoCutError(f"`{name}` is read from an array as it is, with nothing to decode", _AS_IT_IS)
        for stage in (stage for stage in own if stage.feature in packed and not isinstance(stage, Decode)):
            plural = kind_of(packed[stage.feature]).plural
            raise NoCutError(f"`{stage.uses()[0].id}` changes `{stage.feature}`, and a store has {plural} as they are decoded")
    return Cut(steps, dict(zip(plans, stages, strict=True)), _together(types), reduce(_lesser, least))


def _taken(plan: Plan, steps: int) -> tuple[tuple[Stage, ...], ElementType, tuple[int, int] | None]:
    """Takes the stages before a step from a split's plan; returns them, the type after them, and `Cut.least`."""
    now, kept, least = dict(plan.read.items()), [], None
    open_: set[str] = set()
    last: dict[str, Stage] = {}
    for node in plan.nodes:
        if not isinstance(node, Element):
            continue
        for stage in node.stages:
            name, own = stage.feature, stage
            # Items are brought into form before the first step.
            before = {True} if isinstance(stage, (Measure, Enter, EnterSound)) else {_place(ref) < steps for ref in stage.uses()}
            if isinstance(stage, DecodeWindow) and _place(stage.decode) < steps <= _place(stage.crop):
                own = Decode(name, stage.decode, None)
                least = _lesser(least, stage.needed)
                now[name] = stage.decode.step.infer(now[name])
            elif len(before) == 2:
                raise NoCutError(f"the steps before and after it are merged into one on `{name}`")
            elif not before and name not in open_:
                continue  # a stage of the output, after every step
            elif before == {False}:
                if name in open_:
                    raise NoCutError(f"`{stage.uses()[0].id}` and the step before it resample `{name}` once, as one segment")
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


def _together(types: Sequence[ElementType]) -> ElementType:
    """Unites the types of the splits."""
    features: dict[str, FeatureType] = {}
    for name, first in types[0].items():
        others = [type_[name] for type_ in types]
        if any((t.kind, t.dtype, len(t.shape)) != (first.kind, first.dtype, len(first.shape)) for t in others):
            raise NoCutError(f"`{name}` has different types on the splits")
        if first.encoded and kind_of(first).values is not None:
            raise NoCutError(f"`{name}` is not decoded before it")
        if kind_of(first).storage == "made":
            continue  # computed with its items
        if kind_of(first).storage == "encoded" and kind_of(first).values is None:
            raise NoCutError(f"`{name}` has a file for each example, and a store has no {kind_of(first).plural}")
        if not kind_of(first).packed and has_length(first) and any(t.shape[0] is None or t.shape[0] != first.shape[0] for t in others):
            raise NoCutError(f"examples of `{name}` differ in length, and a store has rows of one shape")
        if kind_of(first).ragged:
            # The items of an example, padded on every split to the largest number of places of any.
            most = 0 if first.beside is not None else max((t.shape[0] or 0 for t in others), default=0)
            stored = (geometry.prepared_type(first) if (geometry := kind_of(first).geometry) is not None else None) or first
            features[name] = stored.with_(shape=(None, *first.shape[1:]), uniform=False, most=most)
            continue
        shape = tuple(side if all(t.shape[i] == side for t in others) else None for i, side in enumerate(first.shape))
        if any(side is None for side in shape[2:] if kind_of(first).pixels is not None):
            raise NoCutError(f"`{name}` has different numbers of channels on the splits")
        features[name] = first.with_(shape=shape, uniform=False)
    return ElementType(tuple(features.items()))


def changed_files(options: Options, spec: PipelineSpec, plans: Mapping[str, Plan], cut: Cut) -> str | None:
    """Describes why the original files cannot be stored; `None` if they can."""
    if options.shorter_side is not None:
        return f"images are shrunk to a shorter side of {options.shorter_side} pixels"
    for stage in (stage for own in cut.stages.values() for stage in own):
        if not isinstance(stage, (Decode, Enter, EnterSound, Measure)):
            return f"`{stage.uses()[0].id}` comes before the cut, and changes `{stage.feature}`"
    for name in having(cut.type, Levels):
        if name in spec.source.decoders() or not all(plan.read[name].encoded for plan in plans.values()):
            return f"`{name}` is not stored in files that `decode` reads"
    return None


def check_shrinking(spec: Spec, plans: Mapping[str, Plan], cut: Cut, options: Options) -> None:
    """Raises `PG576` if the steps after the cut need the size of images that are not shrunk."""
    side = options.shorter_side
    if side is None or _fits(spec, cut, options) or not _fits(spec, cut, replace(options, shorter_side=None)):
        return
    ids = ids_of(spec.model.transforms)
    last = ids[cut.steps - 1] if cut.steps else "decode"
    sizes = {times(t.shape[:2]) for _, t in cut.type.items() if kind_of(t).pixels is not None and None not in t.shape[:2]}
    size = " or ".join(sorted(sizes)) or "a fixed size of"
    message = f"the steps after `{last}` need its size of {size} pixels, and `--shorter-side {side}` changes it"
    help_ = [f"leave `--shorter-side` out: the store has images in the size of `{last}`"]

    def fits_behind(step: str) -> bool:
        try:
            return _fits(spec, find_cut(spec.model, plans, step), options)
        except NoCutError:
            return False

    earlier = next(filter(fits_behind, reversed(ids[: cut.steps - 1])), None)
    if earlier is not None:
        help_.append(f"or use `--at {earlier}`, which shrinks them before `{ids[ids.index(earlier) + 1]}`")
    elif not any(step.op == "decode" for step in spec.model.transforms):
        help_.append(f"or begin with the step `- decode` and use `--at decode`, which shrinks them before `{ids[0]}`")
    label = spec.loaded.locate.label(("transforms", max(0, cut.steps - 1)))
    raise SpecError([make("PG576", message, label, help=tuple(help_))])


def _fits(spec: Spec, cut: Cut, options: Options) -> bool:
    try:
        fitting(rest_of(spec.model, spec.hash, cut, options, {}))
    except SpecError:
        return False
    return True


SPEC = "prepared.pipegen.yaml"
_DONE = frozenset({"pipegen", "name", "params", "source", "splits", "transforms", "errors"})
"""Sections that are written separately, or done by the store."""
_OF_TEST = re.compile(r"tests\[(\d+)\]")
_DECODE: dict[str, Any] = {"decode": {"scaled": "never"}}  # the decoder of a store's files, at full size


def rest_of(spec: PipelineSpec, spec_hash: str, cut: Cut, options: Options, pixels: Mapping[str, Pixels]) -> dict[str, Any]:
    """Makes the spec of the steps after a cut of a spec, as plain values; `pixels` has the form of the pixels of each feature."""
    stored = ((name, t) for name, t in cut.type.items() if t.beside is None or not kind_of(t).has(InstanceNumber))
    features = {name: _feature(t, options, pixels.get(name)) for name, t in stored}
    for split in spec.split_names():
        for name in spec.source.lacks(split) & features.keys():
            features[name].setdefault("absent", []).append(split)
    source: dict[str, Any] = {"path": ".", "of": spec_hash, "splits": list(spec.split_names()), "features": features}
    if options.changes():
        source["changes"] = options.changes()
    values: dict[str, Any] = {"pipegen": 1, **({"name": spec.name} if spec.name else {}), "source": {"prepared": source}}
    for section in type(spec).model_fields:
        if section in _DONE or section not in spec.model_fields_set:
            continue
        value = getattr(spec, section)
        if section == "tests":
            values[section] = [{test.op: test.model_dump(mode="json", exclude_unset=True)} for test in value]
        elif section == "views" and isinstance(value, dict):
            values[section] = {name: view.model_dump(mode="json", exclude_unset=True) for name, view in value.items()}
        else:
            values[section] = value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else value
    values.get("runtime", {}).pop("cache", None)
    values.get("sampling", {}).pop("subset", None)  # the store has only those examples
    values = {name: value for name, value in values.items() if value not in ([], {})}
    if values.get("epoch") == "pass":
        del values["epoch"]
    files = options.format != "raw" and not options.keeps_files and bool(having(cut.type, PixelValues))
    first = [_DECODE] if files else []
    values["transforms"] = [*first, *_steps(spec, 0 if options.keeps_files else cut.steps)]
    return values


def fitting(values: dict[str, Any]) -> dict[str, Any]:
    """Drops tests that need the original data, such as those of a column of its table. Raises `SpecError` if anything else in the spec
    is wrong."""
    try:
        load(values, allowed=CHECKED)
    except SpecError as error:
        places = [_OF_TEST.match(finding.labels[0].path) if finding.labels else None for finding in error.diagnostics]
        if None in places:
            raise
        odd = {int(place[1]) for place in places if place is not None}
        tests = [test for i, test in enumerate(values["tests"]) if i not in odd]
        values = {**values, "tests": tests}
        return fitting(values if tests else {name: value for name, value in values.items() if name != "tests"})
    return values


def _steps(spec: PipelineSpec, done: int) -> list[dict[str, Any]]:
    """Lists the steps after the first `done`; sets the ids of random steps that would get another one."""
    left = spec.transforms[done:]
    ids = zip(left, ids_of(spec.transforms)[done:], ids_of(left), strict=True)
    return [{step.op: step_kwargs(step) | ({"id": own} if own != now and step.random else {})} for step, own, now in ids]


def _feature(t: FeatureType, options: Options, pixels: Pixels | None) -> dict[str, Any]:
    """Describes a feature for the source `prepared`."""
    kind = kind_of(t)
    files = kind.packed or (kind.pixels is not None and options.format != "raw")
    home = t.beside or t.instances
    whole = next((other.name for other in kinds() if home is not None and other.each == t.kind), t.kind)
    found: dict[str, Any] = {"kind": whole, "dtype": "string" if files else t.dtype} | ({"with": home} if home is not None else {})
    shape = list(t.shape)
    if kind.pixels is not None and options.shorter_side is not None:
        shape = [None, None, shape[2]]
    if files:
        found |= {"channels": t.shape[-1]} | ({"bits": 16} if t.dtype == "uint16" else {})
    if not files or None not in shape[:2]:
        found["shape"] = shape
    if pixels is not None and pixels.canvas:
        found["canvas"] = list(pixels.canvas[:2])
    standing = INTEGER_RANGES.get(t.dtype) if kind.has(Levels) else None
    if t.interval is not None and t.interval != standing and not files:
        found["range"] = [t.interval.low, t.interval.high]
    for name in ("of", "classes", "ignore"):
        if getattr(t, name) and not (name == "of" and t.beside is not None and kind.geometry is None):
            found[name] = getattr(t, name)
    found |= {"missing": list(t.missing)} if t.missing else {}
    return found | ({"places": t.most} if t.most else {}) | kind.arguments_of(t)


def as_text(values: dict[str, Any], about: Iterable[str]) -> str:
    """Formats a spec as YAML, with comments before it."""
    return "".join(f"# {line}\n" for line in about) + to_yaml(values, _Plain, width=120)


class _Plain(Dumper):
    """A dumper that writes short lists and maps in one line."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        simple = all(not isinstance(item, (list, dict)) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=simple)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def same_meaning(spec: PipelineSpec, rest: PipelineSpec, done: int) -> None:
    """Raises `InternalError` if the remaining steps of two specs are not the same, with the same ids."""
    left = list(zip(spec.transforms, ids_of(spec.transforms), strict=True))[done:]
    now = list(zip(rest.transforms, ids_of(rest.transforms), strict=True))[len(rest.transforms) - len(left) :]
    before, after = ([(s.op, s.meaning(), i if s.random else "") for s, i in steps] for steps in (left, now))
    if before != after:
        raise InternalError("the spec of the remaining steps does not round-trip")
