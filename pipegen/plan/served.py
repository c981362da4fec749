"""The plan of what is done to the requests of a served model: the evaluation steps on what a request brings, without draws or Python."""

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
"""How a request brings its images: as the bytes of files, or decoded."""


def served_plan(spec: PipelineSpec, locate: Locate, record: ElementType, takes: Takes) -> Plan:
    """The evaluation steps on every feature that the model takes; `read` of the plan is the type of one example of a request.

    Args:
        spec: The spec.
        locate: Finds the places for findings.
        record: The type of a stored record.
        takes: How a request brings its images.

    Raises:
        SpecError: `PG540` for a step that draws, `PG541` for a feature that no request can bring, `PG542` for a step in Python, `PG545` for
            batches of buckets.
    """
    spec, locate = first_view(spec, locate, record)
    wanted = dict.fromkeys(names(spec.output.x))
    stored = ElementType(tuple((name, t) for name, t in record.items() if name in wanted))
    found = list(_unserved(stored, locate, takes))
    if found:
        raise SpecError(found)
    if takes == "images":
        brought = {name: _decoded(spec, name, t) for name, t in stored.items() if t.encoded}
        steps = tuple(step for step in spec.transforms if not isinstance(step, DecodeTransform))
        spec, stored, record = spec.model_copy(update={"transforms": steps}), stored.replace(**brought), record.replace(**brought)
    plan = evaluation_plan(spec, locate, stored, record)
    found = [*_bucketed(plan, locate), *_drawing(plan, locate), *_calling(plan, locate)]
    if found:
        raise SpecError(found)
    return plan


def layered_plan(spec: PipelineSpec, locate: Locate, record: ElementType) -> Plan:
    """The evaluation steps on every feature that the model takes, some of which a layer of it is to do.

    Raises:
        SpecError: `PG540` for a step that draws, `PG541` for a feature that is neither images nor tensors, `PG545` for batches of buckets.
    """
    spec, locate = first_view(spec, locate, record)
    wanted = dict.fromkeys(names(spec.output.x))
    stored = ElementType(tuple((name, t) for name, t in record.items() if name in wanted))
    found = list(_unserved(stored, locate, "images"))
    if found:
        raise SpecError(found)
    plan = evaluation_plan(spec, locate, stored, record)
    found = [*_bucketed(plan, locate), *_drawing(plan, locate)]
    if found:
        raise SpecError(found)
    return plan


def _unserved(stored: ElementType, locate: Locate, takes: Takes) -> Iterator[Diagnostic]:
    """Yields what is wrong with the features that a request would bring."""
    at = locate(("output", "x"))
    for name, t in stored.items():
        if not (kind_of(t).levels or kind_of(t).numbers):
            message = f"a request brings images and tensors, and the model takes `{name}`, which holds {kind_of(t).plural}"
            yield make("PG541", message, at, help="serve a spec whose model takes images and tensors alone")
    images = [t for _, t in stored.items() if kind_of(t).levels]
    if takes == "bytes" and images and not any(t.encoded for t in images):
        message = (
            "a request would bring the bytes of image files, and this pipeline was built on arrays, for which nothing says how to decode"
        )
        yield make("PG541", message, locate(("source",)), help='serve decoded images: `takes="images"`, or `--takes images`')


def _decoded(spec: PipelineSpec, feature: str, x: FeatureType) -> FeatureType:
    """The type that the images of a feature have once they are decoded."""
    steps = [step for step in spec.transforms if isinstance(step, DecodeTransform) and step.feature in (None, feature)]
    step = spec.source.decoders().get(feature) or next(iter(steps), default_decoder())
    return step.on(x).infer(x)


def _bucketed(plan: Plan, locate: Locate) -> Iterator[Diagnostic]:
    """Yields that evaluation has batches of buckets, where it has."""
    if plan.buckets:
        message = (
            f"split `{plan.split}` has batches of buckets, and the images of a request are of no bucket: a model is served for one size"
        )
        help_ = "give evaluation one size: a step with `when: train` has the bucket's, and one with `when: eval` its own"
        yield make("PG545", message, locate(("batch", "buckets"), key=True), help=help_)


def _drawing(plan: Plan, locate: Locate) -> Iterator[Diagnostic]:
    """Yields the steps that draw."""
    for ref in plan.index.draws:
        message = f"`{ref.step.op}` draws on split `{plan.split}`, and a request has neither an epoch nor an example id to draw for"
        help_ = "without `when` it runs on the training split alone; or serve a spec without this step"
        yield make("PG540", message, locate(ref.path, key=True), help=help_)


def _calling(plan: Plan, locate: Locate) -> Iterator[Diagnostic]:
    """Yields the steps that call a user's Python."""
    used = {ref.path: ref for stage in plan.stages() for ref in stage.uses() if ref.step.calls_python == "always"}
    for path, ref in used.items():
        message = f"`{ref.step.op}` calls a Python function, which the file of a served model cannot hold"
        yield make("PG542", message, locate(path, key=True), help="use a step of pipegen in its place, or serve a spec without it")
