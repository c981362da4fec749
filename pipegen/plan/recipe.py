"""The steps that a split runs, and the state of a plan being built: open segments, waiting stages, unknowns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from pipegen.errors import InternalError, OpError
from pipegen.frozen import dataclass
from pipegen.ops.arguments.geometry import Fill
from pipegen.ops.base import CropTransform, GeometricTransform
from pipegen.ops.families.combining import runs_on
from pipegen.ops.families.crops import PaddedWindow
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.stage import Choice, Path, Stage, StepRef
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Kernel
from pipegen.spec.mismatch import UnknownStep, keeps_shape
from pipegen.spec.models import PipelineSpec
from pipegen.spec.steps import ids_of, inner_ids
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.plan.nodes import Node
    from pipegen.spec import models
    from pipegen.types import ElementType


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps of one split, in order.

    Attributes:
        steps: Each use of a step, with its place in the vector of draws; a policy is expanded into its parts.
        draws: The uses that draw, in the order of the vector; a policy counts as one.
        stand_ins: The paths of random steps replaced by their evaluation form.
    """

    steps: tuple[StepRef, ...]
    draws: tuple[StepRef, ...]
    stand_ins: frozenset[Path]


def step_path(index: int, step: Transform) -> Path:
    """The path of step number `index` in a spec."""
    return ("transforms", index, step.op)


def implicit_decode() -> StepRef:
    """The use of the default decoder in front of steps that have none."""
    from pipegen.ops.registry import default_decoder

    return StepRef(default_decoder(), "decode", ("transforms",), 0, False)


def recipe(spec: PipelineSpec, split: str, relocate: Callable[[Path], Path] = tuple) -> Recipe:
    """The steps that `split` runs; `relocate` maps the path of a step to that in the file.

    On evaluation splits, a random step that fixes the shape and has no `when` is replaced by its evaluation form.
    """
    steps: list[StepRef] = []
    draws: list[StepRef] = []
    stand_ins: set[Path] = set()
    ids = ids_of(spec.transforms)
    for index, step in enumerate(spec.transforms):
        path = relocate(step_path(index, step))
        if runs_on(step, split):
            chosen: tuple[Transform, ...] = (step,)
        elif step.random and step.when is None and step.evaluation_form():
            chosen = step.evaluation_form()
            stand_ins.add(path)
        else:
            continue
        for use in chosen:
            _add(use, ids[index], path, None, steps, draws)
    return Recipe(tuple(steps), tuple(draws), frozenset(stand_ins))


def _add(step: Transform, step_id: str, path: Path, choice: Choice | None, steps: list[StepRef], draws: list[StepRef]) -> None:
    """Adds one use of a step, or of each part of a policy, and what it draws."""
    start = draws[-1].start + draws[-1].num_draws if draws else 0
    ref = StepRef(step, step_id, path, start, step.is_gated(), choice)
    if ref.num_draws:
        draws.append(ref)
    parts = step.parts()
    if not parts:
        steps.append(ref)
    ids = inner_ids(step, step_id)
    once: dict[int, StepRef] = {}
    for part in parts:
        decided = Choice(ref, part.choice) if ref.conditional or part.choice is not None else None
        if part.inner is None:
            steps.append(replace(ref, step=part.step, gated=False, choice=decided))
        elif part.inner in once:  # a possible other position of it, in a random order: it draws once
            steps.append(replace(once[part.inner], choice=decided))
        else:
            _add(part.step, ids[part.inner], (*path, "steps", part.inner, part.step.op), decided, steps, draws)
            once[part.inner] = steps[-1]


class Geometric:
    """An open geometric segment; `entry` is the type of the image that entered it."""

    def __init__(self, feature: str, entry: FeatureType, mode: tuple[Fill, str], alone: bool) -> None:
        self.feature = feature
        self.entry = entry
        self.mode = mode
        self.reads = mode
        """The mode for this feature: a mask is not interpolated."""
        self.copies = True
        """Whether every step so far copies input pixels, so that nothing is resampled."""
        self.behind: tuple[Fill, str] | None = None
        """The mode of the segment right before it, which resampled the image."""
        self.projective = False
        self.closed = alone
        self.out: FeatureType | None = None

    def accepts(self, mode: tuple[Fill, str] | None) -> bool:
        """Tests if a step with this fill and interpolation (a crop has none) fits the segment."""
        return not self.closed and (mode is None or mode == self.mode)


def reading(step: Transform) -> tuple[tuple[Fill, str] | None, bool]:
    """The fill and interpolation of a geometric step (a plain crop has none), and whether it is a segment of its own."""
    if isinstance(step, GeometricTransform):
        return (step.fill, step.interpolation), step.exact
    if isinstance(step, PaddedWindow) and step.pads():
        return (step.fill, "nearest"), True
    return None, False


