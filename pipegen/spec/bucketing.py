"""A spec with `batch.buckets`, as the images of one bucket have it: `size: bucket` is a size there."""

from __future__ import annotations

from pipegen.ops.acting import runs_on
from pipegen.ops.buckets import says_bucket, sized
from pipegen.spec.branches import branches, lanes
from pipegen.spec.models import PipelineSpec
from pipegen.spec.views import View

_NOWHERE = (224, 224)
"""Stands in for the size of a bucket where there are none, which is an error that is found elsewhere."""


def of_bucket(spec: PipelineSpec, number: int = 0) -> PipelineSpec:
    """The spec of one bucket's images."""
    buckets = spec.batch.buckets
    size = _NOWHERE if buckets is None else buckets.sizes[number]
    if not says_bucket(spec.transforms) and not isinstance(spec.views, dict):
        return spec
    changes: dict[str, object] = {"transforms": tuple(sized(step, size) for step in spec.transforms)}
    if isinstance(spec.views, dict):
        changes["views"] = {name: _view(view, size) for name, view in spec.views.items()}
    return spec.model_copy(update=changes)


def _view(view: View, size: tuple[int, int]) -> View:
    return view.model_copy(update={"transforms": tuple(sized(step, size) for step in view.transforms)})


def bucketed(spec: PipelineSpec, split: str) -> bool:
    """Returns whether batches of a split have the sizes of buckets: a step that runs there says so."""
    if spec.batch.buckets is None:
        return False
    own = branches(spec)
    views = [own[name].transforms for name in dict.fromkeys(lane.branch for lane in lanes(spec, split)) if name is not None]
    steps = [step for steps in (spec.transforms, *views) for step in steps]
    there = [step for step in steps if runs_on(step, split)]
    stand_ins = [
        form for step in steps if not runs_on(step, split) and step.random and step.when is None for form in step.evaluation_form()
    ]
    return says_bucket((*there, *stand_ins))
