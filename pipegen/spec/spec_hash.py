"""The identity of a pipeline: its meaning as plain values, and the hash of that."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import Any

from pipegen.errors import OpError
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.families.combining import acted_on, on_split, runs_on
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.base import Levels, kind_of
from pipegen.ops.registry import default_decoder
from pipegen.ops.sampling_sections import Buckets, TimeRules, sized
from pipegen.ops.step_bases import PointwiseTransform
from pipegen.ops.transform import Transform
from pipegen.spec.models import UNENCODED, Batch, PipelineSpec
from pipegen.spec.places import NAMES, PLACES, own_places
from pipegen.spec.step_list import ids_of
from pipegen.spec.variants import branches, joined, of_branch
from pipegen.types import ElementType, FeatureType

_SECTIONS = ("pipegen", "splits", "seed", "shuffle", "epoch", "batch", "output")
_UNMEANT = PLACES | {"time_limit", "verify"}  # arguments of sources that change no number


def canonical(spec: PipelineSpec) -> dict[str, Any]:
    """The meaning of a spec as plain values: every default filled in, without `runtime`, names, and places of files."""
    said = ((name, getattr(spec, name)) for name in _SECTIONS)
    result = {name: value.model_dump(mode="json") if hasattr(value, "model_dump") else value for name, value in said}
    result["splits"] = _splits(result["splits"])
    dumped = spec.source.model_dump(mode="json")
    result["source"] = without_places({spec.source.op: dumped})
    for name in spec.source.mixed():  # a regular expression of `group` stands under `path`, too
        part = result["source"][spec.source.op]["parts"][name]
        part["splits"] = _splits(dumped["parts"][name]["splits"])
        for section in ("sampling", "order"):
            said = part.pop(section) and getattr(spec.source.mixed()[name], section).meaning()
            part |= {section: said} if said else {}
    # Settings that repeat a default are left out, so that one more split or label is one difference, not two.
    names, plain = spec.split_names(), Batch()
    rules = {name: spec.batch.remainder_for(name) for name in names}
    if spec.output.events == "start_end":  # which came later
        del result["output"]["events"]
    if spec.batch.pad is None:  # which came later
        del result["batch"]["pad"]
    result["batch"]["remainder"] = {name: rule for name, rule in rules.items() if rule != plain.remainder_for(name)}
    result["output"]["encode"] = {name: encoding for name, encoding in spec.output.encode.items() if encoding != UNENCODED}
    if not spec.source.has_labels() and "y" not in spec.output.model_fields_set:
        result["output"]["y"] = None
    images = [name for name, t in spec.source.infer().items() if kind_of(t).has(Levels) and t.of is None]
    if len(images) > 1:  # the first one's draws are the steps', and the others have their own
        result["images"] = images
    ids = ids_of(spec.transforms)
    result["transforms"] = [[step.op, step.meaning(), step_id] for step, step_id in zip(spec.transforms, ids, strict=True)]
    if spec.views != 1:
        named = enumerate(spec.views if isinstance(spec.views, dict) else ())
        result["views"] = {name: {"at": i, **_view(spec, name)} for i, name in named} or spec.views
    if spec.sampling is not None and (sampling := spec.sampling.meaning()):
        result["sampling"] = sampling
    if spec.order is not None:
        result["order"] = spec.order.meaning()
    skip = spec.errors.skip
    decode = "raise" if skip is None else {"skip": {"max_fraction": skip.max_fraction}}
    result["errors"] = {"decode": decode, "missing": spec.errors.model_dump(mode="json")["missing"]}
    if spec.stages:
        stages = ({"epochs": stage.epochs, **_other(canonical(stage.resolved), result)} for stage in spec.stages)
        result["stages"] = {str(number): stage for number, stage in enumerate(stages)}
    return result


def _splits(dumped: dict[str, Any]) -> dict[str, Any]:
    """Splits without the paths of files; what these hold is the data's identity."""
    parts = {
        name: {column: {} if isinstance(values, dict) else values for column, values in part.items()} if isinstance(part, dict) else part
        for name, part in dumped["parts"].items()
    }
    result = {key: value for key, value in dumped.items() if key != "exclude"} | {"parts": parts}
    method = {"time": TimeRules().model_dump(mode="json")} if dumped["method"] == "time" else dumped["method"]
    if not isinstance(method, dict) or "time" not in method:
        return result
    return result | {"parts": [[name, size] for name, size in parts.items()], "method": method}  # parts are in the order of time


