"""The stages that nodes are made of: operations on one feature of an example or a batch.

A stage holds steps and reads only their traits, so a new step needs no new stage. Stages do not depend on TensorFlow;
`backend/kernels/lower.py` translates them. This file has the stages that planning needs: crops, segments of geometry and
colour, views and output. A family of steps with a stage of its own has it in its file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

from pipegen.frozen import dataclass
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.geometry import Fill
from pipegen.ops.arguments.learned import listed
from pipegen.ops.families.decoder import CROP_NS
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.families.sounds import TimeTransform
from pipegen.ops.stage import RESIZING_NS, WAITING, Computes, OneStep, Stage, StepRef, only_identities, use, uses, value, weight_ns
from pipegen.ops.step_bases import ColourTransform, CropTransform, ElementTransform, GeometricTransform, PointwiseTransform
from pipegen.spec.models import Encoding
from pipegen.types import ElementType, FeatureType, Interval, times

_MIRROR_NS = 0.13
_TURN_NS = 0.4
_ALONG_NS = 1000.0  # the ends of vectors, searched in a field
_CHANNEL_NS = 0.11  # a colour stage that mixes no channels
_MEAN_NS = 1.0  # the mean luma, if a colour stage uses it
_OF_INTERPOLATION = {"nearest": 0.45, "bicubic": 4.0}  # cost relative to bilinear interpolation


class Apply(OneStep[ElementTransform]):
    """A function of one example."""

    __slots__ = ()
    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = RESIZING_NS


class Crop(OneStep[CropTransform]):
    """A window of one example, and the crop's finish."""

    __slots__ = ()
    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = CROP_NS


@dataclass(frozen=True, slots=True)
class SometimesSized(Stage):
    """Crops and resizes of one example, in order, each only if it acts on the example. All images leave it with the height and width
    `size`, as far as known."""

    one_example: ClassVar[bool] = True

    feature: str
    refs: tuple[StepRef[CropTransform | ElementTransform], ...]
    size: tuple[int | None, int | None]

    def says(self) -> str:
        return f"where it acts, to {times(self.size)}: {uses(self.refs)}"

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities(self.refs, x, y)

    def ns(self, x: FeatureType) -> float:
        return sum(ref.share * weight_ns(ref, CROP_NS if ref.step.traits(x).crops else RESIZING_NS, x) for ref in self.refs)


@dataclass(frozen=True, slots=True)
class Compose(Stage):
    """One step's matrix, multiplied into the pending transform of a geometric segment.

    `opens` starts the segment, with the identity pending.
    """

    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[GeometricTransform | CropTransform]
    canvas: tuple[int | None, int | None]
    opens: bool

    def says(self) -> str:
        return f"matrix of {use(self.ref)}"


@dataclass(frozen=True, slots=True)
class Resample(Computes):
    """One resampling by the pending transform, which ends a geometric segment.

    `projective` is set if a step's matrix can have a last row other than (0, 0, 1), so that positions are quotients.
    """

    ns_per_value: ClassVar[float] = 5.0

    feature: str
    fill: Fill
    interpolation: str
    size: tuple[int | None, int | None]
    projective: bool = False
    exact: bool = False

    def says(self) -> str:
        return f"resample once, {_resampling(self)}"

    def ns(self, x: FeatureType) -> float:
        return self.ns_per_value * _OF_INTERPOLATION.get(self.interpolation, 1.0)


@dataclass(frozen=True, slots=True)
class Warp(Computes):
    """A whole geometric segment: the product of the steps' matrices and one resampling."""

    ns_per_value: ClassVar[float] = 5.0

    feature: str
    refs: tuple[StepRef[GeometricTransform | CropTransform], ...]
    fill: Fill
    interpolation: str
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]
    mirrors: bool  # whether the product only mirrors axes
    projective: bool = False  # whether a matrix of the product can have a last row other than (0, 0, 1), so that positions are quotients
    exact: bool = False
    turns: bool = False  # whether the product mirrors axes and swaps them, and does nothing else

    def says(self) -> str:
        what = "mirror" if self.mirrors else f"turn, to {times(self.size)}" if self.turns else f"warp once, {_resampling(self)}"
        return f"{what}: {uses(self.refs)}"

    def leads(self) -> bool:
        return not self.mirrors

    def rereads(self, before: Sequence[Stage]) -> bool:
        return not all(stage.mirrors_only() for stage in before)

    def mirrors_only(self) -> bool:
        return self.mirrors

    def keeps_lines(self) -> bool:
        """Tests if rows stay rows and columns stay columns, so that they can be interpolated one after the other."""
        axes = all(ref.step.keeps_axes for ref in self.refs)
        return axes and self.interpolation == "bilinear" and not self.copies() and not self.projective

    def copies(self) -> bool:
        """Tests if the output is a permutation of the input's pixels."""
        return self.mirrors or self.turns

    def ns(self, x: FeatureType) -> float:
        if self.copies():
            return _MIRROR_NS if self.mirrors else _TURN_NS
        return self.ns_per_value * _OF_INTERPOLATION.get(self.interpolation, 1.0)


