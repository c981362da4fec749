"""Gives what steps do in one form for all spellings that give the same numbers: the hash of a spec covers that.

- Arithmetic is its lowered float32 constants: `rescale: {to: [0, 1]}` and `rescale: {scale: 0.00392156862745098}` are the same for bytes.
- A `decode` that says what holds anyway is left out, and so is the `id` of a step that draws nothing.
- Arguments, and `feature`, that say what holds anyway are as if they were not given.

A spec without any of these has the hash that it had before there were effects.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

from pipegen.errors import OpError
from pipegen.ops.acting import acted_on, runs_on
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.base import PointwiseTransform, Transform
from pipegen.ops.buckets import sized
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.registry import default_decoder
from pipegen.spec.branches import of_branch
from pipegen.spec.joined import joined
from pipegen.spec.models import PipelineSpec
from pipegen.spec.steps import ids_of
from pipegen.types import ElementType, FeatureType

ARITHMETIC = "arithmetic"
"""The word for every step that is arithmetic: two of them with the same constants do the same."""
LONGEST_RUN = 4
"""Steps of arithmetic that may have been folded into one; with more, constants are compared in float64."""

Effect = list[Any]
"""What a step does, as plain values: its word, its arguments in their plainest words (or what they come to), its id (the one that it has by
default where nothing depends on it), and whether it draws."""


def effects(spec: PipelineSpec) -> list[Effect | None]:
    """Returns the effect of each step of a spec; `None` for one that does nothing that would not be done without it."""
    seen = [_Seen() for _ in spec.transforms]
    for split in spec.split_names():
        for type_ in spec.source.possible():
            _Walk(spec, split, type_.padded()).run(seen)
    counted = ids_of(step.model_copy(update={"id": None}) for step in spec.transforms)
    named = zip(spec.transforms, ids_of(spec.transforms), counted, seen, strict=True)
    return [_effect(step, step_id, by_default, found) for step, step_id, by_default, found in named]


def inner_effects(spec: PipelineSpec) -> dict[str, dict[str, list[Effect | None]]]:
    """Returns the effects of the steps that only some views or parts of a mix have: of each branch under `views`, of each part with steps
    of its own under `parts`."""
    found: dict[str, dict[str, list[Effect | None]]] = {}
    if isinstance(spec.views, dict):
        found["views"] = {name: effects(of_branch(spec, name))[len(spec.transforms) :] for name in spec.views}
    own = {name: len(part.transforms) for name, part in spec.source.mixed().items()}
    parts = {name: effects(joined(spec, name))[:count] for name, count in own.items() if count}
    return {**found, "parts": parts} if parts else found


@dataclass(slots=True)
class _Seen:
    """Holds what a step does, over all splits and all types that the data may have.

    Attributes:
        constants: What arithmetic comes to, by feature.
        plain: The step in its plainest words.
        known: Whether those are the same for all of them.
        everywhere: Whether it acts on the features that it would act on if it named none.
        needed: Whether it does anything that would not be done without it.
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
    """Follows the type of each feature of one split from step to step. A feature whose type is lost is `None`."""

    def __init__(self, spec: PipelineSpec, split: str, type_: ElementType) -> None:
        self.spec = spec
        self.split = split
        self.whole = type_
        self.types: dict[str, FeatureType | None] = dict(type_.items())
        self.run_of: dict[str, list[Arithmetic]] = {}
        self.decoders = spec.source.decoders()
        self.size = spec.batch.buckets.sizes[0] if spec.batch.buckets is not None else None

    def run(self, seen: list[_Seen]) -> None:
        """Notes what each step does."""
        self._decode_first()
        for step, found in zip(self.spec.transforms, seen, strict=True):
            if runs_on(step, self.split):
                self._step(step, found)
            elif step.random and step.when is None:
                for stand_in in step.evaluation_form():
                    self._step(stand_in, _Seen())

    def _decode_first(self) -> None:
        """Decodes what no step of the spec does."""
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
        """Returns the type of an example, as far as it is known; a lost feature has the type that it began with."""
        return self.whole.replace(**{name: x for name, x in self.types.items() if x is not None})

    def _follow(self, step: Transform, name: str, x: FeatureType) -> None:
        if kind_of(x).ragged:
            return
        if self.size is not None:  # for one bucket it is as for all
            step = sized(step, self.size)
        try:
            self.types[name] = step.on(x).infer(x)
        except (OpError, NotImplementedError):
            self.types[name] = None

    def _constants(self, step: Transform, name: str, x: FeatureType) -> Any:
        """Returns what arithmetic on a feature of type `x` comes to; `None` for other steps, and where that is not known."""
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
    """Returns the last arithmetic of a run as its constants, by itself and after each number of those before it: a pass may fold them."""
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
    """Returns the ends of the interval that values lie in, at which later steps may clip."""
    return [y.dtype, None if y.interval is None else [_float32(y.interval.low), _float32(y.interval.high)]]


def _float32(value: float) -> float:
    """Rounds a number as a float32 constant of a graph.

    Raises:
        OverflowError: When it is none.
    """
    rounded: float = struct.unpack("f", struct.pack("f", _finite(value)))[0]
    return rounded


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise OverflowError(f"{value} is no constant")
    return value + 0.0  # there is one zero