class Colour:
    """An open colour segment; `entry` is the type of the image that entered it."""

    def __init__(self, feature: str, entry: FeatureType) -> None:
        self.feature = feature
        self.entry = entry
        self.out: FeatureType | None = None
        self.uses_mean = False


def varying(stages: Sequence[Stage]) -> set[int]:
    """The positions of random stages and of those behind one on the same feature; a segment stays whole."""
    found: set[int] = set()
    random: set[str] = set()
    for place, stage in enumerate(stages):
        run: list[Stage] = []
        for other in stages[place:]:
            if other.feature == stage.feature:
                run.append(other)
                if not isinstance(other, s.Composes):
                    break
        if any(map(s.is_random, run)):
            random.add(stage.feature)
        if stage.feature in random:
            found.add(place)
    return found


class Assembly:
    """Nodes, made of the stages that are added; types are those that the caller gives.

    Args:
        entry: The type of a record.
    """

    def __init__(self, entry: ElementType) -> None:
        self.type = entry
        """The type after the last stage."""
        self.edge = entry
        """The type after the last node."""
        self.nodes: list[Node] = []
        self.waiting: list[tuple[Stage, dict[str, FeatureType]]] = []
        """Stages that are not in nodes yet, and the types of the features that they change."""
        self.held: dict[str, Decode] = {}
        """Decodes that wait for the crop that decides their scale, by feature."""

    def _emit(self, stage: Stage, feature: str, y: FeatureType) -> None:
        """Adds a stage; a crop is joined with the decode that was held for it."""
        self.type = self.type.replace(**{feature: y})
        held = self.held.pop(feature, None)
        if held is not None and isinstance(stage, s.Crop):
            stage = DecodeWindow(feature, held.ref, stage.ref, held.needed, whole=True)
        elif held is not None:
            raise InternalError(f"`{held.ref.id}` waited for a crop and met {type(stage).__name__}")
        self.waiting.append((stage, {feature: y}))

    def _emit_all(self, stage: Stage, types: dict[str, FeatureType]) -> None:
        """Adds a stage that changes the types of several features."""
        self.type = self.type.replace(**types)
        self.waiting.append((stage, types))

    def _hold(self, stage: Decode, y: FeatureType) -> None:
        """Holds a decode for the crop that comes next."""
        self.held[stage.feature] = stage
        self.type = self.type.replace(**{stage.feature: y})

    def _pend(self, stage: s.Compose | s.ComposeColour, entry: FeatureType, y: FeatureType) -> None:
        """Adds a stage that composes a matrix: until the segment ends, the edge carries the image that entered it."""
        self.waiting.append((stage, {stage.feature: entry}))
        self.type = self.type.replace(**{stage.feature: y})

    def _place(self) -> None:
        """Turns waiting stages into nodes of one stage: elements, or kernels after a batch.

        Stages that give the same in every epoch come first, for any feature, so that they can be cached.
        """
        waiting, self.waiting = self.waiting, []
        varies = varying([stage for stage, _ in waiting])
        for _, (stage, types) in sorted(enumerate(waiting), key=lambda one: one[0] in varies):
            self.edge = self.edge.replace(**types)
            self.nodes.append(Element(self.edge, (stage,)) if self.edge.batch is None else Kernel(self.edge, (stage,)))

    def _stack(self, batch: models.Batch, split: str) -> None:
        """Adds the batch, unless there is one."""
        if self.type.batch is not None:
            return
        remainder = batch.remainder_for(split)
        size = batch.size if remainder in ("drop", "pad") else 0
        self.type, self.edge = self.type.with_batch(size), self.edge.with_batch(size)
        self.nodes.append(Batch(self.edge, batch.size, remainder))


_OF_SHAPES = frozenset({"PG203", "PG204", "PG205", "PG206", "PG215", "PG231"})
"""Errors that depend on an image's kind and shape alone."""
_OF_CHANNELS = frozenset({"PG205", "PG231"})
"""Errors that depend on an image's channels alone."""


@dataclass(slots=True)
class Unknowns:
    """The features of one split of which something is unknown.

    Attributes:
        values: Features with unknown values.
        sizes: Features with unknown height and width, until a step fixes the size.
        channels: Features with unknown channels.
        failed: Features with an error.
        lost: Features of which nothing is known.
    """

    values: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    channels: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    def all(self) -> set[str]:
        """The features without a plan."""
        return self.values | self.sizes | self.channels | self.failed | self.lost

    def explain(self, error: OpError, feature: str, x: FeatureType) -> bool:
        """Tests if an error on `x` may come from what is unknown of the feature, rather than from the spec."""
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
