"""Goes through the training split once to learn what a step needs of it: a batch at a time, in memory that does not grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pipegen.backend.datasets.pipeline_dataset import fixed_dataset
from pipegen.backend.reading import damage
from pipegen.backend.reading.guard import Quarantine
from pipegen.backend.reading.records import records_from
from pipegen.backend.running.execute import Executor

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec

Array = np.ndarray[Any, Any]
N = TypeVar("N")
Gather = Callable[[Iterable[Array]], N]


def measure(
    spec: PipelineSpec, plan: Plan, manifest: Manifest, where: damage.Where, gather: Gather[N], progress: Callable[[int], None]
) -> N:
    """Measures what is learned from the training split.

    Args:
        spec: The spec that measures.
        plan: Its optimised plan, which gives what is measured of each image.
        manifest: The data.
        where: Finds the place of a step, for the message about a damaged file.
        gather: Puts together what the plan gives, a batch at a time.
        progress: Called with how many images are done.

    Raises:
        DataError: For a file that cannot be decoded, where the spec does not skip it.
    """
    skip = spec.errors.skip
    records = records_from(manifest, "train", plan.read, spec.runtime)
    quarantine = Quarantine.of(records, plan.read, skip) if skip is not None else None
    advice = damage.advice("train", skips=quarantine is not None)
    dataset = fixed_dataset(Executor(plan, spec, records, quarantine=quarantine, where=where, advice=advice), 0, 0)
    return gather(_counted((batch.numpy() for batch in dataset), progress))


def _counted(batches: Iterable[Array], progress: Callable[[int], None]) -> Iterator[Array]:
    """The same batches; each counts as done when the next one is asked for."""
    done = 0
    for batch in batches:
        yield batch
        done += len(batch)
        progress(done)
