"""The builder that turns a spec into a typed plan for one split; it infers all types and finds all type errors.

The plan is the plainest one that means what the spec says: one node a step, one example at a time, in the order written.
The passes make it fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import OpError
from pipegen.ops.families.combining import CombiningTransform, anchor
from pipegen.ops.families.crops import ChooseWindow, ItemCrop
from pipegen.ops.families.decoder import Decode, DecodeTransform
from pipegen.ops.families.sounds import TimeTransform
from pipegen.ops.kinds.base import Geometry, Indices, Values, having, kind_of, turns
from pipegen.ops.stage import Stage, StagedTransform, StepRef
from pipegen.ops.step_bases import ColourTransform, CropTransform, ElementTransform, PointwiseTransform
from pipegen.ops.traits import Family
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan import timeline_planning as timeline
from pipegen.plan.assembly import Assembly, Colour, Convolved, Findings, Geometric, Sizing, Timing, Unknowns, reading
from pipegen.plan.combining_plan import late, plan_combining
from pipegen.plan.followers import Act, Fills, Guides, another_fill, chosen, in_order, marked
from pipegen.plan.item_planning import Images, Items, joined, limits, nothing_chooses, renumbered, resized, shortened, wrong_buckets
from pipegen.plan.lanes import Lanes
from pipegen.plan.nodes import Element, Emit, Index, Plan, Read, Shard, Shuffle
from pipegen.plan.outputs import infer_output, unbatchable
from pipegen.plan.padding import padded
from pipegen.plan.recipe import decided_by, type_after
from pipegen.spec.drafts import UnknownStep
from pipegen.spec.lengths import has_length
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, WindowShuffle
from pipegen.types import ElementType, FeatureType


class Given(NamedTuple):
    """What is known of a spec."""

    whole: bool = True  # all of its steps; if not, what leaves the last one is not checked
    guessed: bool = False  # the source is a guess, so that the values of images are unknown from the start


ALL = Given()
Records = Mapping[str, ElementType]  # of a mix, the type of a record of each part


@dataclass
class Built:
    """The plan of a split, `None` if there are errors, and the findings; for `ordinary` see `Findings`."""

    plan: Plan | None
    findings: list[Diagnostic]
    ordinary: set[Diagnostic]


class Decoders:
    """How the file of each feature is decoded; `followed` are images that another feature is aligned with, in the plan or not."""

    def __init__(self, lanes: Lanes, followed: frozenset[str]) -> None:
        self._lanes, self._followed = lanes, followed
        self.like: dict[str, tuple[str, StepRef[DecodeTransform]]] = {}
        """The image of each feature that is aligned with one, and the use of a step that decodes it."""

    def of(self, ref: StepRef, feature: str) -> StepRef:
        """A use of `decode` with the feature's own decoder, if it has one; any other use as it is."""
        own = self._lanes.spec.source.decoders().get(self._lanes.home(feature)) if isinstance(ref.step, DecodeTransform) else None
        return replace(ref, step=own) if own is not None else ref

    def note(self, feature: str, image: str, acts: list[Act], type_: ElementType) -> None:
        """Notes how the image of an aligned feature is decoded."""
        decoding = next((ref for ref, features in acts if isinstance(ref.step, DecodeTransform) and image in features), None)
        if feature != image and decoding is not None and type_[image].encoded:
            own = self.of(decoding, image)
            self.like[feature] = image, replace(own, step=own.step.on(type_[image])).of(DecodeTransform)

    def stage(self, ref: StepRef, feature: str, x: FeatureType, y: FeatureType, following: StepRef | None) -> Decode:
        """Makes the stage of a use that decodes `x` to `y`, if it can to about the size that the next step needs.

        With aligned features that is safe only if the next step crops or stretches: else its frame follows from the size
        before and would differ by a pixel.
        """
        scales = ref.step.traits(x).decodes_scaled and feature not in self.like
        needed = following.step.needed_size() if following is not None and scales and not following.conditional else None
        if following is not None and needed is not None:
            traits = following.step.traits(y)
            safe = self._lanes.home(feature) not in self._followed or traits.crops or traits.stretches
            needed = needed if safe and self._lanes.scales(following, feature, crops=traits.crops) else None
        return Decode(feature, ref.of(DecodeTransform), needed, self.like.get(feature))


