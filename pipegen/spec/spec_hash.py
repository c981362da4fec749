"""The identity of a pipeline: a hash of its meaning, and descriptions of the differences between two."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipegen.errors import OpError
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.base import PointwiseTransform
from pipegen.ops.buckets import sized
from pipegen.ops.families.combining import acted_on, runs_on
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.registry import default_decoder
from pipegen.ops.transform import Transform
from pipegen.spec.models import UNENCODED, Batch, PipelineSpec
from pipegen.spec.rebase import PLACES, own_places
from pipegen.spec.source_map import KeyPath, format_path
from pipegen.spec.steps import ids_of
from pipegen.spec.variants import branches, joined, of_branch
from pipegen.types import ElementType, FeatureType

_SECTIONS = ("pipegen", "splits", "seed", "shuffle", "epoch", "batch", "output")
_UNMEANT = PLACES | {"time_limit", "verify"}
"""Arguments of sources that change no number."""
_ABSENT = "nothing"
_SHOWN_LONGEST = 60


def canonical(spec: PipelineSpec) -> dict[str, Any]:
    """The meaning of a spec as plain values: every default filled in, without `runtime`, names, and places of files."""
    result: dict[str, Any] = {}
    for name in _SECTIONS:
        value = getattr(spec, name)
        result[name] = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
    del result["splits"]["exclude"]  # a path; what it names is the data's identity
    dumped = spec.source.model_dump(mode="json")
    result["source"] = _without_paths({spec.source.op: dumped})
    for name in spec.source.mixed():  # a regular expression of `group` stands under `path`, too
        splits = {k: v for k, v in dumped["parts"][name]["splits"].items() if k != "exclude"}
        part = result["source"][spec.source.op]["parts"][name]
        part["splits"] = splits
        for section in ("sampling", "order"):
            said = part.pop(section) and getattr(spec.source.mixed()[name], section).meaning()
            part |= {section: said} if said else {}
    # Settings that repeat a default are left out, so that one more split or label is one difference, not two.
    names, plain = spec.split_names(), Batch()
    rules = {name: spec.batch.remainder_for(name) for name in names}
    result["batch"]["remainder"] = {name: rule for name, rule in rules.items() if rule != plain.remainder_for(name)}
    result["output"]["encode"] = {name: encoding for name, encoding in spec.output.encode.items() if encoding != UNENCODED}
    if not spec.source.has_labels() and "y" not in spec.output.model_fields_set:
        result["output"]["y"] = None
    images = [name for name, t in spec.source.infer().items() if kind_of(t).levels and t.of is None]
    if len(images) > 1:  # the first one's draws are the steps', and the others have their own
        result["images"] = images
    ids = ids_of(spec.transforms)
    result["transforms"] = [[step.op, step.meaning(), step_id] for step, step_id in zip(spec.transforms, ids, strict=True)]
    if spec.views != 1:
        result["views"] = (
            spec.views if isinstance(spec.views, int) else {name: {"at": i, **_view(spec, name)} for i, name in enumerate(spec.views)}
        )
    if spec.sampling is not None and (sampling := spec.sampling.meaning()):
        result["sampling"] = sampling
    if spec.order is not None:
        result["order"] = spec.order.meaning()
    skip = spec.errors.skip
    result["errors"] = {"decode": "raise" if skip is None else {"skip": {"max_fraction": skip.max_fraction}}}
    result["errors"]["missing"] = spec.errors.model_dump(mode="json")["missing"]
    if spec.stages:
        stages = ({"epochs": stage.epochs, **_other(canonical(stage.resolved), result)} for stage in spec.stages)
        result["stages"] = {str(number): stage for number, stage in enumerate(stages)}
    return result


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


def alike(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Prepares two meanings for a comparison, without paths of data.

    Steps of single views or parts with equal effects get the spelling of the first meaning.
    """
    old, new = ({**side, "source": _without_paths(side["source"])} if "source" in side else side for side in (a, b))
    inner = [side.get("inner", {}) for side in (a, b)]
    for name in _shared(inner, "views"):
        branch = new["views"][name]
        pairs = _effects_by_id(old, name), _effects_by_id(new, name)
        same = [step for step in pairs[0].keys() & pairs[1].keys() if pairs[0][step] == pairs[1][step]]
        said = {step: {**old["views"][name]["transforms"][step], "at": branch["transforms"][step]["at"]} for step in same}
        new = {**new, "views": {**new["views"], name: {**branch, "transforms": {**branch["transforms"], **said}}}}
    for name in _shared(inner, "parts"):
        done = [[effect[:3] for effect in side["parts"][name] if effect is not None] for side in inner]
        if done[0] == done[1]:
            (word, mix), known = next(iter(new["source"].items())), next(iter(old["source"].values()))
            part = {**mix["parts"][name], "transforms": known["parts"][name]["transforms"]}
            new = {**new, "source": {word: {**mix, "parts": {**mix["parts"], name: part}}}}
    return old, new


