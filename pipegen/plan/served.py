"""Plans of served models: the evaluation steps on the images of a request, without draws or Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import SpecError
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.registry import default_decoder
from pipegen.plan.fitting_plans import evaluation_plan
from pipegen.plan.lanes import first_view
from pipegen.plan.nodes import Plan
from pipegen.plan.outputs import names
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType, FeatureType

Takes = Literal["bytes", "images"]
"""The form of images in a request: the bytes of files, or decoded."""


def served_plan(spec: PipelineSpec, locate: Locate, record: ElementType, takes: Takes) -> Plan:
    """Plans the evaluation steps on the features that the model takes; `read` of the plan is the type of one example of a request.

    Args:
        spec: The spec.
        locate: Finds the places for findings.
        record: The type of a stored record.
        takes: The form of images in a request.

    Raises:
        SpecError: `PG540` for a step that draws, `PG541` for a feature that a request cannot have, `PG542` for a step in Python, `PG545`
            for batches of buckets.
    """
    spec, locate, record, stored = _of_request(spec, locate, record, takes)
    if takes == "images":
        brought = {name: _decoded(spec, name, t) for name, t in stored.items() if t.encoded}
        steps = tuple(step for step in spec.transforms if not isinstance(step, DecodeTransform))
        spec, stored, record = spec.model_copy(update={"transforms": steps}), stored.replace(**brought), record.replace(**brought)
    return _served(spec, locate, stored, record, calls=False)


def layered_plan(spec: PipelineSpec, locate: Locate, record: ElementType) -> Plan:
    """Plans the evaluation steps on the features that the model takes, for a model with some of them as a layer.

    Raises:
        SpecError: `PG540` for a step that draws, `PG541` for a feature that is neither images nor tensors, `PG545` for batches of buckets.
    """
    spec, locate, record, stored = _of_request(spec, locate, record, "images")
    return _served(spec, locate, stored, record, calls=True)


def _of_request(
    spec: PipelineSpec, locate: Locate, record: ElementType, takes: Takes
) -> tuple[PipelineSpec, Locate, ElementType, ElementType]:
    """Reduces a spec to its first view; adds the type of the record's features that a request has."""
    spec, locate = first_view(spec, locate, record)
    wanted = dict.fromkeys(names(spec.output.x))
    stored = ElementType(tuple((name, t) for name, t in record.items() if name in wanted))
    found = list(_unserved(stored, locate, takes))
    if found:
        raise SpecError(found)
    return spec, locate, record, stored


def _served(spec: PipelineSpec, locate: Locate, stored: ElementType, record: ElementType, *, calls: bool) -> Plan:
    """Plans the evaluation steps on features of a request; `calls` allows steps that call Python."""
    plan = evaluation_plan(spec, locate, stored, record)
    found = list(_obstacles(plan, locate, calls=calls))
    if found:
        raise SpecError(found)
    return plan


def _unserved(stored: ElementType, locate: Locate, takes: Takes) -> Iterator[Diagnostic]:
    """Finds features that a request cannot have."""
    at = locate(("output", "x"))
    for name, t in stored.items():
        if not (kind_of(t).levels or kind_of(t).numbers):
            message = f"the model takes `{name}`, which holds {kind_of(t).plural}; a request has only images and tensors"
            yield make("PG541", message, at, help="serve a spec whose model takes images and tensors alone")
    images = [t for _, t in stored.items() if kind_of(t).levels]
    if takes == "bytes" and images and not any(t.encoded for t in images):
        message = "requests hold the bytes of image files, but this pipeline was built on arrays and has no decoder"
        yield make("PG541", message, locate(("source",)), help='serve decoded images: `takes="images"`, or `--takes images`')


def _decoded(spec: PipelineSpec, feature: str, x: FeatureType) -> FeatureType:
    """The type of the images of a feature once they are decoded."""
    steps = [step for step in spec.transforms if isinstance(step, DecodeTransform) and step.feature in (None, feature)]
    step = spec.source.decoders().get(feature) or next(iter(steps), default_decoder())
    return step.on(x).infer(x)


def _obstacles(plan: Plan, locate: Locate, *, calls: bool) -> Iterator[Diagnostic]:
    """Finds batches of buckets, steps that draw, and unless `calls`, steps that call a user's Python."""
    if plan.buckets:
        message = f"split `{plan.split}` has batches of buckets, but a model is served for one size of image"
        help_ = "give evaluation one size: a `resize` with `when: train` to the bucket, and one with `when: eval` to a fixed size"
        yield make("PG545", message, locate(("batch", "buckets"), key=True), help=help_)
    for ref in plan.index.draws:
        message = f"`{ref.step.op}` is random on split `{plan.split}`, but a request has no epoch and no example id to draw by"
        help_ = "leave its `when` out, so that it runs on the training split alone; or serve a spec without this step"
        yield make("PG540", message, locate(ref.path, key=True), help=help_)
    used = {} if calls else {ref.path: ref for stage in plan.stages() for ref in stage.uses() if ref.step.calls_python == "always"}
    for path, ref in used.items():
        message = f"`{ref.step.op}` calls a Python function, which a saved model cannot contain"
        yield make("PG542", message, locate(path, key=True), help="use a step of pipegen in its place, or serve a spec without it")
