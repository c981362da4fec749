"""Defines the stages that nodes are made of: what can be done to one feature of an example or a batch.

A stage holds op instances and reads only their traits, so a new op needs no new stage. Stages know nothing of
TensorFlow; `backend/kernels/lower.py` gives each its meaning. Here are those that the plan itself is built around: decoding,
windows, the segments of geometry and colour, and what the output asks for. Families with a stage of their own have it in their file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic

from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.geometry import Fill
from pipegen.ops.base import ColourTransform, CropTransform, ElementTransform, GeometricTransform, PointwiseTransform
from pipegen.ops.families.decoder import CROP_NS
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.stage import (
    RESIZING_NS,
    WAITING,
    Computes,
    F,
    Stage,
    StepRef,
    fitted_use,
    only_identities,
    use,
    uses,
    value,
    weight_ns,
)
from pipegen.spec.models import Encoding
from pipegen.types import ElementType, FeatureType, Interval, times

_MIRROR_NS = 0.13
_TURN_NS = 0.4
_CHANNEL_NS = 0.11
"""A colour stage that mixes no channels."""
_MEAN_NS = 1.0
"""The mean luma, where a colour stage is around it."""
_OF_INTERPOLATION = {"nearest": 0.45, "bicubic": 4.0}
"""How many times as long as a bilinear one."""


@dataclass(frozen=True, slots=True)
class _OfOneExample(Stage, Generic[F]):
    """One step on one example."""

    one_example: ClassVar[bool] = True

    feature: str
    ref: StepRef[F]

    def says(self) -> str:
        return fitted_use(self.ref)

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities((self.ref,), x, y)

    def ns(self, x: FeatureType) -> float:
        return weight_ns(self.ref, self.ns_per_value, x)


class Apply(_OfOneExample[ElementTransform]):
    """A function of one example."""

    __slots__ = ()
    ns_per_value: ClassVar[float] = RESIZING_NS


class Crop(_OfOneExample[CropTransform]):
    """A window of one example, and the crop's finish."""

    __slots__ = ()
    ns_per_value: ClassVar[float] = CROP_NS


@dataclass(frozen=True, slots=True)
class Compose(Stage):
    """Multiply one step's matrix into the pending transform of a geometric segment.

    `opens` starts the segment: what was pending before is the identity.
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
    """Read the image once through the pending transform, which ends the geometric segment.

    `projective` says that the transform divides: a step's matrix can have a last row other than (0, 0, 1).
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
    mirrors: bool
    """Whether the product only mirrors axes."""
    projective: bool = False
    """Whether a matrix of the product can have a last row other than (0, 0, 1), so that a position is a quotient."""
    exact: bool = False
    turns: bool = False
    """Whether the product mirrors axes and swaps them, and does nothing else."""

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
        """Returns whether rows stay rows and columns stay columns, so that one after the other can be read between two of them."""
        axes = all(ref.step.keeps_axes for ref in self.refs)
        return axes and self.interpolation == "bilinear" and not self.copies() and not self.projective

    def copies(self) -> bool:
        """Returns whether every pixel is one of the input's, which none of them leaves."""
        return self.mirrors or self.turns

    def ns(self, x: FeatureType) -> float:
        return (
            _MIRROR_NS if self.mirrors else _TURN_NS if self.turns else self.ns_per_value * _OF_INTERPOLATION.get(self.interpolation, 1.0)
        )


def _resampling(stage: Resample | Warp) -> str:
    fill = stage.fill if isinstance(stage.fill, str) else f"constant {stage.fill.constant:g}"
    return f"{'in perspective, ' if stage.projective else ''}{stage.interpolation}, fill {fill}, to {times(stage.size)}"


@dataclass(frozen=True, slots=True)
class ComposeColour(Stage):
    """Multiply one step's colour matrix into the pending matrix of a colour segment."""

    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[ColourTransform]
    channels: int
    opens: bool

    def says(self) -> str:
        return f"colour matrix of {use(self.ref)}"


Composes = (Compose, ComposeColour)
"""The stages that leave the image as it is until their segment ends."""