def _shared(inner: list[Any], kind: str) -> set[str]:
    """The views, or the parts, whose effects are in both meanings."""
    first, second = (side.get(kind, {}).keys() for side in inner)
    return first & second


def _effects_by_id(side: dict[str, Any], view: str) -> dict[str, Any]:
    """The effects of the steps of a view, by their ids."""
    listed = side["inner"]["views"][view]
    return {step: (listed[said["at"]] or [])[:3] for step, said in side["views"][view]["transforms"].items()}


def explain_difference(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Describes the differences between two canonical specs, a line for each setting: `batch.size: 32 -> 64`.

    If both have the effects of their steps, another spelling of the same effect is not a difference.
    """
    *sides, places = _alike(a, b)
    old, new = (_readable(side) for side in sides)
    return _lines({**old, "transforms": []}, {**new, "transforms": []}, ()) + _steps(old["transforms"], new["transforms"], *places)


def differences(a: Any, b: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, str]]:
    """Yields the path of each setting that differs between two plain values, with both values in words."""
    if a == b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        if path[:1] in (("transforms",), ("source",)) and len(path) < 3 and set(a) != set(b):
            yield path, in_words(next(iter(a), None)), in_words(next(iter(b), None))
            return
        for key in (*a, *(k for k in b if k not in a)):
            unsaid = _unsaid((*path, key))
            yield from differences(a.get(key, unsaid), b.get(key, unsaid), (*path, key))
    else:
        yield path, in_words(a), in_words(b)


def _without_paths(value: Any, unmeant: frozenset[str] = _UNMEANT) -> Any:
    """Removes the arguments of sources that are places."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in unmeant or isinstance(v, dict)}
        return {k: _without_paths(v, _UNMEANT | own_places(value, k)) for k, v in kept.items()}
    return value


def _readable(spec: dict[str, Any]) -> dict[str, Any]:
    """Turns steps into maps with one key, so that paths read as in a spec."""
    steps = [{op: args if step_id.partition("#")[0] == op else {**args, "id": step_id}} for op, args, step_id in spec.get("transforms", [])]
    return {**spec, "transforms": steps}


def _lines(a: Any, b: Any, path: KeyPath) -> list[str]:
    return [f"{format_path(at)}: {old} -> {new}" for at, old, new in differences(a, b, path)]


def _alike(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[list[int]]]:
    """Removes the effects of steps; steps of the second with equal effects get the spelling of the first.

    A `decode` that stands for nothing is left out, so the places of the other steps in their specs come with them.
    """
    from difflib import SequenceMatcher

    sides = [{k: v for k, v in side.items() if k not in ("effects", "inner")} for side in alike(a, b)]
    if not (a.get("effects") and b.get("effects")):
        return sides[0], sides[1], [list(range(len(side.get("transforms", [])))) for side in sides]
    done = [[i for i, effect in enumerate(side["effects"]) if effect is not None] for side in (a, b)]
    steps = [[side["transforms"][i] for i in kept] for side, kept in zip((a, b), done, strict=True)]
    keys = [[json.dumps(side["effects"][i], sort_keys=True) for i in kept] for side, kept in zip((a, b), done, strict=True)]
    for i, j, n in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks():
        steps[1][j : j + n] = steps[0][i : i + n]
    return {**sides[0], "transforms": steps[0]}, {**sides[1], "transforms": steps[1]}, done


def _unsaid(path: KeyPath) -> str:
    """The default of a setting that a canonical spec leaves out."""
    if path[:2] == ("batch", "remainder"):
        return Batch().remainder_for(str(path[-1]))
    return UNENCODED if path[:2] == ("output", "encode") else _ABSENT


def _steps(a: list[Any], b: list[Any], old_places: list[int], new_places: list[int]) -> list[str]:
    """Describes the differences of steps by their places; if steps were only added or removed, those alone."""

    def pairs(start: int, end: int) -> list[str]:
        return [line for i in range(start, end) for line in _lines(a[i], b[i], ("transforms", new_places[i]))]

    if [next(iter(s)) for s in a] == [next(iter(s)) for s in b]:
        return pairs(0, len(a))
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    if len(a) == len(b):
        return pairs(start, len(a) - end)
    removed = [f"transforms[{old_places[i]}]: {in_words(next(iter(a[i])))} is no longer there" for i in range(start, len(a) - end)]
    return removed + [f"transforms[{new_places[i]}]: {in_words(next(iter(b[i])))} is new" for i in range(start, len(b) - end)]


def in_words(value: Any) -> str:
    """A value as text in a difference."""
    text = _ABSENT if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_LONGEST else text[: _SHOWN_LONGEST - 1] + "…"


ARITHMETIC = "arithmetic"
"""The word for all steps of arithmetic, which are equal if their constants are."""
LONGEST_RUN = 4
"""Steps of arithmetic that may be folded into one; with more, constants are compared in float64."""

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
    """The effect of a step over all splits and all possible types of the data.

    Attributes:
        constants: The constants of arithmetic, by feature.
        plain: The step in its plainest form.
        known: Whether these are equal for all splits and types.
        everywhere: Whether it acts on the same features as without `feature`.
        needed: Whether it does more than the default `decode`.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    plain: Transform | None = None
    known: bool = True
    everywhere: bool = True
    needed: bool = False

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
        self.size = spec.batch.buckets.sizes[0] if spec.batch.buckets is not None else None

    def run(self, seen: list[_Seen]) -> None:
        """Notes the effect of each step."""
        self._decode_first()
        for step, found in zip(self.spec.transforms, seen, strict=True):
            if runs_on(step, self.split):
                self._step(step, found)
            elif step.random and step.when is None:
                for stand_in in step.evaluation_form():
                    self._step(stand_in, _Seen())

    def _decode_first(self) -> None:
        """Applies the implicit `decode`."""
        leading = []
        for step in self.spec.transforms:
            if not runs_on(step, self.split):
                continue
            if not isinstance(step, DecodeTransform):
                break
            leading.append(step.feature)
        written = {step.feature for step in self.spec.transforms if isinstance(step, DecodeTransform)}
        if None not in leading:
            for name, x in list(self.types.items()):
                if x is not None and x.encoded and name not in written:
                    self._follow(self.decoders.get(name, default_decoder()), name, x)

    def _step(self, step: Transform, found: _Seen) -> None:
        unsaid = acted_on(step, self._type())
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

    def _type(self) -> ElementType:
        """The type of an example; a feature of unknown type has that of the record."""
        return self.whole.replace(**{name: x for name, x in self.types.items() if x is not None})

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
        """The constants of arithmetic on a feature of type `x`; `None` for other steps, and if unknown."""
        try:
            on = step.on(x)
            if not isinstance(on, PointwiseTransform):
                return None
            run = self.run_of.setdefault(name, [])
            run.append(on.arithmetic(x))
            return [*_folded(run), _ends(on.infer(x))]
        except (OpError, OverflowError, ValueError):
            return None


def _folded(run: list[Arithmetic]) -> list[Any]:
    """The constants of the last arithmetic of a run, alone and folded with the steps before it, as a pass may do."""
    if len(run) > LONGEST_RUN:
        return [_constants(a, exact=True) for a in run]
    found = [run[-1]]
    for before in reversed(run[:-1]):
        found.append(before.then(found[-1]))
    return [_constants(a) for a in found]


def _constants(a: Arithmetic, *, exact: bool = False) -> list[Any]:
    scale, offset = ([_finite(v) if exact else _float32(v) for v in part] for part in (a.scale, a.offset))
    return [scale, offset, a.dtype, list(a.order)]


def _ends(y: FeatureType) -> list[Any]:
    """The ends of the interval of values, at which later steps may clip."""
    return [y.dtype, None if y.interval is None else [_float32(y.interval.low), _float32(y.interval.high)]]


def _float32(value: float) -> float:
    """Rounds a number to float32.

    Raises:
        OverflowError: If it is not finite in float32.
    """
    rounded: float = struct.unpack("f", struct.pack("f", _finite(value)))[0]
    return rounded


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise OverflowError(f"{value} is not finite")
    return value + 0.0  # -0.0 becomes 0.0
