"""Plans of the steps of an evaluation split, on some features of a record: for fitting steps, for prediction and for served models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import InternalError, SpecError
from pipegen.ops.families.combining import acted_on, anchor
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.kinds.base import Levels, Numbers, Samples, having, kind_of
from pipegen.ops.registry import default_decoder
from pipegen.plan.bucketed_plans import sound_plan
from pipegen.plan.lanes import first_view, viewed
from pipegen.plan.nodes import Plan
from pipegen.plan.recipe import python_steps, step_path
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, names, received
from pipegen.types import ElementType

_BATCH = 64  # images per batch of measurements
Takes = Literal["bytes", "images"]  # the form of images in a request: the bytes of files, or decoded


def learning_steps(spec: PipelineSpec) -> list[tuple[int, FittedTransform]]:
    """The steps that are fitted to the training split, with their indices."""
    return [(i, step) for i, step in enumerate(spec.transforms) if isinstance(step, FittedTransform) and step.learns()]


def check_fitting(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Finds steps that need a training split where there is none."""
    for index, step in learning_steps(spec) if "train" not in spec.split_names() else ():
        message = f"`{step.op}` is fitted to split `train`, which does not exist"
        yield make("PG230", message, locate(step_path(index, step), key=True), help=step.untrained)


def with_given(spec: PipelineSpec, earlier: PipelineSpec) -> PipelineSpec:
    """Copies fitted numbers and functions that were handed to steps of `earlier` into the same steps of a newly read spec."""
    steps = list(spec.transforms)
    for index, (step, called) in enumerate(zip(steps, earlier.transforms, strict=False)):
        if isinstance(called, CustomTransform) and called.has_been_handed and called.meaning() == step.meaning():
            steps[index] = called
    for (index, step), (before, known) in zip(learning_steps(spec), learning_steps(earlier), strict=False):
        if known.fitted is not None and known.fitted.given and (before, known.with_numbers(None)) == (index, step):
            steps[index] = known
    return spec.model_copy(update={"transforms": tuple(steps)})


def fitted_features(spec: PipelineSpec, step: FittedTransform, record: ElementType) -> tuple[str, ...]:
    """The features to fit a step to: those it acts on that the model receives, or that a received feature is aligned with."""
    acted = (step.feature,) if step.feature is not None else acted_on(step, record)
    wanted = {name for name in received(spec.output) if name in record} | {*(viewed(record) if spec.views != 1 else ())}
    wanted |= {anchor(record, name) for name in wanted}
    return tuple(name for name in acted if name in wanted)


def fitting_plan(spec: PipelineSpec, index: int, feature: str, locate: Locate, record: ElementType) -> tuple[PipelineSpec, Plan]:
    """Plans the measurement of images of `feature` for fitting step `index`: float64 `(n, ...)` as they reach the step.

    The steps before it are those of an evaluation split: `validation` if it exists, else the first other than `train`, else a hypothetical
    one. Fitted steps among them need their numbers already. Returns the spec of the measurement, and its plan. Raises `SpecError` if a step
    before does not fit the data."""
    step = spec.transforms[index]
    if not isinstance(step, FittedTransform):
        raise InternalError(f"`{step.op}` is not a fitted step")
    measures = step.measuring(feature)
    before = tuple(s for s in spec.transforms[:index] if feature in ((s.feature,) if s.feature else acted_on(s, record)))
    output: dict[str, Any] = {"x": feature, "y": None, "sample_weight": None, "encode": {}, "dtype": "float64", "channels": "last"}
    changes = {
        "transforms": (*before, measures),
        "output": spec.output.model_copy(update=output),
        "views": 1,
        "sampling": None,
        "order": None,
        "batch": spec.batch.model_copy(update={"size": _BATCH, "remainder": "keep", "pad": None}),
        "runtime": spec.runtime.model_copy(update={"shard": "none", "cache": "none", "prefetch": "auto"}),
        "shuffle": "none",
        "epoch": "pass",
    }
    measuring = spec.model_copy(update=changes)
    others = [s for s in spec.split_names() if s != "train"]
    split = "validation" if "validation" in others else next(iter(others), "evaluation")
    source = ElementType(tuple((name, t) for name, t in record.items() if name == feature))
    return measuring, sound_plan(measuring, split, locate, source, record)


def unlabelled_plan(spec: PipelineSpec, locate: Locate, record: ElementType | None = None) -> Plan:
    """Plans the evaluation steps for images or sounds alone, in source order: of the first split other than `train`, else of `predict`.

    `record` is the type of a record, if the data shows more of it than the spec. Raises `SpecError` if those steps do not end at a fixed
    size, or the model takes more than one image or sound.
    """
    record = record or spec.source.infer()
    spec, locate = first_view(spec, locate, record)
    wanted = names(spec.output.x)
    alone = (*(name for name in having(record, Levels) if record[name].of is None), *having(record, Samples))
    images = ElementType(tuple((name, record[name]) for name in alone if name in wanted)[:1])
    beside = [f"`{name}`" for name in wanted if name in record and name not in images]
    if beside:
        message = f"`predict_on` takes images or sounds alone, but the model also needs {' and '.join(beside)}"
        help_ = "make a split of the rows to predict, and pass that split to `model.predict`"
        raise SpecError([make("PG217", message, locate(("output", "x")), help=(help_,))])
    return evaluation_plan(spec, locate, images, record)


