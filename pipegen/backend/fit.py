"""One pass over the training split to learn what a step needs of it: a batch's moments at a time, in constant memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.backend import damage
from pipegen.backend.datasets import fixed_dataset
from pipegen.backend.engine import records_from
from pipegen.backend.execute import Executor, Job
from pipegen.backend.guard import Quarantine
from pipegen.ops.arguments.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec


def measure(spec: PipelineSpec, plan: Plan, manifest: Manifest, where: damage.Where, progress: Callable[[int], None]) -> Moments:
    """The moments of the training split.

    Args:
        spec: The spec that measures.
        plan: Its optimised plan, which gives the moments of each image.
        manifest: The data.
        where: Finds the place of a step, for the message about a damaged file.
        progress: Called with how many images are done.

    Raises:
        DataError: For a file that cannot be decoded, where the spec does not skip it.
    """
    skip = spec.errors.skip
    quarantine = Quarantine(manifest.files("train"), skip.max_fraction, skip.report) if skip is not None else None
    advice = damage.advice("train", skips=quarantine is not None)
    records = records_from(manifest, "train", spec.runtime)
    place = damage.place_of_decode(plan, where)
    executor = Executor(Job(plan, spec, records, quarantine=quarantine, place=place, advice=advice))
    dataset = fixed_dataset(executor, 0, 0, lambda error, at: damage.explain_failure(executor, error, at, where))
    return combined((batch.numpy() for batch in dataset), progress)


def combined(batches: Iterable[np.ndarray[Any, Any]], progress: Callable[[int], None] = lambda _done: None) -> Moments:
    """All moments together.

    Args:
        batches: Counts, means and squares of images: float64 `(n, 3, 1, channels)` each.
        progress: Called with how many images are done.
    """
    total: Moments | None = None
    done = 0
    for batch in batches:
        parts = [Moments(round(count[0]), tuple(mean), tuple(squares)) for count, mean, squares in batch[:, :, 0, :].tolist()]
        total = Moments.of(parts if total is None else [total, *parts])
        done += len(parts)
        progress(done)
    return total if total is not None else Moments.of(())
