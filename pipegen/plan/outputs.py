"""Planning of `output`: checks of the features that the model receives, and the stages that produce them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.diagnostics.suggest import closest
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.families.combining import CombiningTransform, runs_on
from pipegen.ops.families.item_stages import Express, FrameLabels
from pipegen.ops.fields.notes import joined
from pipegen.ops.kinds.audio import sound_of
from pipegen.ops.kinds.base import (
    ExampleClass,
    Indices,
    ItemClass,
    Levels,
    Numbers,
    PixelClass,
    Timeline,
    TimestepClass,
    kind_of,
    several_labels,
)
from pipegen.ops.kinds.series import OnSteps
from pipegen.ops.stage import Stage
from pipegen.plan import stages as s
from pipegen.plan.assembly import Findings
from pipegen.plan.recipe import step_path
from pipegen.spec import lengths
from pipegen.spec.locate import Locate
from pipegen.spec.models import UNENCODED, Encoding, Output, PipelineSpec, names
from pipegen.spec.source_map import KeyPath
from pipegen.types import BYTE_RANGE, ElementType, FeatureType, Interval, length_name, times


@dataclass
class OutputPlan:
    """The stages that produce the output; its errors are added to the findings of the split."""

    output: Output
    findings: Findings
    combined: Collection[str] = frozenset()
    stages: list[tuple[str, Stage, FeatureType]] = field(default_factory=list)
    failed: bool = False

    def fail(self, code: str, message: str, at: KeyPath, help: str | tuple[str, ...], *, key: bool = False) -> None:
        """Adds an error at a place of the section."""
        self.add(make(code, message, self.findings.locate(("output", *at), key=key), help=help))

    def add(self, error: Diagnostic) -> None:
        self.findings.found.append(error)
        self.failed = True


def settled(spec: PipelineSpec, split: str | None = None) -> Output:
    """The output section, without the default `y` if the source has no labels, and with `x` alone if records of the `split` lack a target
    or a weight."""
    if split is not None and not spec.source.lacks(split).isdisjoint({*names(spec.output.y), spec.output.sample_weight}):
        return spec.output.model_copy(update={"y": None, "sample_weight": None, "encode": {}})
    if spec.source.has_labels() or "y" in spec.output.model_fields_set:
        return spec.output
    return spec.output.model_copy(update={"y": None})


def infer_output(
    spec: PipelineSpec, split: str, type_: ElementType, findings: Findings, combined: Collection[str] = frozenset()
) -> OutputPlan:
    """Plans the output of one split; features that had errors before are not checked. The `combined` ones have values of several examples,
    so that the length of one is not theirs."""
    out, poisoned = settled(spec, split), findings.poisoned
    plan = OutputPlan(out, findings, combined)
    wanted = {name: key for key in ("x", "y") for name in names(getattr(out, key))}
    if out.sample_weight is not None:
        wanted[out.sample_weight] = "sample_weight"
    for name, key in wanted.items():
        if name in poisoned:
            plan.failed = True
        elif (of := lengths.padded_by(name, type_)) is not None:
            plan.failed = True
            if of not in poisoned:
                pad = write(f"batch: {{pad: {{{of}: {{to: {type_[of].shape[0] or 'longest'}}}}}}}", "spec")
                plan.fail("PG263", f"`{name}` is made by padding `{of}`, and `batch` has no `pad` for it", (key,), pad)
        elif name not in type_:
            help_ = meant_feature(name, type_)
            if name == "label" and not spec.source.has_labels() and "labels" not in type_:  # which boxes have
                help_ = "leave `y` out: the source has no labels (`labels: none`)"
            plan.fail("PG217", f"unknown feature `{name}`", (key,), help_)
        elif key == "x" and name in spec.source.lacks(split):
            help_ = f"leave `{name}` out of `x`; to predict without it, write a second spec"
            plan.fail("PG217", f"`{name}` has no values in the split `{split}`, so it cannot be an input", (key,), help_)
        else:
            _feature(plan, name, type_, split, spec)
    if out.sample_weight is not None and out.sample_weight not in poisoned and out.sample_weight in type_:
        _weight(plan, out.sample_weight, type_[out.sample_weight])
    plan.findings.found += _unfilled([name for name in wanted if name not in poisoned and name in type_], type_, spec, findings.locate)
    for name in out.encode:
        if name not in wanted or (name in type_ and not _can_be_encoded(name, type_)):
            near = closest(name, [f for f in wanted if f in type_ and _can_be_encoded(f, type_)])
            help_ = f"did you mean `{near}`?" if near else "only labels, masks and events of the output are encoded"
            plan.fail("PG218", f"`{name}` is not a label of the output, so it cannot be encoded", ("encode", name), help_, key=True)
    return plan


def happening(name: str, type_: ElementType) -> str | None:
    """The feature of what happens in a sound that is `name`, or that it describes each item of, if any."""
    home = type_[name].beside or name
    fits = home in type_ and (name == home or kind_of(type_[name]).has(ItemClass))
    return home if fits and kind_of(type_[home]).has(Timeline) else None


def _can_be_encoded(name: str, type_: ElementType) -> bool:
    return kind_of(type_[name]).has(ExampleClass, PixelClass) or happening(name, type_) is not None


def _frames(plan: OutputPlan, name: str, type_: ElementType) -> None:
    """Encodes what happens in a sound by its frames, or leaves it as it is."""
    x, home = type_[name], happening(name, type_) or name
    encoding, at, sound = plan.output.encode[name], ("encode", name), type_[home].of or ""
    if encoding == UNENCODED:
        return
    if encoding != "frames":
        help_ = write("frames", "value", "use {}, or leave it out")
        plan.fail("PG218", f"`{name}` has any number of items, which `{encoding}` cannot encode", at, help_)
        return
    if sound not in type_:
        plan.fail("PG218", f"`{name}` cannot be encoded without its sound `{sound}`", at, "leave `frames` out")
        return
    own = sound_of(type_[sound])
    steps = type_[sound].shape[0]
    y = FeatureType("tensor", "float32", (steps,) if name == home else (steps, x.classes), Interval(0.0, 1.0), uniform=True)
    padded = sound not in plan.combined and length_name(sound) in type_ and type_[length_name(sound)].kind == "length"
    stage = FrameLabels(name, home, sound, own.rate, own.hop or 1.0, None if name == home else x.classes or 0, padded)
    # Those of the classes read the events, which are therefore replaced last.
    plan.stages.insert(len(plan.stages) if name == home else 0, (name, stage, y))


def _unfilled(wanted: Sequence[str], type_: ElementType, spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Warns of missing values that reach the output, if it has no feature that says which values were observed."""
    if any(isinstance(x.details, OnSteps) and x.details.tells == "observed" for x in map(type_.__getitem__, wanted)):
        return
    for name in wanted:
        if lacking := type_[name].missing:
            path = ("source", spec.source.op, *spec.source.described().get(name, ()))
            message = f"{joined([f'`{column}`' for column in lacking])} {'lacks' if len(lacking) == 1 else 'lack'} values, which reach "
            message += f"the output as NaN in `{name}`"
            narrow = "" if type_[name].of is None else f": {{feature: {name}}}"
            fill = write(f"- fill_missing{narrow}", "transforms", "fill them within their window: {}")
            mask = "or add a feature of the same columns with `observed: true`, and to `output`, for a model that masks them"
            yield make("PG495", message, locate(path, key=True), help=(fill, mask) if len(path) > 2 else fill)