@dataclass(frozen=True, slots=True)
class ApplyColour(Computes):
    """Apply the pending colour matrix and clip, which ends the colour segment."""

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
        """Returns whether an output channel can depend on another channel."""
        return any(r.step.mixes_channels() for r in self.refs)

    def says(self) -> str:
        what = "one colour matrix" if self.mixes_channels else "one scale and offset for each channel"
        return f"{what}{_clip(self)}: {uses(self.refs)}"

    def rereads(self, before: Sequence[Stage]) -> bool:
        if self.mixes_channels or self.uses_mean:
            return bool(before)
        # One on each channel alone reads a value once; it is faster apart behind a mirror, or a filter that reads just where it writes.
        return any(stage.mirrors_only() or (isinstance(stage, Neighbourhood) and not stage.leads()) for stage in before)

    def ns(self, x: FeatureType) -> float:
        return (self.ns_per_value if self.mixes_channels else _CHANNEL_NS) + self.uses_mean * _MEAN_NS


def _clip(stage: ApplyColour | Colour) -> str:
    mean = ", around the mean" if stage.uses_mean else ""
    return f", clip to {stage.clip}{mean}" if stage.clip else mean


@dataclass(frozen=True, slots=True)
class Branch(Stage):
    """A conditional stage on images of type `entry`, run on one example at a time and on those alone that it acts on; where it is
    compiled, by XLA for a batch of one."""

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
        return min(1.0, sum(ref.share for ref in self.uses())) * self.stage.ns(x)


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
            parts.append(f"× {value(a.scale)} + {value(a.offset)}")
        return ", ".join([*parts, f"as {a.dtype}"]) + (f": {uses(self.refs)}" if self.refs else "")

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return x == y and self.arithmetic.is_identity(x)


@dataclass(frozen=True, slots=True)
class ChannelsFirst(Stage):
    """Move the channel axis of an image before its height."""

    cheap: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.3

    feature: str

    def says(self) -> str:
        return "channels first"


@dataclass(frozen=True, slots=True)
class EncodeLabel(Stage):
    """Class indices to what the loss wants."""

    cheap: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    encoding: Encoding
    classes: int | None

    def says(self) -> str:
        return self.encoding


@dataclass(frozen=True, slots=True)
class Fork(Stage):
    """Hand one feature on under the names of its views, which are alike from here on until steps of their own change them.

    `homes` are, for a feature aligned with an image, the views of that image; `besides`, for one that stands beside another item by
    item, the views of that one.
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
        """Returns the types of the views of a feature of type `t`."""
        every = len(self.names)
        homes, besides = self.homes or (t.of,) * every, self.besides or (t.beside or t.instances,) * every
        how = "beside" if t.instances is None else "instances"
        return tuple(t.with_(**{"of": of, how: at}) for of, at in zip(homes, besides, strict=True))

    def says(self) -> str:
        return f"as {' and '.join(f'`{name}`' for name in self.names)}"


def said(stage: Stage) -> str:
    """A stage as a line of a plan has it, after the name of its feature."""
    return stage.says() + (", exact" if getattr(stage, "exact", False) else "")


def is_random(stage: Stage) -> bool:
    """Returns whether the stage reads the example's draws."""
    return any(r.is_random for r in stage.uses())


def is_lasting(stage: Stage) -> bool:
    """Returns whether what the stage gives may be kept on a disk, for other processes."""
    return all(r.step.lasting() for r in stage.uses())


def with_refs(value: Any, change: Callable[[StepRef], StepRef]) -> Any:
    """A stage, or part of one, with each use of a step changed."""
    if isinstance(value, StepRef):
        return change(value)
    if isinstance(value, tuple):
        return tuple(with_refs(v, change) for v in value)
    if isinstance(value, Stage):
        made: Any = value
        return replace(made, **{f.name: with_refs(getattr(value, f.name), change) for f in fields(made)})
    return value


def plainly(stage: Stage) -> Stage:
    """A stage without what tells apart uses of a step that draw nothing: their ids, and their places in the spec and among the draws."""
    done: Stage = with_refs(stage, lambda ref: replace(ref, id="", path=(), start=0) if not ref.is_random else ref)
    return done