def evaluation_plan(spec: PipelineSpec, locate: Locate, features: ElementType, record: ElementType) -> Plan:
    """Plans the steps of the first split other than `train`, else of `predict`, in source order and without a target.

    `features` are those features of a record that the model takes. Raises `SpecError` if those steps do not end at a fixed size.
    """
    split = next((s for s in spec.split_names() if s != "train"), "predict")
    output = spec.output.model_copy(update={"y": None, "sample_weight": None, "encode": {}})
    batch = spec.batch.model_copy(update={"remainder": "keep"})
    runtime = spec.runtime.model_copy(update={"shard": "none", "cache": "none"})
    steps = tuple(step for step in spec.transforms if step.feature in (None, *features))
    changes = {"output": output, "batch": batch, "shuffle": "none", "runtime": runtime, "transforms": steps}
    return sound_plan(spec.model_copy(update=changes), split, locate, features, record)


def served_plan(spec: PipelineSpec, locate: Locate, record: ElementType, takes: Takes | None) -> Plan:
    """Plans the evaluation steps on the features that the model takes; `read` of the plan is the type of one example of a request.

    `record` is the type of a stored record. Without `takes`, some of the steps become a layer of the model; the others run before it, on
    files, and may call Python. Raises `SpecError`: `PG540` for a step that draws, `PG541` for a feature that a request or a layer cannot
    have, `PG542` for a step in Python, `PG545` for batches of buckets."""
    spec, locate = first_view(spec, locate, record)
    wanted = dict.fromkeys(names(spec.output.x))
    stored = ElementType(tuple((name, t) for name, t in record.items() if name in wanted))
    found = list(_unserved(stored, locate, takes))
    if found:
        raise SpecError(found)
    if takes == "images":
        brought = {}
        for name, t in ((name, t) for name, t in stored.items() if t.encoded):
            own = [step for step in spec.transforms if isinstance(step, DecodeTransform) and step.feature in (None, name)]
            decoder = (spec.source.decoders().get(name) or next(iter(own), default_decoder())).on(t)
            brought[name] = decoder.infer(t)
        steps = tuple(step for step in spec.transforms if not isinstance(step, DecodeTransform))
        spec, stored, record = spec.model_copy(update={"transforms": steps}), stored.replace(**brought), record.replace(**brought)
    plan = evaluation_plan(spec, locate, stored, record)
    found = list(_obstacles(plan, locate, calls=takes is None))
    if found:
        raise SpecError(found)
    return plan


def _unserved(stored: ElementType, locate: Locate, takes: Takes | None) -> Iterator[Diagnostic]:
    """Finds features that a request cannot have."""
    at = locate(("output", "x"))
    for name, t in stored.items():
        if not kind_of(t).has(Levels, Samples, Numbers):
            message = f"the model takes `{name}`, which holds {kind_of(t).plural}; a request has only images, sounds and tensors"
            yield make("PG541", message, at, help="serve a spec whose model takes images, sounds and tensors alone")
    images = [stored[name] for name in having(stored, Levels)]
    if takes == "bytes" and images and not any(t.encoded for t in images):
        message = "requests hold the bytes of image files, but this pipeline was built on arrays and has no decoder"
        yield make("PG541", message, locate(("source",)), help='serve decoded images: `takes="images"`, or `--takes images`')


def _obstacles(plan: Plan, locate: Locate, *, calls: bool) -> Iterator[Diagnostic]:
    """Finds batches of buckets, steps that draw, and unless `calls`, steps that call a user's Python."""
    if plan.buckets:
        what = "size of image" if len(plan.index.buckets[0]) > 1 else "length"
        message = f"split `{plan.split}` has batches of buckets, but a model is served for one {what}"
        help_ = "give evaluation one size: a `resize` with `when: train` to the bucket, and one with `when: eval` to a fixed size"
        if what == "length":
            help_ = "serve a spec with one length in place of `buckets`, such as `pad: {to: 16000}`, or end evaluation with a fixed length"
        yield make("PG545", message, locate(("batch", "buckets"), key=True), help=help_)
    for ref in plan.index.draws:
        message = f"`{ref.step.op}` is random on split `{plan.split}`, but a request has no epoch and no example id to draw by"
        help_ = "leave its `when` out, so that it runs on the training split alone; or serve a spec without this step"
        yield make("PG540", message, locate(ref.path, key=True), help=help_)
    for path, step in python_steps(plan.stages() if not calls else ()).items():
        message = f"`{step.op}` calls a Python function, which a saved model cannot contain"
        yield make("PG542", message, locate(path, key=True), help="use a step of pipegen in its place, or serve a spec without it")