def _resampling(stage: Resample | Warp) -> str:
    fill = stage.fill if isinstance(stage.fill, str) else f"constant {stage.fill.constant:g}"
    return f"{'in perspective, ' if stage.projective else ''}{stage.interpolation}, fill {fill}, to {times(stage.size)}"


@dataclass(frozen=True, slots=True)
class Retime(Computes):
    """A segment of time of a sound: the product of the steps' maps of time, and one reading of the samples, of which `length` frames leave
    it, as many as enter if `None`."""

    feature: str
    refs: tuple[StepRef[TimeTransform], ...]
    length: int | None
    exact: bool = False

    @property
    def fastest(self) -> float:
        """The largest speed that the sound is played at, at least 1: a step that slows it down may not act."""
        return math.prod(max(1.0, ref.step.fastest()) for ref in self.refs)

    def resamples(self) -> bool:
        """Tests if samples are read between frames."""
        return any(ref.step.changes_pace for ref in self.refs)

    def leads(self) -> bool:
        return True

    def says(self) -> str:
        return f"resample once: {uses(self.refs)}" if self.resamples() else f"cut once: {uses(self.refs)}"

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities(self.refs, x, y)

    def ns(self, x: FeatureType) -> float:
        return max(weight_ns(ref, self.ns_per_value, x) for ref in self.refs)


@dataclass(frozen=True, slots=True)
class Turn(Stage):
    """Turns and scales the vectors of a map: before the stage that moves its pixels, by the product of the steps' matrices or one resize;
    after it, if `displaced`, along the field of one step."""

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 26.0

    feature: str
    refs: tuple[StepRef, ...]
    projective: bool = False
    displaced: bool = False

    def says(self) -> str:
        return f"turn vectors: {uses(self.refs)}"

    def ns(self, x: FeatureType) -> float:
        return _ALONG_NS if self.displaced else self.ns_per_value * (1 + self.projective)


@dataclass(frozen=True, slots=True)
class ComposeColour(Stage):
    """One step's colour matrix, multiplied into the pending matrix of a colour segment."""

    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[ColourTransform]
    channels: int
    opens: bool

    def says(self) -> str:
        return f"colour matrix of {use(self.ref)}"


Composes = (Compose, ComposeColour)  # the stages that leave the image as it is until their segment ends


@dataclass(frozen=True, slots=True)
class ApplyColour(Computes):
    """The pending colour matrix, applied and clipped, which ends a colour segment."""

    ns_per_value: ClassVar[float] = 1.2

    feature: str
    clip: Interval | None
    uses_mean: bool
    exact: bool = False

    def says(self) -> str:
        return f"apply the colour matrix{_clip(self)}"


@dataclass(frozen=True, slots=True)
class Colour(Computes):
    """A whole colour segment: the product of the steps' matrices, applied and clipped once."""

    ns_per_value: ClassVar[float] = 1.2

    feature: str
    refs: tuple[StepRef[ColourTransform], ...]
    channels: int
    clip: Interval | None
    uses_mean: bool
    exact: bool = False

    @property
    def mixes_channels(self) -> bool:
        """Whether an output channel can depend on another channel."""
        return any(r.step.mixes_channels() for r in self.refs)

    def says(self) -> str:
        what = "one colour matrix" if self.mixes_channels else "one scale and offset for each channel"
        return f"{what}{_clip(self)}: {uses(self.refs)}"

    def rereads(self, before: Sequence[Stage]) -> bool:
        if self.mixes_channels or self.uses_mean:
            return bool(before)
        # Without mixing, each value is read once: faster as a stage of its own behind a mirror, or a filter that does not lead.
        return any(stage.mirrors_only() or (isinstance(stage, Neighbourhood) and not stage.leads()) for stage in before)

    def ns(self, x: FeatureType) -> float:
        return (self.ns_per_value if self.mixes_channels else _CHANNEL_NS) + self.uses_mean * _MEAN_NS


