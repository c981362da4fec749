"""The state of a plan being built: findings, unknowns, open segments, and stages on their way into nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import InternalError, OpError
from pipegen.ops.arguments.geometry import Fill
from pipegen.ops.families.convolutions import Convolution, ConvolutionTransform
from pipegen.ops.families.crops import PaddedWindow
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.families.sounds import SoundWindow, TimeTransform
from pipegen.ops.stage import Stage, StagedTransform, StepRef
from pipegen.ops.step_bases import ColourTransform, CropTransform, ElementTransform, GeometricTransform
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Kernel, Node
from pipegen.plan.recipe import alternatives
from pipegen.spec import models
from pipegen.spec.drafts import UnknownStep, keeps_shape
from pipegen.spec.locate import Locate
from pipegen.types import ElementType, FeatureType


class Findings:
    """The findings about one split, and what must not be reported again."""

    def __init__(self, locate: Locate, found: list[Diagnostic]) -> None:
        self.locate = locate
        self.found = found
        self.ordinary: set[Diagnostic] = set()
        """Those about random steps; these need not name the split, as they run on the training split anyway."""
        self.poisoned = {"buckets"} if found else set[str]()
        """Features whose later findings are suppressed, and names of errors that belong to no single feature."""

    def report(self, ref: StepRef, error: OpError, poisons: str | None = None, *, ordinary: bool = False) -> None:
        """Adds a finding of a step, with its place."""
        field = "feature" if error.code == "PG203" and ref.step.feature is not None else error.field
        label = self.locate((*ref.path, field) if field else ref.path, key=field is None)
        self.found.append(make(error.code, error.message, label, help=error.help or ()))
        if ordinary or (ref.step.random and ref.step.when is None):
            self.ordinary.add(self.found[-1])
        if poisons is not None:
            self.poisoned.add(poisons)

    def drop_repeated(self, aligned: Sequence[Diagnostic], own: Sequence[Diagnostic]) -> None:
        """Drops findings about aligned features that an image has, too."""
        said = {(d.code, d.labels) for d in own}
        again = {id(d) for d in aligned if (d.code, d.labels) in said}
        self.found = [d for d in self.found if id(d) not in again]


def reading(step: Transform) -> tuple[tuple[Fill, str] | None, bool]:
    """The fill and interpolation of a geometric step (a plain crop has none), and whether it is a segment of its own."""
    if isinstance(step, GeometricTransform):
        return (step.fill, step.interpolation), step.exact
    if isinstance(step, PaddedWindow) and step.pads():
        return (step.fill, "nearest"), True
    return None, False


class Geometric:
    """An open geometric segment of steps with one fill and interpolation, `mode`; if `alone`, of one step.

    `entry` is the type of the image that entered it, `before` the segment right before it, if that resampled the image.
    """

    def __init__(self, feature: str, entry: FeatureType, mode: tuple[Fill, str], before: Geometric | None, *, alone: bool) -> None:
        self.feature = feature
        self.entry = entry
        self.mode = self._reads = mode  # `_reads` is the mode for this feature: a mask is not interpolated
        self.behind: tuple[Fill, str] | None = None if before is None else before.behind if before._copies else before.mode
        """The mode of the segment that resampled the image before it."""
        self.closed = self._alone = alone
        self._copies: bool = True  # whether every step so far copies input pixels, so that nothing is resampled
        self._projective = False
        self._size = entry.height, entry.width

    def accepts(self, mode: tuple[Fill, str] | None) -> bool:
        """Tests if a step with this fill and interpolation (a crop has none) fits the segment."""
        return not self.closed and (mode is None or mode == self.mode)

    def resamples_again(self, step: Transform, x: FeatureType) -> bool:
        """Tests if a step is the first to resample, after a segment that resampled in another mode."""
        return self._copies and not step.traits(x).moves_pixels_only and self.behind not in (None, self.mode)

    def compose(self, ref: StepRef, step: Transform, x: FeatureType, y: FeatureType, *, opens: bool) -> s.Compose:
        """Adds a use of a step; `step` is as it is written, `ref` has its form for this feature."""
        traits = step.traits(x)
        self._reads = reading(ref.step)[0] or self._reads
        self._copies &= traits.moves_pixels_only
        self._projective |= traits.projective
        self._size = y.height, y.width
        self.closed = self._alone or isinstance(step, CropTransform) or x.shape != y.shape
        own = ref.of(CropTransform) if isinstance(ref.step, CropTransform) else ref.of(GeometricTransform)
        return s.Compose(self.feature, own, (x.height, x.width), opens)

    def stage(self) -> s.Resample:
        """Makes the stage that ends the segment."""
        return s.Resample(self.feature, *self._reads, self._size, self._projective)


class Sizing:
    """Open crops and resizes that act on some examples only: one, or those of a policy that gives each example one of them.

    `entry` is the type of the image that enters each of them.
    """

    def __init__(self, feature: str, entry: FeatureType, ref: StepRef) -> None:
        self.feature = feature
        self.entry = entry
        self.policy = alternatives(ref)
        self._refs: list[StepRef[CropTransform | ElementTransform]] = []

    def takes(self, ref: StepRef, feature: str) -> bool:
        """Tests if a step is another one of the policy's."""
        return self.feature == feature and self.policy is not None and self.policy == alternatives(ref)

    def add(self, ref: StepRef, y: FeatureType) -> None:
        self._refs.append(ref.of(CropTransform) if isinstance(ref.step, CropTransform) else ref.of(ElementTransform))
        self._size = y.height, y.width

    def stage(self) -> s.SometimesSized:
        """Makes the stage that does them."""
        return s.SometimesSized(self.feature, tuple(self._refs), self._size)