def _view(spec: PipelineSpec, name: str) -> dict[str, Any]:
    """The meaning of a branch of views, with its steps by their ids, in order."""
    view, own = branches(spec)[name], of_branch(spec, name).transforms
    when = view.when if isinstance(view.when, str) else "train" if {*view.when} == {"train"} else sorted({*view.when})
    steps = list(zip(own, ids_of(own), strict=True))[len(spec.transforms) :]
    return {
        "count": view.count,
        **({"of": list(images)} if (images := view.images()) is not None else {}),
        "when": when,
        "transforms": {own: {"at": i, step.op: step.meaning()} for i, (step, own) in enumerate(steps)},
    }


def _other(stage: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """The settings of a stage that differ from the whole spec; steps by their ids if these are equal."""
    found = {}
    for key, value in stage.items():
        own, known = value, whole.get(key)
        if key == "transforms" and known and [step[::2] for step in own] == [step[::2] for step in known]:
            own, known = ({step_id: arguments for _, arguments, step_id in steps} for steps in (own, known))
        if own != known:
            found[key] = _other(own, known) if isinstance(own, dict) and isinstance(known, dict) else own
    return found


def spec_hash(spec: PipelineSpec) -> str:
    """The SHA-256 of the canonical spec with its steps by their effects, in hexadecimal.

    It does not depend on folders, names and `runtime`, nor on the spelling of steps that give the same numbers.
    """
    meant = {**canonical(spec), "transforms": [effect[:3] for effect in effects(spec) if effect is not None]}
    inner = inner_effects(spec)
    for name, listed in inner.get("views", {}).items():
        kept = enumerate(effect for effect in listed if effect is not None)
        meant["views"][name]["transforms"] = {own or f"{op}@{i}": {"at": i, op: said} for i, (op, said, own, _) in kept}
    for name, listed in inner.get("parts", {}).items():
        part = meant["source"][spec.source.op]["parts"][name]
        part["transforms"] = [effect[:3] for effect in listed if effect is not None]
    if spec.stages:
        meant["stages"] = [[stage.epochs, spec_hash(stage.resolved)] for stage in spec.stages]
    return _digest(meant)


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def digest_of(meaning: dict[str, Any]) -> str:
    """The hash of a meaning with its steps by their effects, without views, stages and parts with steps of their own."""
    kept = {name: value for name, value in meaning.items() if name not in ("effects", "inner")}
    return _digest({**kept, "transforms": [effect[:3] for effect in meaning["effects"] if effect is not None]})


def meaning(spec: PipelineSpec) -> dict[str, Any]:
    """The canonical spec with the effects of its steps, for states and locks, whose differences can be described."""
    inner = inner_effects(spec)
    return {**canonical(spec), "effects": effects(spec), **({"inner": inner} if inner else {})}


def without_places(value: Any, unmeant: frozenset[str] = _UNMEANT) -> Any:
    """Removes the arguments of sources that are places."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in unmeant or isinstance(v, dict)}
        return {k: without_places(v, frozenset() if k in NAMES else _UNMEANT | own_places(value, k)) for k, v in kept.items()}
    return value


ARITHMETIC = "arithmetic"  # the word for all steps of arithmetic, which are equal if their constants are
LONGEST_RUN = 4  # steps of arithmetic that may be folded into one; with more, constants are compared in float64

Effect = list[Any]
"""The effect of a step as plain values: its word, its plainest arguments (or constants), its id (the default one if nothing depends on it),
and whether it draws."""


def effects(spec: PipelineSpec) -> list[Effect | None]:
    """The effect of each step of a spec; `None` for a `decode` that is the default anyway."""
    seen = [_Seen() for _ in spec.transforms]
    for split in spec.split_names():
        for type_ in spec.source.possible():
            _Walk(spec, split, type_.padded()).run(seen)
    counted = ids_of(step.model_copy(update={"id": None}) for step in spec.transforms)
    named = zip(spec.transforms, ids_of(spec.transforms), counted, seen, strict=True)
    return [_effect(step, step_id, by_default, found) for step, step_id, by_default, found in named]


def inner_effects(spec: PipelineSpec) -> dict[str, dict[str, list[Effect | None]]]:
    """The effects of steps that only some views or parts of a mix have: by branch under `views`, by part under `parts`."""
    found: dict[str, dict[str, list[Effect | None]]] = {}
    if isinstance(spec.views, dict):
        found["views"] = {name: effects(of_branch(spec, name))[len(spec.transforms) :] for name in spec.views}
    own = {name: len(part.transforms) for name, part in spec.source.mixed().items()}
    parts = {name: effects(joined(spec, name))[:count] for name, count in own.items() if count}
    return {**found, "parts": parts} if parts else found


@dataclass(slots=True)
class _Seen:
    """The effect of a step over all splits and all possible types of the data."""

    constants: dict[str, Any] = field(default_factory=dict)  # the constants of arithmetic, by feature
    plain: Transform | None = None  # the step in its plainest form
    known: bool = True  # whether these are equal for all splits and types
    everywhere: bool = True  # whether it acts on the same features as without `feature`
    needed: bool = False  # whether it does more than the default `decode`

    def note(self, feature: str, plain: Transform | None, constants: Any, *, needed: bool) -> None:
        self.known &= plain is not None and (self.plain or plain) == plain and self.constants.setdefault(feature, constants) == constants
        self.plain = plain
        self.needed |= needed


def _effect(step: Transform, step_id: str, by_default: str, seen: _Seen) -> Effect | None:
    draws = bool(step.num_draws() or step.inner_steps() or step.is_gated())
    own = step_id if draws else by_default
    if not seen.known or seen.plain is None:
        return [step.op, step.meaning(), own, draws]
    if isinstance(step, DecodeTransform) and not seen.needed:
        return None
    said = seen.plain.meaning()
    if None in seen.constants.values():
        return [step.op, {**said, "feature": None if seen.everywhere else step.feature}, own, draws]
    return [ARITHMETIC, {"when": said["when"], "features": seen.constants}, None, draws]


class _Walk:
    """The types of the features of one split, from step to step; `None` for an unknown type."""

    def __init__(self, spec: PipelineSpec, split: str, type_: ElementType) -> None:
        self.spec = spec
        self.split = split
        self.whole = type_
        self.types: dict[str, FeatureType | None] = dict(type_.items())
        self.run_of: dict[str, list[Arithmetic]] = {}
        self.decoders = spec.source.decoders()
        self.size = spec.batch.buckets.sizes[0] if isinstance(spec.batch.buckets, Buckets) else None

    def run(self, seen: list[_Seen]) -> None:
        self._decode_first()
        for step, found in zip(self.spec.transforms, seen, strict=True):
            for form in on_split(step, self.split):
                self._step(form, found if form is step else _Seen())

    def _decode_first(self) -> None:
        """Applies the implicit `decode`."""
        here = (step for step in self.spec.transforms if runs_on(step, self.split))
        leading = [step.feature for step in takewhile(lambda step: isinstance(step, DecodeTransform), here)]
        written = {step.feature for step in self.spec.transforms if isinstance(step, DecodeTransform)}
        if None not in leading:
            for name, x in list(self.types.items()):
                if x is not None and x.encoded and name not in written:
                    self._follow(self.decoders.get(name, default_decoder()), name, x)

    def _step(self, step: Transform, found: _Seen) -> None:
        known = {name: x for name, x in self.types.items() if x is not None}
        unsaid = acted_on(step, self.whole.replace(**known))  # a feature of unknown type has that of the record
        names = (step.feature,) if step.feature is not None else unsaid
        found.everywhere &= names == unsaid
        for name in names:
            x = self.types.get(name)
            if x is None:
                found.note(name, None, None, needed=True)
                continue
            used = self.decoders.get(name, step) if isinstance(step, DecodeTransform) else step
            plain = step.plainest(x)
            default = default_decoder().meaning()
            idle = isinstance(step, DecodeTransform) and (used is not step or {**plain.meaning(), "feature": None} == default)
            found.note(name, plain, self._constants(step, name, x), needed=not idle)
            self._follow(used, name, x)

    def _follow(self, step: Transform, name: str, x: FeatureType) -> None:
        if kind_of(x).ragged:
            return
        if self.size is not None:  # one bucket stands for all
            step = sized(step, self.size)
        try:
            self.types[name] = step.on(x).infer(x)
        except (OpError, NotImplementedError):
            self.types[name] = None

    def _constants(self, step: Transform, name: str, x: FeatureType) -> Any:
        """The constants of arithmetic on `x`, alone and folded with steps before it; `None` for other steps, and if unknown."""
        try:
            on = step.on(x)
            if not isinstance(on, PointwiseTransform):
                return None
            run = self.run_of.setdefault(name, [])
            run.append(on.arithmetic(x))
            y = on.infer(x)
            # Later steps may clip at the ends of the interval.
            ends = [y.dtype, None if y.interval is None else [_float32(y.interval.low), _float32(y.interval.high)]]
            if len(run) > LONGEST_RUN:
                return [*(_constants(a, exact=True) for a in run), ends]
            folds = accumulate(reversed(run), lambda after, before: before.then(after))  # as a pass may do
            return [*map(_constants, folds), ends]
        except (OpError, OverflowError, ValueError):
            return None


def _constants(a: Arithmetic, *, exact: bool = False) -> list[Any]:
    scale, offset = ([_finite(v) if exact else _float32(v) for v in part] for part in (a.scale, a.offset))
    return [scale, offset, a.dtype, list(a.order), *([a.bands] if a.bands > 1 else [])]


def _float32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", _finite(value)))[0]
    return rounded


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise OverflowError(f"{value} is not finite")
    return value + 0.0  # -0.0 becomes 0.0
