"""The builder that turns a spec into a typed plan for one split; it infers all types and finds all type errors.

The plan is the plainest one that means what the spec says: one node a step, one example at a time, in the order written.
The passes make it fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import OpError
from pipegen.ops.base import ColourTransform, CropTransform, ElementTransform, GeometricTransform, PointwiseTransform
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.combining import anchor as anchor_of
from pipegen.ops.families.crops import ChooseWindow, ItemCrop, window_name
from pipegen.ops.families.decoder import Decode, DecodeTransform
from pipegen.ops.families.policies import require_same_shape
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import Stage, StagedTransform, StepRef
from pipegen.ops.traits import Family
from pipegen.ops.transform import Transform
from pipegen.plan import followers
from pipegen.plan import stages as s
from pipegen.plan.combining_plan import late, plan_combining
from pipegen.plan.followers import Fills, another_fill, marked
from pipegen.plan.items import Images, Items, joined, limits, nothing_chooses, renumbered, resized, shortened, wrong_buckets
from pipegen.plan.lanes import Act, Lanes
from pipegen.plan.nodes import Element, Emit, Index, Plan, Read, Shard, Shuffle
from pipegen.plan.outputs import infer_output, unbatchable
from pipegen.plan.recipe import Assembly, Colour, Geometric, Unknowns, reading
from pipegen.spec.locate import Locate
from pipegen.spec.mismatch import UnknownStep
from pipegen.spec.models import PipelineSpec, WindowShuffle
from pipegen.types import ElementType, FeatureType


class Builder(Assembly):
    """Builder of the plan of one split.

    Findings are collected. After an error, findings about the values of that feature are suppressed, and all findings about
    it if the error leaves its shape unknown.
    """

    def __init__(self, spec: PipelineSpec, split: str, locate: Locate, source_type: ElementType, record: ElementType | None = None) -> None:
        self.split = split
        self.locate = locate
        super().__init__(source_type.padded())
        self.record = self.type
        """Type of a record."""
        self.lanes = Lanes(spec, split, self.record)
        self.spec = self.lanes.spec
        self.followed = followers.followed(record or source_type)
        """Images that another feature is aligned with, even if this plan drops that feature."""
        self.findings = wrong_buckets(source_type, locate)
        self.ordinary: set[Diagnostic] = set()
        """Findings about random steps; these need not name the split, as they run on the training split anyway."""
        self.poisoned = {"buckets"} if self.findings else set()
        self.unknowns = Unknowns()
        self.segment: Geometric | Colour | Items | None = None
        self.images = Images()
        self.windows: set[str] = set()
        """Names of the crop windows chosen so far."""
        self.like: dict[str, tuple[str, StepRef[DecodeTransform]]] = {}
        """The image of each feature that is aligned with one, and the use of a step that decodes it."""
        self.fills = Fills()
        self.combined: StepRef | None = None
        """The first step that combines examples; everything after it works on batches."""

    def build(self, *, whole: bool = True, guessed: bool = False) -> Plan | None:
        """Builds the plan; `None` if there are errors.

        Args:
            whole: Whether the spec has all of its steps; if not, what leaves the last one is not checked.
            guessed: Whether the source is a guess, so that the values of images are unknown from the start.
        """
        self._start()
        self.unknowns.values |= {f for f, t in self.type.items() if guessed and kind_of(t).pictured}
        for run, combining in self.lanes.runs(self._features):
            for acts in self._led(run):
                self._apart(acts)
            if combining is not None:
                (ref, features), later = combining
                self._combining(ref, features, later)
        self.poisoned |= self.unknowns.all()
        if not whole:
            self.poisoned.update(f for f, t in self.type.items() if kind_of(t).pictured)
        self._finish()
        return None if self.poisoned else Plan(self.split, marked(self.nodes))

    def _start(self) -> None:
        spec, draws = self.spec, self.lanes.draws
        indexed = self.type.without(*(f for f, t in self.type.items() if not kind_of(t).indexed))
        sampled = self.split == "train" and spec.samples
        self.nodes.append(Index(indexed, self.split, "stored", None, False, draws, sampled=sampled))
        self.nodes.append(Read(self.type))
        if self.split == "train" and spec.shuffle != "none":
            window = spec.shuffle.window if isinstance(spec.shuffle, WindowShuffle) else None
            self.nodes.append(Shuffle(self.type, "window" if window else "global", window))
        if spec.runtime.shard != "none":
            self.nodes.append(Shard(self.type))
        for fork in self.lanes.forks():
            self.type = fork.edge(self.type, self.type)
            self.nodes.append(Element(self.type, (fork,)))
        self.edge = self.type

    def _led(self, acts: list[Act]) -> Iterator[list[Act]]:
        """Splits a run so that one feature guides all crops of an image; plans that feature first."""
        part: list[Act] = []
        leading: dict[str, str | None] = {}
        for ref, features in acts:
            own = self._leaders(ref, features)
            if any(leading.get(image, feature) != feature for image, feature in own.items()):
                yield part
                part, leading = [], {}
            part.append((ref, features))
            leading |= own
        yield part

    def _leaders(self, ref: StepRef, features: tuple[str, ...]) -> dict[str, str | None]:
        """Maps each image that a crop cuts to the feature that guides it, if any."""
        if not isinstance(ref.step, ItemCrop):
            return {}
        images = dict.fromkeys(anchor_of(self.type, feature) for feature in features)
        return {image: followers.leader(ref.step, self.type, image, self.lanes.home) for image in images}

    def _apart(self, acts: list[Act]) -> None:
        """Plans a run of steps for one feature after another, since no step looks at two; an aligned feature shares its image's draws."""
        found: dict[str, list[Diagnostic]] = {}
        leading = {name for ref, features in acts for name in self._leaders(ref, features).values() if name is not None}
        for feature in followers.in_order(self.type, leading):
            anchor = anchor_of(self.type, feature)
            together = {name for name, _ in self.type.items() if anchor_of(self.type, name) == anchor}
            near = [(self.lanes.own(ref, anchor), feature in features) for ref, features in acts if together & set(features)]
            mine = [ref for ref, own in near if own]
            decoding = (ref for ref, features in acts if isinstance(ref.step, DecodeTransform) and anchor in features)
            decodes = next((self._decoding(ref, anchor) for ref in decoding), None)
            if feature != anchor and decodes is not None and self.type[anchor].encoded:
                self.like[feature] = (anchor, replace(decodes, step=decodes.step.on(self.type[anchor])).of(DecodeTransform))
            known = len(self.findings)
            if kind_of(self.type[feature]).ragged and kind_of(self.type[feature]).needs_image:
                for first, entered in self.images.stored(feature, self.type, self.like.get(feature)):
                    self._emit(first, feature, entered)
            done = 0
            for ref, acting in near:
                if not acting:
                    self._close()  # a step that ends a segment of the image also ends it for what is aligned with the image
                    continue
                done += 1
                if isinstance(ref.step, UnknownStep):
                    self._close()
                    self.type = self.type.replace(**{feature: self.unknowns.after_unknown(ref.step, feature, self.type[feature])})
                else:
                    self._step(self._decoding(ref, feature), feature, mine[done] if done < len(mine) else None)
            self._close()
            found[feature] = self.findings[known:]
        self._place()
        # An error that a step has on an image and on an aligned feature is reported once.
        own = {name: anchor_of(self.type, name) == name for name in found}
        said = {(d.code, d.labels) for name, ds in found.items() if own[name] for d in ds}
        again = {id(d) for name, ds in found.items() if not own[name] for d in ds if (d.code, d.labels) in said}
        self.findings = [d for d in self.findings if id(d) not in again]
        for ref, error in self.fills.apart(self.type):
            self._report(ref, error)
            self.poisoned.add("fill")
        self.fills = Fills()

    def _decoding(self, ref: StepRef, feature: str) -> StepRef:
        """A use of `decode` with the feature's own decoder, if it has one."""
        own = self.spec.source.decoders().get(self.lanes.home(feature)) if isinstance(ref.step, DecodeTransform) else None
        return replace(ref, step=own) if own is not None else ref

    def _features(self, ref: StepRef) -> tuple[str, ...]:
        found, error = followers.chosen(ref, self.record, self.spec.transforms)
        if error is not None:
            self._report(ref, error)
        return found

    def _report(self, ref: StepRef, error: OpError) -> None:
        field = "feature" if error.code == "PG203" and ref.step.feature is not None else error.field
        label = self.locate((*ref.path, field) if field else ref.path, key=field is None)
        finding = make(error.code, error.message, label, help=error.help or ())
        self.findings.append(finding)
        if ref.step.random and ref.step.when is None:
            self.ordinary.add(finding)

    def _inferred(self, ref: StepRef, feature: str) -> FeatureType | None:
        """Infers the type that leaves a step, if known, and reports errors and lints."""
        x = self.type[feature]
        if feature in self.poisoned | self.unknowns.lost:
            return None
        try:
            y = ref.step.infer(x)
            if ref.choice is not None:
                require_same_shape(ref.step, x, y)
        except OpError as error:
            if not self.unknowns.explain(error, feature, x):
                self._report(ref, error)
            self._close()
            self.type = self.type.replace(**{feature: self.unknowns.after_error(ref.step, feature, x)})
            return None
        if feature in self.unknowns.all():
            self._close()
            self.type = self.type.replace(**{feature: y})
            return None
        for lint in ref.step.lints(x) if not kind_of(x).categorical else ():
            self._report(ref, lint)
        return y

    def _move(self, ref: StepRef, feature: str) -> None:
        """Plans a step on items, which move with their image."""
        self._choose(ref, feature)
        try:
            run = self.images.moved(self.segment, ref, feature, self.type)
        except OpError as error:
            self._report(ref, error)
            self.poisoned.add(feature)
            return
        if run is not self.segment:
            self._close()
            self.segment = run
        odd = self.images.repeats_objects(ref, feature)
        if odd is not None:
            self._report(ref, odd)

    def _choose(self, ref: StepRef, feature: str) -> None:
        """Adds the stage that chooses a crop's window, if this feature guides it."""
        if window_name(ref) in self.windows or feature not in self._leaders(ref, (feature,)).values():
            return
        self._close()
        self.windows.add(window_name(ref))
        x = self.type[feature]
        canvas = self.images.canvas(feature) if kind_of(x).ragged else (x.height, x.width)
        self._emit(ChooseWindow(feature, ref.of(ItemCrop), canvas, x.kind, x.ignore, x.beside), feature, x)

    def _step(self, written: StepRef, feature: str, following: StepRef | None) -> None:
        x = self.type[feature]
        if kind_of(x).ragged:
            self._move(written, feature)
            return
        ref = replace(written, step=written.step.on(x))
        y = self._inferred(ref, feature)
        if y is None:
            return
        self._choose(ref, feature)
        if isinstance(ref.step, ItemCrop) and window_name(ref) not in self.windows:
            self._report(ref, nothing_chooses(ref, feature))
        self.fills.note(ref, feature, x)
        traits = ref.step.traits(x)
        if traits.family is Family.GEOMETRIC:
            self._geometric(ref, written.step, feature, x, y)
        elif traits.family is Family.COLOUR:
            self._colour(ref, feature, x, y)
        else:
            self._close()
            stage = self._single(ref, feature, x, y, following)
            if isinstance(stage, Decode) and stage.needed is not None and following is not None and following.step.traits(y).crops:
                self._hold(stage, y)
            else:
                self._emit(stage, feature, y)

    def _single(self, ref: StepRef, feature: str, x: FeatureType, y: FeatureType, following: StepRef | None) -> Stage:
        step = ref.step
        traits = step.traits(x)
        if isinstance(step, StagedTransform):
            return step.stage(feature, ref, x)
        if isinstance(step, PointwiseTransform):
            return s.Pointwise(feature, step.arithmetic(x), (ref.of(PointwiseTransform),))
        if traits.decodes:
            needed = self._needed(feature, y, following) if traits.decodes_scaled else None
            return Decode(feature, ref.of(DecodeTransform), needed, self.like.get(feature))
        return s.Crop(feature, ref.of(CropTransform)) if traits.crops else s.Apply(feature, ref.of(ElementTransform))

    def _needed(self, feature: str, y: FeatureType, following: StepRef | None) -> tuple[int, int] | None:
        """The size to which a file may be scaled while it is decoded.

        With aligned features that is safe only if the next step crops or stretches: else its frame follows from the size
        before and would differ by a pixel.
        """
        needed = None if following is None or feature in self.like else following.step.needed_size()
        if following is None or needed is None:
            return None
        traits = following.step.traits(y)
        if not self.lanes.scales(following, feature, crops=traits.crops):
            return None
        return needed if self.lanes.home(feature) not in self.followed or traits.crops or traits.stretches else None

    def _emit(self, stage: Stage, feature: str, y: FeatureType) -> None:
        """Adds a stage, unless it takes single examples and an earlier step has combined them."""
        if self.combined is not None and stage.one_example:
            self.type = self.type.replace(**{feature: y})
            self._report(stage.uses()[-1], late(self.combined, stage.uses()[-1]))
            if self.combined.step.when is None:
                self.ordinary.add(self.findings[-1])
            self.poisoned.add("combining")
            return
        super()._emit(stage, feature, y)

    def _geometric(self, ref: StepRef, step: Transform, feature: str, x: FeatureType, y: FeatureType) -> None:
        """Adds a step to a geometric segment.

        `step` as it is written divides segments, so that they are equal for all aligned features; `ref` has the form for this one.
        """
        mode, alone = reading(step)
        last = self.segment if isinstance(self.segment, Geometric) and self.segment.feature == feature else None
        before = last if not alone else None
        segment = before if before is not None and before.accepts(mode) else None
        opens = segment is None
        if segment is None:
            self._close()
            if isinstance(step, CropTransform) and self.combined is None and (last is None or not alone):
                self._emit(s.Crop(feature, ref.of(CropTransform)), feature, y)
                return
            segment = Geometric(feature, x, mode or ("reflect", "bilinear"), alone)
            if before is not None and not before.closed and mode is not None:
                segment.behind = before.behind if before.copies else before.mode
        segment.reads = reading(ref.step)[0] or segment.reads
        if not step.traits(x).moves_pixels_only:
            if segment.copies and segment.behind not in (None, segment.mode):
                self._report(ref, another_fill(ref, segment.behind))
            segment.copies = False
        of_segment = ref.of(CropTransform) if isinstance(ref.step, CropTransform) else ref.of(GeometricTransform)
        self._pend(s.Compose(feature, of_segment, (x.height, x.width), opens), segment.entry, y)
        segment.out = y
        segment.projective |= step.traits(x).projective
        segment.closed = alone or isinstance(step, CropTransform) or x.shape != y.shape
        self.segment = segment

    def _colour(self, ref: StepRef, feature: str, x: FeatureType, y: FeatureType) -> None:
        segment = self.segment if isinstance(self.segment, Colour) and self.segment.feature == feature else None
        opens = segment is None
        if segment is None:
            self._close()
            segment = Colour(feature, x)
        assert x.channels is not None  # noqa: S101 - every colour op's infer has checked it
        own = ref.of(ColourTransform)
        self._pend(s.ComposeColour(feature, own, x.channels, opens), segment.entry, y)
        segment.out = y
        segment.uses_mean = segment.uses_mean or own.step.uses_mean()
        self.segment = segment

    def _close(self) -> None:
        seg, self.segment = self.segment, None
        if isinstance(seg, Geometric):
            assert seg.out is not None  # noqa: S101
            resample = s.Resample(seg.feature, *seg.reads, (seg.out.height, seg.out.width), seg.projective)
            self.waiting.append((resample, {seg.feature: seg.out}))
        elif isinstance(seg, Items):
            self._emit(seg.stage(), seg.feature, self.type[seg.feature])
        elif isinstance(seg, Colour):
            assert seg.out is not None  # noqa: S101
            self.waiting.append((s.ApplyColour(seg.feature, seg.entry.interval, seg.uses_mean), {seg.feature: seg.out}))

    def _finish(self) -> None:
        for limit in limits(self.type):
            self._emit_all(limit, resized(limit, self.type, limit.most))
        for stage, types in renumbered(self.type):
            self._emit_all(stage, types)
        output = infer_output(self.spec, self.split, self.type, self.locate, self.poisoned)
        self.findings.extend(output.findings)
        if output.failed:
            self.poisoned.add("output")
            return
        for feature, stage, y in output.stages:
            self._emit(stage, feature, y)
        idle = next((t for f, t in self.type.items() if kind_of(t).pictured and not t.is_static), None)
        if idle is not None:  # it is batched, though it is not part of the output
            self.findings.append(unbatchable(self.spec, self.split, idle, self.locate))
            self.poisoned.add("output")
            return
        self._place()
        self._stack(self.spec.batch, self.split)
        self.nodes += shortened(self.edge)
        self.nodes.append(Emit(self.nodes[-1].out, output.output))

    def _combining(self, ref: StepRef, features: tuple[str, ...], later: tuple[StepRef, ...]) -> None:
        """Plans a step that combines examples: labels are encoded first; everything after it works on batches."""
        taken = {f: y for f in features if (y := self._inferred(ref, f)) is not None}
        plan = plan_combining(self.spec, self.split, ref.of(CombiningTransform), self.type, taken, later, self.locate)
        for error in plan.errors:
            if self.combined is None or error.code != "PG223":  # the first step has reported the label
                self._report(ref, error)
        self.findings.extend(plan.findings)
        self.poisoned |= plan.poisoned
        self.combined = self.combined or ref
        for feature, stage, y in plan.encodings:
            self._emit(stage, feature, y)
        self._place()
        self._stack(self.spec.batch, self.split)
        for stage in plan.before:
            self._emit_all(stage, {})
        for feature, stage, y in plan.stages:
            self._emit(stage, feature, y)
        for joins in plan.items:
            room = self.type[joins.feature].shape[0]
            self._emit_all(joins, resized(joins, self.type, None if room is None else room * joins.sources))
        for feature, stage, y in plan.last:
            self._emit(stage, feature, y)
        for joins in plan.items:
            for stage, types in joined(self.type, joins.feature, joins.sources):
                self._emit_all(stage, types)
        self._place()