class Builder:
    """Builder of the plan of one split; for `record` see `bucketed_plans.build_plan`."""

    def __init__(self, spec: PipelineSpec, split: str, locate: Locate, source_type: ElementType, record: ElementType | None = None) -> None:
        self.split = split
        self.assembly = Assembly(source_type.padded())
        self.record = self.type
        self.lanes = Lanes(spec, split, self.record, record or source_type)
        self.spec = self.lanes.spec
        self.findings = Findings(locate, wrong_buckets(source_type, locate))
        self.unknowns = Unknowns()
        homes = {name: anchor(record or source_type, name) for name in record or source_type}
        self.decoders = Decoders(self.lanes, frozenset(home for name, home in homes.items() if home != name))
        self.guides = Guides(self.lanes.home)
        self.images = Images()
        self.fills = Fills()
        self.segment: Geometric | Colour | Convolved | Items | Sizing | Timing | None = None
        self.combined: StepRef | None = None  # the first step that combines examples; everything after it works on batches
        self.mixed: set[str] = set()  # the features that such steps act on

    @property
    def type(self) -> ElementType:
        """The type after the last stage."""
        return self.assembly.type

    def build(self, given: Given = ALL) -> Built:
        self._start()
        self.unknowns.values |= {*having(self.type, Values)} if given.guessed else set()
        for run, combining in self.lanes.runs(self._chosen):
            for acts in self.guides.parts(run, self.type):
                self._run(acts)
            if combining is not None:
                (ref, features), later = combining
                self._mix(ref, features, later)
        self.findings.poisoned |= self.unknowns.all()
        if not given.whole:
            self.findings.poisoned.update(having(self.type, Values), (name for name, t in self.type.items() if has_length(t)))
        self._finish()
        plan = None if self.findings.poisoned else Plan(self.split, marked(self.assembly.nodes))
        return Built(plan, self.findings.found, self.findings.ordinary)

    def _start(self) -> None:
        spec, nodes, train = self.spec, self.assembly.nodes, self.split == "train"
        indexed = self.type.without(*(f for f, t in self.type.items() if kind_of(t).storage != "dense"))
        nodes.append(Index(indexed, self.split, "stored", None, False, self.lanes.draws, sampled=train and spec.samples))
        nodes.append(Read(self.type))
        if train and spec.shuffle != "none":
            window = spec.shuffle.window if isinstance(spec.shuffle, WindowShuffle) else None
            nodes.append(Shuffle(self.type, "window" if window else "global", window))
        if spec.runtime.shard != "none":
            nodes.append(Shard(self.type))
        for fork in self.lanes.forks():
            self.assembly.type = self.assembly.edge = fork.edge(self.type, self.type)
            nodes.append(Element(self.type, (fork,)))

    def _chosen(self, ref: StepRef) -> tuple[str, ...]:
        found, error = chosen(ref, self.record, self.spec.transforms)
        if error is not None:
            self.findings.report(ref, error)
        return found

    def _run(self, acts: list[Act]) -> None:
        """Plans a run of steps for one feature after another, since no step looks at two; an aligned feature shares its image's draws."""
        aligned: list[Diagnostic] = []
        own: list[Diagnostic] = []
        for feature in in_order(self.type, self.guides.leading(acts, self.type)):
            known = len(self.findings.found)
            self._feature(feature, acts)
            (own if anchor(self.type, feature) == feature else aligned).extend(self.findings.found[known:])
        self.assembly.place()
        self.findings.drop_repeated(aligned, own)
        for ref, error in self.fills.apart(self.type):
            self.findings.report(ref, error, "fill")
        self.fills = Fills()

    def _feature(self, feature: str, acts: list[Act]) -> None:
        """Plans a run of steps for one feature."""
        image = anchor(self.type, feature)
        together = {name for name, _ in self.type.items() if anchor(self.type, name) == image}
        near = [(self.lanes.own(ref, image), feature in features) for ref, features in acts if together & set(features)]
        self.decoders.note(feature, image, acts, self.type)
        if kind_of(self.type[feature]).has(Geometry):
            for first, entered in self.images.stored(feature, self.type, self.decoders.like.get(feature)):
                self._emit(first, feature, entered)
        if not self.type[feature].encoded:
            self._emit_all(timeline.entered(self.type, feature))
        for number, (ref, acting) in enumerate(near, 1):
            if not acting:
                self._close()  # a step that ends a segment of the image also ends it for what is aligned with the image
            elif isinstance(ref.step, UnknownStep):
                self._skip(feature, self.unknowns.after_unknown(ref.step, feature, self.type[feature]))
            elif kind_of(self.type[feature]).ragged:
                self._move(self.decoders.of(ref, feature), feature)
            else:
                self._step(self.decoders.of(ref, feature), feature, next((later for later, own in near[number:] if own), None))
        self._close()

    def _skip(self, feature: str, y: FeatureType) -> None:  # after a step that cannot be planned
        self._close()
        self.assembly.retype(feature, y)

    def _inferred(self, ref: StepRef, feature: str, x: FeatureType) -> FeatureType | None:
        """Infers the type that leaves a step, if known, and reports errors and lints."""
        if feature in self.findings.poisoned | self.unknowns.lost:
            return None
        try:
            y = type_after(ref, x)
        except OpError as error:
            if not self.unknowns.explain(error, feature, x):
                sizes_differ = error.code == "PG226" and ref.step.only_sizes
                self.findings.report(decided_by(ref)[-1] if sizes_differ else ref, error)
            self._skip(feature, self.unknowns.after_error(ref.step, feature, x))
            return None
        if feature in self.unknowns.all():
            self._skip(feature, y)
            return None
        for lint in ref.step.lints(x) if not kind_of(x).has(Indices) else ():
            self.findings.report(ref, lint)
        return y

    def _move(self, ref: StepRef, feature: str) -> None:
        """Plans a step on items, which move with their image."""
        self._choose_window(ref, feature)
        try:
            run = self.images.moved(self.segment, ref, feature, self.type)
        except OpError as error:
            self.findings.report(ref, error, feature)
            return
        if run is not self.segment:
            self._close()
            self.segment = run
        odd = self.images.repeats_objects(ref, feature)
        if odd is not None:
            self.findings.report(ref, odd)

    def _choose_window(self, ref: StepRef, feature: str) -> None:
        """Adds the stage that chooses a crop's window, if this feature guides it."""
        if self.guides.claim(ref, feature, self.type):
            self._close()
            x = self.type[feature]
            canvas = self.images.canvas(feature) if kind_of(x).ragged else (x.height, x.width)
            self._emit(ChooseWindow(feature, ref.of(ItemCrop), canvas, x.kind, x.ignore, x.beside), feature, x)

    def _step(self, written: StepRef, feature: str, following: StepRef | None) -> None:
        sizing = self.segment if isinstance(self.segment, Sizing) and self.segment.takes(written, feature) else None
        x = self.type[feature].with_(shape=sizing.entry.shape) if sizing is not None else self.type[feature]
        ref = replace(written, step=written.step.on(x))
        y = self._inferred(ref, feature, x)
        if y is None:
            return
        self._choose_window(ref, feature)
        if isinstance(ref.step, ItemCrop) and not self.guides.decided(ref):
            self.findings.report(ref, nothing_chooses(ref, feature))
        self.fills.note(ref, feature, x)
        traits = ref.step.traits(x)
        composes = self.combined is not None and traits.family is Family.GEOMETRIC and x.shape == y.shape
        if ref.conditional and ref.step.only_sizes and not composes:
            self._sometimes(ref, feature, sizing, x, y)
        elif traits.family is Family.GEOMETRIC:
            self._geometric(ref, written.step, feature, x, y)
        elif isinstance(ref.step, TimeTransform) and ref.step.composes():
            self._timed(ref.of(TimeTransform), feature, x, y)
        elif traits.family is Family.COLOUR:
            self._colour(ref.of(ColourTransform), feature, x, y)
        elif traits.family is Family.CONVOLUTION:
            self._convolve(ref, feature, y)
        else:
            self._alone(ref, feature, x, y, following)

    def _alone(self, ref: StepRef, feature: str, x: FeatureType, y: FeatureType, following: StepRef | None) -> None:
        """Adds a step that composes with no other."""
        traits, vectors = ref.step.traits(x), turns(x)
        self._close()
        if vectors and traits.resizes:
            self._emit(s.Turn(feature, (ref,)), feature, x)
        stage = self._single(ref, feature, x, y, following)
        if ref.step.changes_times():
            self._move_in_time((ref,), feature)
        if isinstance(stage, Decode) and stage.needed is not None and following is not None and following.step.traits(y).crops:
            self.assembly.hold(stage, y)
        else:
            self._emit(stage, feature, y)
        if traits.decodes and not y.encoded:
            self._emit_all(timeline.entered(self.type, feature, ref.step))
        if vectors and traits.displaces:
            self._emit(s.Turn(feature, (ref,), displaced=True), feature, y)
        elif vectors and ref.step.moves and not (traits.crops or traits.resizes):
            message = f"`{ref.step.op}` has no rule for the vectors of `{feature}`"
            self.findings.report(ref, OpError("PG203", message, help=f"leave `{feature}` or the step out"), feature)

    def _single(self, ref: StepRef, feature: str, x: FeatureType, y: FeatureType, following: StepRef | None) -> Stage:
        step, traits = ref.step, ref.step.traits(x)
        if isinstance(step, StagedTransform):
            return step.stage(feature, ref, x)
        if isinstance(step, PointwiseTransform):
            return s.Pointwise(feature, step.arithmetic(x), (ref.of(PointwiseTransform),))
        if traits.decodes:
            return self.decoders.stage(ref, feature, x, y, following)
        return s.Crop(feature, ref.of(CropTransform)) if traits.crops else s.Apply(feature, ref.of(ElementTransform))

    def _emit(self, stage: Stage, feature: str, y: FeatureType) -> None:
        """Adds a stage, unless it takes single examples and an earlier step has combined them."""
        if self.combined is not None and stage.one_example:
            self.assembly.retype(feature, y)
            ref = stage.uses()[-1]
            self.findings.report(ref, late(self.combined, ref), "combining", ordinary=self.combined.step.when is None)
        else:
            self.assembly.emit(stage, feature, y)

    def _emit_all(self, stages: timeline.Emitted) -> None:
        for stage, feature, y in stages:
            self._emit(stage, feature, y)

    def _move_in_time(self, refs: Sequence[StepRef], sound: str) -> None:
        """Moves what happens in a sound, before steps do that to the sound."""
        try:
            self._emit_all(timeline.moved(refs, self.type, sound))
        except OpError as error:
            self.findings.report(refs[-1], error, timeline.happening_in(self.type, sound)[0])

    def _sometimes(self, ref: StepRef, feature: str, sizing: Sizing | None, x: FeatureType, y: FeatureType) -> None:
        """Adds a crop or resize that acts on some examples only."""
        if sizing is None:
            self._close()
            self.segment = sizing = Sizing(feature, x, ref)
        sizing.add(ref, y)
        self.assembly.retype(feature, y)

    def _geometric(self, ref: StepRef, step: Transform, feature: str, x: FeatureType, y: FeatureType) -> None:
        """Adds a step to a geometric segment.

        `step` as it is written divides segments, so that they are equal for all aligned features; `ref` has the form for this one.
        """
        mode, alone = reading(step)
        last = self.segment if isinstance(self.segment, Geometric) and self.segment.feature == feature else None
        segment = last if last is not None and not alone and last.accepts(mode) else None
        opens = segment is None
        if segment is None:
            self._close()
            if isinstance(step, CropTransform) and self.combined is None and (last is None or not alone):
                self._emit(s.Crop(feature, ref.of(CropTransform)), feature, y)
                return
            before = last if last is not None and not (alone or last.closed or mode is None) else None
            segment = Geometric(feature, x, mode or ("reflect", "bilinear"), before, alone=alone)
        if segment.resamples_again(step, x):
            self.findings.report(ref, another_fill(ref, segment.behind))
        self.assembly.pend(segment.compose(ref, step, x, y, opens=opens), segment.entry, y)
        self.segment = segment

    def _timed(self, ref: StepRef[TimeTransform], feature: str, x: FeatureType, y: FeatureType) -> None:
        """Adds a step to a segment of time."""
        segment = self.segment if isinstance(self.segment, Timing) and self.segment.feature == feature else None
        if segment is None or segment.closed:
            self._close()
            self.segment = segment = Timing(feature, x)
        segment.add(ref, y)
        self.assembly.retype(feature, y)

    def _colour(self, ref: StepRef[ColourTransform], feature: str, x: FeatureType, y: FeatureType) -> None:
        segment = self.segment if isinstance(self.segment, Colour) and self.segment.feature == feature else None
        opens = segment is None
        if segment is None:
            self._close()
            self.segment = segment = Colour(feature, x)
        assert x.channels is not None  # noqa: S101 - every colour step's `infer` has checked it
        self.assembly.pend(segment.compose(ref, x.channels, opens=opens), segment.entry, y)

    def _convolve(self, ref: StepRef, feature: str, y: FeatureType) -> None:
        """Adds a step to a run of convolutions."""
        last = self.segment if isinstance(self.segment, Convolved) and self.segment.feature == feature else None
        segment = last if last is not None and last.accepts(ref) else None
        if segment is None:
            self._close()
            self.segment = segment = Convolved(feature)
        segment.add(ref)
        self.assembly.retype(feature, y)

    def _close(self) -> None:
        """Ends the open segment, if any."""
        segment, self.segment = self.segment, None
        if segment is not None:
            stage, feature, y = segment.stage(), segment.feature, self.type[segment.feature]
            if isinstance(segment, Timing):
                self._move_in_time(segment.refs, feature)
            if turns(y) and isinstance(stage, s.Resample):
                self.assembly.turn(feature, projective=stage.projective)
            elif turns(y) and isinstance(segment, Sizing):
                self._emit(s.Turn(feature, stage.uses()), feature, segment.entry)
            self._emit(stage, feature, y)

    def _pad(self) -> None:
        """Pads features of unknown length, unless their examples are stacked already."""
        if self.type.batch is None:
            for stage, types in padded(self.spec, self.record, self.type, self.lanes.home, self.findings):
                self.assembly.emit_all(stage, types)

    def _finish(self) -> None:
        self._pad()
        for limit in limits(self.type):
            self.assembly.emit_all(limit, resized(limit, self.type, limit.most))
        for stage, types in renumbered(self.type):
            self.assembly.emit_all(stage, types)
        findings, output = self.findings, infer_output(self.spec, self.split, self.type, self.findings, self.mixed)
        if output.failed:
            findings.poisoned.add("output")
            return
        for feature, stage, y in output.stages:
            self._emit(stage, feature, y)
        idle = next((t for f, t in self.type.items() if kind_of(t).values is not None and not t.is_static), None)
        if idle is not None:  # it is batched, though it is not part of the output
            findings.found.append(unbatchable(self.spec, self.split, idle, findings.locate))
            findings.poisoned.add("output")
            return
        self.assembly.stack(self.spec.batch, self.split)
        nodes = self.assembly.nodes
        nodes += shortened(self.assembly.edge)
        nodes.append(Emit(nodes[-1].out, output.output))

    def _mix(self, ref: StepRef, features: tuple[str, ...], later: tuple[StepRef, ...]) -> None:
        """Plans a step that combines examples: labels are encoded first; everything after it works on batches."""
        self._pad()
        taken = {f: y for f in features if (y := self._inferred(ref, f, self.type[f])) is not None}
        plan = plan_combining(self.spec, self.split, ref.of(CombiningTransform), self.type, taken, later, self.findings.locate)
        for error in plan.errors:
            if self.combined is None or error.code != "PG223":  # the first step has reported the label
                self.findings.report(ref, error)
        self.findings.found.extend(plan.findings)
        self.findings.poisoned |= plan.poisoned
        self.combined = self.combined or ref
        self.mixed |= {*taken}
        for feature, stage, y in plan.encodings:
            self._emit(stage, feature, y)
        self.assembly.stack(self.spec.batch, self.split)
        for stage in plan.before:
            self.assembly.emit_all(stage, {})
        for feature, stage, y in plan.stages:
            self._emit(stage, feature, y)
        for joins in plan.items:
            room = self.type[joins.feature].shape[0]
            self.assembly.emit_all(joins, resized(joins, self.type, None if room is None else room * joins.sources))
        for feature, stage, y in plan.last:
            self._emit(stage, feature, y)
        for joins in plan.items:
            for stage, types in joined(self.type, joins.feature, joins.sources):
                self.assembly.emit_all(stage, types)
        self.assembly.place()