def _weight(plan: OutputPlan, name: str, x: FeatureType) -> None:
    if plan.output.y is None:
        message = f"`sample_weight: {name}` weights the loss on targets, but the output has no `y`"
        plan.fail("PG203", message, ("sample_weight",), write("y: image", "entry", "for an autoencoder write {}"))
        return
    kind = kind_of(x)
    if kind.has(Numbers) and not x.shape:
        return
    what = f"{'×'.join(map(str, x.shape))} numbers" if kind.has(Numbers) else kind.meaning.holds
    message = f"`sample_weight` needs one number for each example, its weight in the loss, but `{name}` holds {what}"
    plan.fail("PG203", message, ("sample_weight",), "leave `sample_weight` out; to weigh classes, pass `class_weight=` to `fit`")


def _feature(plan: OutputPlan, name: str, type_: ElementType, split: str, spec: PipelineSpec) -> None:
    x, kind = type_[name], kind_of(type_[name])
    if kind.has(ExampleClass):
        _label(plan, name, x)
    elif name in plan.output.encode and happening(name, type_) is not None:
        _frames(plan, name, type_)
    elif kind.ragged:
        home = type_.get(x.of) if x.of is not None else None
        formats = kind.geometry.formats if kind.geometry is not None else ()
        wanted = plan.output.events if kind.has(Timeline) else plan.output.boxes
        canvas = (home.height, home.width) if home is not None and home.height and home.width else None
        if formats and wanted != formats[0] and (canvas is not None or kind.has(Timeline)):
            y = x.with_(form=wanted)
            plan.stages.append((name, Express(name, x.kind, y.form, canvas), y))
    elif kind.values is not None and not x.is_static:
        plan.add(unbatchable(spec, split, x, plan.findings.locate))
    elif kind.has(TimestepClass):
        _classes(plan, name, x, "time step")
    elif kind.has(Indices):
        _channels_first(plan, name, _classes(plan, name, x, "pixel"))
    elif kind.pixels is not None:
        _picture(plan, name, x)
    elif kind.samples is not None and plan.output.dtype not in (x.dtype, "uint8"):
        arithmetic = Arithmetic((1.0,), (0.0,), plan.output.dtype)
        plan.stages.append((name, s.Pointwise(name, arithmetic, ()), arithmetic.infer(x)))