class Timing:
    """An open segment of time of a sound; `entry` is the type of the sound that entered it. A window ends it, which fixes the length."""

    def __init__(self, feature: str, entry: FeatureType) -> None:
        self.feature = feature
        self.entry = entry
        self.refs: tuple[StepRef[TimeTransform], ...] = ()
        self.closed = False
        self._length: int | None = None

    def add(self, ref: StepRef[TimeTransform], y: FeatureType) -> None:
        self.refs += (ref,)
        self.closed = isinstance(ref.step, SoundWindow)
        self._length = y.shape[0]

    def stage(self) -> Stage:
        """Makes the stage that ends the segment; a step alone is one as it is."""
        (ref, *others) = self.refs
        if others:
            return s.Retime(self.feature, self.refs, self._length)
        if isinstance(ref.step, StagedTransform):
            return ref.step.stage(self.feature, ref, self.entry)
        return s.Apply(self.feature, ref.of(ElementTransform))


class Colour:
    """An open colour segment; `entry` is the type of the image that entered it."""

    def __init__(self, feature: str, entry: FeatureType) -> None:
        self.feature = feature
        self.entry = entry
        self._uses_mean = False

    def compose(self, ref: StepRef[ColourTransform], channels: int, *, opens: bool) -> s.ComposeColour:
        self._uses_mean |= ref.step.uses_mean()
        return s.ComposeColour(self.feature, ref, channels, opens)

    def stage(self) -> s.ApplyColour:
        return s.ApplyColour(self.feature, self.entry.interval, self._uses_mean)


class Convolved:
    """An open run of convolutions that act on every example, whose transfer functions multiply; or another one alone."""

    def __init__(self, feature: str) -> None:
        self.feature = feature
        self._refs: list[StepRef[ConvolutionTransform]] = []

    def accepts(self, ref: StepRef) -> bool:
        """Tests if a step fits the run."""
        return not any(one.conditional for one in (*self._refs, ref))

    def add(self, ref: StepRef) -> None:
        self._refs.append(ref.of(ConvolutionTransform))

    def stage(self) -> Convolution:
        """Makes the stage that convolves once."""
        return Convolution(self.feature, tuple(self._refs))


def varying(stages: Sequence[Stage]) -> set[int]:
    """The positions of random stages and of those behind one on the same feature; a segment stays whole."""
    found: set[int] = set()
    random: set[str] = set()
    for place, stage in enumerate(stages):
        own = [other for other in stages[place:] if other.feature == stage.feature]
        composing = sum(1 for _ in takewhile(lambda other: isinstance(other, s.Composes), own))
        if any(map(s.is_random, own[: composing + 1])):
            random.add(stage.feature)
        if stage.feature in random or random & {*stage.needs()}:
            random.add(stage.feature)
            found.add(place)
    return found


