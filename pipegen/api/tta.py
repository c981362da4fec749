"""Test-time augmentation: several views of each example, and one prediction of the predictions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import tensorflow as tf

from pipegen.arguments import got, whole
from pipegen.backend.datasets.augmented import Augmented, together
from pipegen.backend.datasets.pipeline_dataset import PipelineDataset, fixed_dataset
from pipegen.backend.reading import damage
from pipegen.backend.reading.mixed import records_of_plan
from pipegen.backend.running.execute import Executor
from pipegen.data.buckets import in_buckets
from pipegen.errors import SpecError
from pipegen.ops.acting import runs_on
from pipegen.ops.base import Family, Transform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.traits import ANY_IMAGE
from pipegen.phases.compilation import optimise
from pipegen.phases.hosts import resolve_share
from pipegen.physical.position import Position
from pipegen.plan.check import build_split, possible_types
from pipegen.plan.lanes import first_view
from pipegen.spec.load import load
from pipegen.spec.steps import ids_of

if TYPE_CHECKING:
    from pipegen.phases.specs import BoundSpec
    from pipegen.spec.models import PipelineSpec

How = Literal["mean", "geometric", "max", "vote"]
_EDITS = ("replace", "remove", "before", "after", "append")
_ENDING = (Family.POINTWISE, FittedTransform.family)
"""Families of the steps that no view puts its own behind: what leaves them is what the model wants."""


@dataclass(frozen=True)
class View:
    """Holds one view: what the steps are, and which epoch its draws are of."""

    transforms: tuple[Transform, ...]
    epoch: int


def count_of(views: Any) -> int:
    """Counts views, however they are given: as a number, as a list, as a map by name, or as the dataset of them."""
    if isinstance(views, Augmented):
        return views.views
    if isinstance(views, (Mapping, Sequence)) and not isinstance(views, (str, bytes)):
        return whole("views", len(views), 1)
    return whole("views", views, 1)


def views_of(model: PipelineSpec, views: Any) -> list[View]:
    """Returns the steps of each view of a spec.

    Raises:
        SpecError: With every finding about the steps of a view.
        TypeError: For views of another kind.
    """
    if isinstance(views, int) and not isinstance(views, bool):
        drawn = tuple(_everywhere(step) for step in model.transforms if not isinstance(step, MixingTransform))
        return [View(drawn, epoch) for epoch in range(whole("views", views, 1))]
    if not isinstance(views, (Mapping, Sequence)) or isinstance(views, (str, bytes)) or not views:
        raise TypeError(f"`views` is a number, or a list of views such as [[], ['flip']], got {got(views)}")
    given = list(views.values()) if isinstance(views, Mapping) else list(views)
    return [View(_edited(model.transforms, each), number) for number, each in enumerate(given)]


def _everywhere(step: Transform) -> Transform:
    """The step on every split, unless it says where it acts."""
    return step.model_copy(update={"when": "all"}) if step.random and step.when is None else step


def _edited(steps: tuple[Transform, ...], view: Any) -> tuple[Transform, ...]:
    """The steps of a spec as one view has them."""
    if isinstance(view, Mapping) and view and set(view) <= set(_EDITS):
        return _carried_out(steps, view)
    added = _parsed(view)
    place = len(steps)
    while place and (not _acts(steps[place - 1]) or steps[place - 1].traits(ANY_IMAGE).family in _ENDING):
        place -= 1
    return (*steps[:place], *added, *steps[place:])


def _acts(step: Transform) -> bool:
    """Returns whether a step, or what stands in for it, acts outside training."""
    return runs_on(step, "predict") or (step.when is None and bool(step.evaluation_form()))


def _carried_out(steps: tuple[Transform, ...], edits: Mapping[str, Any]) -> tuple[Transform, ...]:
    """Edits steps by their ids, as a spec edits those of its base."""
    ids = list(ids_of(steps))
    named = {name for key in _EDITS[:-1] for name in edits.get(key, ())}
    unknown = sorted(named - set(ids))
    if unknown:
        raise ValueError(f"a view edits {', '.join(map(repr, unknown))}, and the steps are {', '.join(ids)}")
    new = {key: {name: _parsed(value) for name, value in edits.get(key, {}).items()} for key in ("replace", "before", "after")}
    found: list[Transform] = []
    for own, step in zip(ids, steps, strict=True):
        kept = () if own in edits.get("remove", ()) else new["replace"].get(own, (step,))
        found += [*new["before"].get(own, ()), *kept, *new["after"].get(own, ())]
    return (*found, *_parsed(edits.get("append", ())))


def _parsed(given: Any) -> tuple[Transform, ...]:
    """The steps that a view gives: none, one, or a list of them, as they stand in a spec."""
    listed = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
    if not listed:
        return ()
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "."}}, "transforms": listed}, env={})
    if loaded.spec is None:
        raise SpecError(loaded.diagnostics.sorted())
    return tuple(_everywhere(step) for step in loaded.spec.transforms)


def tta(bound: BoundSpec, split: str, views: Any, examples: int | None) -> Augmented:
    """Several views of each example of a split; see `Pipeline.tta`."""
    spec, manifest, locate = bound.spec.model, bound.manifest, bound.spec.loaded.locate.label
    shard = resolve_share(spec.runtime).pair
    wanted = views_of(spec, views)
    size = _examples(spec.batch.size, len(wanted), shard[1], examples)

    def made(view: View) -> PipelineDataset:
        model = _of_view(spec, view, size)
        record = possible_types(model, len(manifest.class_names) or None, manifest.record)[0]
        model, where = first_view(model, locate, record)
        built = build_split(model, split, where, record)
        if built.plan is None:
            raise SpecError(built.findings)
        count, mean = manifest.num_examples(split), manifest.mean_bytes(split) or None
        plan = optimise(model, built.plan, num_examples=count, file_bytes=mean, cache=False).plan
        records = records_of_plan(manifest, split, plan, model.runtime)
        buckets = in_buckets(model, manifest, split) if plan.buckets else None
        advice = damage.advice(split, skips=False)
        executor = Executor(plan, model, records, shard, where=bound.spec.where, advice=advice, buckets=buckets)
        return fixed_dataset(executor, Position(view.epoch))

    with tf.init_scope():  # also where a function is being traced, whose graph would own them else
        return together([made(view) for view in wanted])


def _of_view(spec: PipelineSpec, view: View, size: int) -> PipelineSpec:
    batch = spec.batch.model_copy(update={"size": size})
    runtime = spec.runtime.model_copy(update={"cache": "none"})
    return spec.model_copy(update={"transforms": view.transforms, "batch": batch, "runtime": runtime})


def of_views(spec: PipelineSpec, views: Any) -> list[tuple[PipelineSpec, int]]:
    """Returns the spec as each view has it, with batches that together have about as many rows as before, and the epoch of its draws."""
    wanted = views_of(spec, views)
    size = _examples(spec.batch.size, len(wanted), 1, None)
    return [(_of_view(spec, view, size), view.epoch) for view in wanted]


def _examples(size: int, views: int, hosts: int, wanted: int | None) -> int:
    """Counts the examples of a global batch: by default so many that all their views are about as many rows as a batch has."""
    if wanted is not None:
        return whole("examples", wanted, 1)
    return max(size // views // hosts, 1) * hosts


def merged(predictions: Any, views: Any, how: How) -> Any:
    """One row for each example of the rows for its views; see `Pipeline.merge`."""
    if how not in get_args(How):
        raise ValueError(f"`how` is one of {', '.join(get_args(How))}, got {how!r}")
    return _merged(predictions, count_of(views), how)


def _merged(predictions: Any, count: int, how: How) -> Any:
    if isinstance(predictions, Mapping):
        return {name: _merged(rows, count, how) for name, rows in predictions.items()}
    if isinstance(predictions, (list, tuple)):
        return type(predictions)(_merged(rows, count, how) for rows in predictions)
    if isinstance(predictions, (str, bytes)) or not hasattr(predictions, "__array__") or getattr(predictions, "ndim", 1) == 0:
        raise TypeError(
            f"`predictions` is what `model.predict` gave: an array with a row for each view of each example, got {got(predictions)}"
        )
    rows = np.asarray(predictions)
    if len(rows) % count:
        raise ValueError(f"{len(rows)} rows of predictions are not {count} views of each example")
    return _WAYS[how](rows.reshape(-1, count, *rows.shape[1:]))


def _mean(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kept = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float32)
    return rows.mean(1, dtype=np.float64).astype(kept)


def _geometric(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The geometric mean of probabilities, which sum to 1 again over the classes."""
    logs = np.log(np.maximum(rows.astype(np.float64), 1e-30)).mean(1)
    found = np.exp(logs)
    if rows.ndim > 2 and rows.shape[-1] > 1:
        found /= found.sum(-1, keepdims=True)
    return found.astype(rows.dtype if rows.dtype.kind == "f" else np.float32)


def _vote(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The share of the views in which each class has the most; of a single score, that it is above one half."""
    if rows.shape[-1] == 1 or rows.ndim == 2:
        return _mean((rows > 0.5).astype(np.float32))
    return np.eye(rows.shape[-1], dtype=np.float32)[rows.argmax(-1)].mean(1, dtype=np.float64).astype(np.float32)


_WAYS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "mean": _mean,
    "geometric": _geometric,
    "max": partial(np.max, axis=1),
    "vote": _vote,
}
