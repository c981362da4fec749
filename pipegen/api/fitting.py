"""Fitting: steps that learn numbers from the training split get them from a file, or measure them now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.cache.store import read_statistics, statistics_file, statistics_key, write_statistics
from pipegen.kept import STATISTICS, kept_folder
from pipegen.ops.arguments.learned import Fitted, Statistics
from pipegen.ops.families.fitted import FittedTransform
from pipegen.phases.compilation import bind, optimise
from pipegen.phases.specs import BoundSpec, FittedSpec, Learned
from pipegen.plan.evaluation_plans import fitted_features, fitting_plan, learning_steps
from pipegen.plan.nodes import Plan
from pipegen.plan.stages import is_lasting
from pipegen.spec.models import PipelineSpec
from pipegen.terminal import log
from pipegen.terminal import progress as bar
from pipegen.types import ElementType

if TYPE_CHECKING:
    import numpy as np


class _NotKept(Exception):
    """The learned numbers of a step are not stored."""


def kept_numbers(bound: BoundSpec) -> tuple[Learned, ...] | None:
    """Reads the stored numbers that the steps of a spec have learned; `None` if some are not stored. Measures nothing."""
    try:
        return fit(bound, measures=False).learned
    except _NotKept:
        return None


def fit(bound: BoundSpec, progress: Callable[[int], None] | None = None, *, again: bool = False, measures: bool = True) -> FittedSpec:
    """Fits the steps of a spec to its training split; without such steps, the plans stay as they are.

    `progress` is called now and then with the number of images measured; by default, a bar shows it on a terminal. With `again`, stored
    numbers are measured again. Raises `SpecError` when a step or the output does not fit the numbers and `DataError` for a file that cannot
    be decoded.
    """
    manifest = bound.manifest
    found: list[Learned] = []
    for index, step in learning_steps(bound.spec.model):
        if step.fitted is not None and step.fitted.given:
            continue
        features = fitted_features(bound.spec.model, step, _record(bound))
        if not features:
            continue  # the step changes nothing that the model receives
        own = [_learn(bound, index, step, feature, progress, again, measures) for feature in features]
        found += own
        numbers = Fitted({f.feature: f.numbers for f in own}, manifest.num_examples("train"), "; ".join(f.origin for f in own))
        steps = list(bound.spec.model.transforms)
        steps[index] = step.with_numbers(numbers)
        model = bound.spec.model.model_copy(update={"transforms": tuple(steps)})
        bound = replace(bound, spec=replace(bound.spec, model=model))
    return FittedSpec(bound.spec, manifest, bind(bound.spec, manifest).plans if found else bound.plans, tuple(found))


def _record(bound: BoundSpec) -> ElementType:
    return bound.manifest.type or bound.spec.model.source.infer()


def _learn(
    bound: BoundSpec, index: int, step: FittedTransform, feature: str, progress: Callable[[int], None] | None, again: bool, measures: bool
) -> Learned:
    """Fits one step to one feature; the steps before it are fitted."""
    spec, manifest = bound.spec, bound.manifest
    model, plan = fitting_plan(spec.model, index, feature, spec.loaded.locate.label, _record(bound))
    key, kind = statistics_key(model, plan, manifest), step.kind_of_numbers
    lasting = all(map(is_lasting, plan.stages()))
    folder = kept_folder(spec.model.runtime.cache, STATISTICS) if lasting else None
    count = manifest.num_examples("train")
    file = statistics_file(folder, key, kind) if folder is not None else None
    kept = read_statistics(folder, key, kind) if folder is not None and not again else None
    if kept is not None:
        log.info("the numbers of `%s` were read from %s", step.op, file)
        return Learned(index, feature, kept, count, file, measured=False)
    if not measures:
        raise _NotKept
    numbers = _measure(bound, model, plan, step, progress)
    words = " → ".join(s.op for s in model.transforms[:-1])
    if folder is not None:
        try:
            write_statistics(folder, key, numbers, model.name or "", words)
        except OSError as error:
            log.warning("cannot store what `%s` has learned in %s: %s", step.op, folder, (error.strerror or str(error)).lower())
            file = None
    log.info("`%s` was fitted on %s examples of split train", step.op, f"{count:,}")
    for doubt in numbers.doubts(step.op, feature, step.each):
        log.warning("%s", doubt)
    return Learned(index, feature, numbers, count, file, measured=True, persistable=lasting)


def _measure(
    bound: BoundSpec, model: PipelineSpec, plan: Plan, step: FittedTransform, progress: Callable[[int], None] | None
) -> Statistics:
    """Reads the training split once, batch by batch, in constant memory."""
    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.datasets.pipeline_dataset import fixed_dataset

    manifest, count = bound.manifest, bound.manifest.num_examples("train")
    compiled = optimise(model, plan, num_examples=count, file_bytes=manifest.mean_bytes("train"), cache=False).plan
    executor = Engine(BoundSpec(replace(bound.spec, model=model), manifest, {}), {}).executor_of(compiled, "train")
    with nullcontext(progress) if progress is not None else bar("fitting", count) as tick:

        def batches() -> Iterator[np.ndarray[Any, Any]]:
            done = 0
            for batch in fixed_dataset(executor):
                yield batch.numpy()
                done += len(batch)  # done when the next one is requested
                tick(done)

        return step.gather(batches())