class Assembly:
    """Nodes, made of the stages that are added. The caller gives the `type` after the last stage; `edge` is that after the last node."""

    def __init__(self, entry: ElementType) -> None:
        self.type = self.edge = entry
        self.nodes: list[Node] = []
        self._waiting: list[tuple[Stage, dict[str, FeatureType]]] = []  # each with the types of the features that it changes
        self._held: dict[str, Decode] = {}  # decodes that wait for the crop that decides their scale, by feature

    def retype(self, feature: str, y: FeatureType) -> None:
        """Changes the type of a feature without a stage."""
        self.type = self.type.replace(**{feature: y})

    def emit(self, stage: Stage, feature: str, y: FeatureType) -> None:
        """Adds a stage; a crop is joined with the decode that was held for it."""
        held = self._held.pop(feature, None)
        if held is not None and isinstance(stage, s.Crop):
            stage = DecodeWindow(feature, held.ref, stage.ref, held.needed, whole=True)
        elif held is not None:
            raise InternalError(f"`{held.ref.id}` waited for a crop and met {type(stage).__name__}")
        self.emit_all(stage, {feature: y})

    def emit_all(self, stage: Stage, types: dict[str, FeatureType]) -> None:
        """Adds a stage that changes the types of several features."""
        self.type = self.type.replace(**types)
        self._waiting.append((stage, types))

    def hold(self, stage: Decode, y: FeatureType) -> None:
        """Holds a decode for the crop that comes next."""
        self._held[stage.feature] = stage
        self.retype(stage.feature, y)

    def pend(self, stage: s.Compose | s.ComposeColour, entry: FeatureType, y: FeatureType) -> None:
        """Adds a stage that composes a matrix: until the segment ends, the edge carries the image that entered it."""
        self._waiting.append((stage, {stage.feature: entry}))
        self.retype(stage.feature, y)

    def turn(self, feature: str, *, projective: bool) -> None:
        """Adds the stage that turns the vectors of a feature before those that compose the matrices of its segment."""
        composing = takewhile(lambda one: isinstance(one[0], s.Compose) and one[0].feature == feature, reversed(self._waiting))
        matrices = [*composing][::-1]
        made = s.Turn(feature, tuple(stage.ref for stage, _ in matrices if isinstance(stage, s.Compose)), projective)
        self._waiting.insert(len(self._waiting) - len(matrices), (made, matrices[0][1]))

    def place(self) -> None:
        """Turns waiting stages into nodes of one stage: elements, or kernels after a batch.

        Stages that give the same in every epoch come first, for any feature, so that they can be cached.
        """
        waiting, self._waiting = self._waiting, []
        varies = varying([stage for stage, _ in waiting])
        for _, (stage, types) in sorted(enumerate(waiting), key=lambda one: one[0] in varies):
            self.edge = self.edge.replace(**types)
            self.nodes.append(Element(self.edge, (stage,)) if self.edge.batch is None else Kernel(self.edge, (stage,)))

    def stack(self, batch: models.Batch, split: str) -> None:
        """Places what waits, and adds the batch, unless there is one."""
        self.place()
        if self.type.batch is not None:
            return
        remainder = batch.remainder_for(split)
        size = batch.size if remainder in ("drop", "pad") else 0
        self.type, self.edge = self.type.with_batch(size), self.edge.with_batch(size)
        self.nodes.append(Batch(self.edge, batch.size, remainder))


_OF_SHAPES = frozenset({"PG203", "PG204", "PG205", "PG206", "PG215", "PG231"})  # errors that depend on an image's kind and shape alone
_OF_CHANNELS = frozenset({"PG205", "PG231"})  # errors that depend on an image's channels alone


@dataclass(slots=True)
class Unknowns:
    """The features of one split of which something is unknown."""

    values: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)  # features with unknown height and width, until a step fixes the size
    channels: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)  # features of which nothing is known

    def all(self) -> set[str]:
        """The features without a plan."""
        return self.values | self.sizes | self.channels | self.failed | self.lost

    def explain(self, error: OpError, feature: str, x: FeatureType) -> bool:
        """Tests if an error on `x` may come from what is unknown of the feature, rather than from the spec."""
        if error.code == "PG226" and feature in self.values | self.sizes:  # a known size might be the one that is asked for
            return feature in self.channels or x.height is None or x.width is None
        if error.code not in _OF_SHAPES:
            return feature in self.values
        if error.code in _OF_CHANNELS and feature in self.channels:
            return True
        return feature in self.sizes and (x.height is None or x.width is None)

    def after_unknown(self, step: UnknownStep, feature: str, x: FeatureType) -> FeatureType:
        """Notes what an unknown step may change; returns the rest of the type."""
        if not step.keeps_values:
            self.values.add(feature)
        if not step.keeps_channels:
            self.channels.add(feature)
        return x if step.keeps_size else self._without_size(feature, x)

    def after_error(self, step: Transform, feature: str, x: FeatureType) -> FeatureType:
        """Notes what is unknown after a step that cannot run on `x`; returns the type that the step declares to leave."""
        self.failed.add(feature)
        if isinstance(step, CropTransform) and len(x.shape) == 3 and None not in step.output_size():
            return x.with_(shape=(*step.output_size(), x.channels))
        if step.only_sizes:
            return self._without_size(feature, x)
        (self.values if keeps_shape(type(step)) else self.lost).add(feature)
        return x

    def _without_size(self, feature: str, x: FeatureType) -> FeatureType:
        self.sizes.add(feature)
        return x.with_(shape=(None, None, x.channels)) if len(x.shape) == 3 else x