def _clip(stage: ApplyColour | Colour) -> str:
    mean = ", around the mean" if stage.uses_mean else ""
    return f", clip to {stage.clip}{mean}" if stage.clip else mean


@dataclass(frozen=True, slots=True)
class Branch(Stage):
    """A conditional stage on images of type `entry`, run on single examples and only where its condition holds.

    If compiled, XLA compiles it for a batch of one.
    """

    one_example: ClassVar[bool] = True

    feature: str
    stage: Stage
    entry: FeatureType
    compiled: bool

    def uses(self) -> tuple[StepRef, ...]:
        return self.stage.uses()

    def says(self) -> str:
        return f"{said(self.stage)}, on those examples alone" + (", compiled by XLA" if self.compiled else "")

    def ns(self, x: FeatureType) -> float:
        return self.share * self.stage.ns(x)


@dataclass(frozen=True, slots=True)
class Pointwise(Computes):
    """Element-wise arithmetic and a dtype."""

    cheap: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.11

    feature: str
    arithmetic: Arithmetic
    refs: tuple[StepRef[PointwiseTransform], ...]
    exact: bool = False

    def says(self) -> str:
        a = self.arithmetic
        parts = [f"channels {list(a.order)}"] if a.order else []
        if any(map(math.isnan, a.scale)):
            parts.append(WAITING)
        elif any(x != 1 for x in a.scale) or any(x != 0 for x in a.offset):
            parts.append(f"× {listed(map(value, a.scale))} + {listed(map(value, a.offset))}")
        return ", ".join([*parts, f"as {a.dtype}"]) + (f": {uses(self.refs)}" if self.refs else "")

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return x == y and self.arithmetic.is_identity(x)


@dataclass(frozen=True, slots=True)
class ChannelsFirst(Stage):
    """A transpose to channels first."""

    cheap: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.3

    feature: str

    def says(self) -> str:
        return "channels first"


@dataclass(frozen=True, slots=True)
class EncodeLabel(Stage):
    """An encoding of class indices."""

    cheap: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    encoding: Encoding
    classes: int | None

    def says(self) -> str:
        return self.encoding


@dataclass(frozen=True, slots=True)
class Fork(Stage):
    """Copies of a feature under the names of its views, equal until steps of one view change it.

    `homes` are the views of the image that the feature is aligned with; `besides` the views of the feature that its items
    belong to.
    """

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    names: tuple[str, ...]
    homes: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()

    def touches(self) -> tuple[str, ...]:
        return (self.feature, *self.names)

    def edge(self, entry: ElementType, after: ElementType) -> ElementType:
        t = entry[self.feature]
        return entry.forked(self.feature, dict(zip(self.names, self.typed(t), strict=True)))

    def typed(self, t: FeatureType) -> tuple[FeatureType, ...]:
        """The types of the views of a feature of type `t`."""
        every = len(self.names)
        homes, besides = self.homes or (t.of,) * every, self.besides or (t.beside or t.instances,) * every
        how = "beside" if t.instances is None else "instances"
        return tuple(t.with_(**{"of": of, how: at}) for of, at in zip(homes, besides, strict=True))

    def says(self) -> str:
        return f"as {' and '.join(f'`{name}`' for name in self.names)}"


def said(stage: Stage) -> str:
    """Describes a stage as in a plan, without its feature."""
    return stage.says() + (", exact" if getattr(stage, "exact", False) else "")


def is_random(stage: Stage) -> bool:
    """Tests if the stage reads the example's draws."""
    return any(r.is_random for r in stage.uses())


def is_lasting(stage: Stage) -> bool:
    """Tests if results of the stage may be cached on disk for other processes."""
    return all(r.step.lasting() for r in stage.uses())


def with_refs(value: Any, change: Callable[[StepRef], StepRef]) -> Any:
    """Changes each use of a step in a stage, or in a part of one."""
    if isinstance(value, StepRef):
        return change(value)
    if isinstance(value, tuple):
        return tuple(with_refs(v, change) for v in value)
    if isinstance(value, Stage):
        made: Any = value
        return replace(made, **{f.name: with_refs(getattr(value, f.name), change) for f in fields(made)})
    return value


def plainly(stage: Stage) -> Stage:
    """A stage without the ids and places of uses that draw nothing, to compare stages by what they compute."""
    done: Stage = with_refs(stage, lambda ref: replace(ref, id="", path=(), start=0) if not ref.is_random else ref)
    return done