def _picture(plan: OutputPlan, name: str, x: FeatureType) -> None:
    """Converts an image to the dtype of the output; a dense map keeps its own where that is for bytes."""
    dtype = plan.output.dtype if kind_of(x).has(Levels) or plan.output.dtype != "uint8" else x.dtype
    shown = x.interval if x.interval is not None else "an unknown range"
    fits = x.dtype == "uint8" or (x.interval is not None and BYTE_RANGE.contains(x.interval) and x.interval.width > 1)
    if dtype == "uint8" and not fits:
        help_ = ("leave `rescale` and `normalize` out", write("float32", "value", "or use {}", shown="dtype: float32"))
        plan.fail("PG219", f"`dtype: uint8` needs pixel values in 0..255, and `{name}` has {shown}", ("dtype",), help_)
        return
    if x.dtype != dtype:
        arithmetic = Arithmetic((1.0,), (0.0,), dtype)
        x = arithmetic.infer(x)
        plan.stages.append((name, s.Pointwise(name, arithmetic, ()), x))
    _channels_first(plan, name, x)


def _channels_first(plan: OutputPlan, name: str, x: FeatureType) -> None:
    if plan.output.channels == "first":
        h, w, c = x.shape
        plan.stages.append((name, s.ChannelsFirst(name), x.with_(shape=(c, h, w))))


def _classes(plan: OutputPlan, name: str, x: FeatureType, each: str) -> FeatureType:
    """Encodes a mask or labels of time steps; by default they hold the class index of `each` pixel or time step. Returns the type after it,
    or after an error the same type."""
    encoding = encoding_of(plan.output, name, x) if kind_of(x).has(PixelClass) else UNENCODED
    problem: tuple[str, str] | None = None
    if encoding == "frames":
        problem = f"`frames` is for what happens in a sound, but `{name}` has one class for each {each}", "use `int` or `one_hot`"
    elif encoding == "multi_hot":
        problem = f"`multi_hot` is for several labels, but `{name}` has one class for each {each}", write("one_hot", "value", "use {}")
    elif encoding == "binary" and x.classes is None and each == "pixel":
        help_ = f"give `{name}` its `values`, such as `{{0: 0, 255: 1}}`"
        problem = f"`binary` needs two classes, but the number of classes of `{name}` is unknown", help_
    elif encoding == "binary" and (x.classes not in (2, None) or x.ignore > 1):
        has = f"`{name}` has {x.classes}" if x.classes != 2 else f"`ignore` of `{name}` is a third one"
        problem = f"`binary` needs two classes, but {has}", "use `int` or `one_hot`"
    elif encoding == "one_hot" and x.classes is None and each == "pixel":  # data does not tell
        help_ = f"give the feature `{name}` its `classes`, such as `classes: 2`"
        problem = f"`one_hot` needs the number of classes of `{name}`, which is unknown", help_
    if problem is not None:
        plan.fail("PG218", problem[0], ("encode", name), problem[1])
    elif encoding != UNENCODED:
        stage, encoded = encode(name, encoding, x)
        x = encoded.with_(shape=(*x.shape[: 2 if kind_of(x).has(Indices) else 1], *encoded.shape))
        plan.stages.append((name, stage, x))
    return x


def unbatchable(spec: PipelineSpec, split: str, x: FeatureType, locate: Locate) -> Diagnostic:
    """The error of images of several sizes that are to be stacked, with the likeliest fix."""
    message = f"images of split `{split}` have no fixed size ({times(x.shape)}), so they cannot be stacked into a batch"
    steps = list(enumerate(spec.transforms))
    half = [(*step_path(i, t), "shorter_side") for i, t in steps if runs_on(t, split) and getattr(t, "shorter_side", None) is not None]
    if half:
        said = "the other side still varies: add {} after it, or give `resize` a `size`"
        help_: str = write("- center_crop: {size: 224}", "after", said)
        return make("PG201", message, locate(half[-1], "fixes one side only"), help=help_)
    idle = [(*step_path(i, t), "when") for i, t in steps if not runs_on(t, split) and t.when and getattr(t, "size", None) is not None]
    if idle:
        labels = (locate(path, "this does not run there") for path in idle)
        help_ = "remove its `when`, or add a step that fixes the size on the other splits"
        return make("PG201", message, locate(("transforms",), key=True), *labels, help=help_)
    combined = next((t.op for _, t in steps if isinstance(t, CombiningTransform)), None)
    where = f" before `{combined}`" if combined is not None else ""
    help_ = write("- resize: {size: 224}", "transforms", f"add {{}}{where}, or another step that fixes the size")
    return make("PG201", message, locate(("transforms",), key=True), help=help_)


def meant_feature(name: str, known: Iterable[str]) -> str:
    """Help for the name of a feature that does not exist."""
    known = list(known)
    near = closest(name, known)
    if not known:
        return "the source has no features"
    return f"did you mean `{near}`?" if near else f"the features are {' and '.join(f'`{k}`' for k in known)}"


def _label(plan: OutputPlan, name: str, x: FeatureType) -> None:
    encoding, at = encoding_of(plan.output, name, x), ("encode", name)
    if several_labels(x) and encoding != "multi_hot":
        message = f"an example can have several labels in `{name}`, which `{encoding}` cannot hold"
        plan.fail("PG218", message, at, write("multi_hot", "value", "use {}, or leave it out"))
    elif encoding == "multi_hot" and not several_labels(x) and not is_encoded(x):
        help_ = write("one_hot", "value", "use {}; if a column holds several labels, give the feature the `separator` between them")
        plan.fail("PG218", f"`multi_hot` is for several labels, but `{name}` has one for each example", at, help_)
    elif encoding == "frames":
        help_ = write("one_hot", "value", "use {}; a label of events is `with` them")
        plan.fail("PG218", f"`frames` is for what happens in a sound, but `{name}` has one label for each example", at, help_)
    elif encoding == "binary" and x.classes is not None and x.classes != 2:
        indices = "use `one_hot`, or `int` for class indices (as Keras' `class_mode='binary'` gives for more than two classes)"
        plan.fail("PG218", f"`binary` needs two classes, but `{name}` has {x.classes}", at, indices)
    elif encoding != UNENCODED and not is_encoded(x):
        plan.stages.append((name, *encode(name, encoding, x)))


def encoding_of(output: Output, name: str, x: FeatureType) -> Encoding:
    """The encoding of a label, by default `multi_hot` for several labels."""
    return output.encode.get(name, "multi_hot" if several_labels(x) else UNENCODED)


def is_encoded(x: FeatureType) -> bool:
    """Tests if a label is encoded already, as it is before a step that combines examples."""
    return kind_of(x).has(ExampleClass) and x.dtype == "float32"


def encode(name: str, encoding: Encoding, x: FeatureType) -> tuple[s.EncodeLabel, FeatureType]:
    """The stage that encodes a label, and the type after it."""
    shape = (1,) if encoding == "binary" else (x.classes,)
    y = x.with_(dtype="float32", shape=shape, interval=Interval(0.0, 1.0))
    return s.EncodeLabel(name, encoding, x.classes), y
