"""Reads records as the pipeline does, to find the damaged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat

import tensorflow as tf

from pipegen import jpeg_damage
from pipegen.backend.datasets.engine import Engine
from pipegen.backend.reading import damage
from pipegen.backend.running.damaged_record import find_problem
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.frozen import dataclass
from pipegen.memory import threads
from pipegen.mounts import content_of
from pipegen.passes import PASSES, PassContext, run_passes
from pipegen.passes.fuse_decode_crop import fuse_decode_crop
from pipegen.physical.nodes import PROBED
from pipegen.plan.nodes import Plan
from pipegen.spec.models import Runtime


@dataclass(frozen=True)
class Damaged:
    """A record that cannot be read."""

    split: str  # its split
    key: str  # its relative path, as in `errors.exclude`
    problem: str  # one line that names the file and the damage


def probing_plan(plan: Plan, runtime: Runtime) -> Plan:
    """Compiles a plan that decodes whole files, not only the window that an epoch draws."""
    passes = tuple(p for p in PASSES if p is not fuse_decode_crop)
    return run_passes(plan, passes, PassContext(runtime.model_copy(update={"cache": "none"}))).plan


def probe(engine: Engine, split: str, records: Sequence[int], progress: Callable[[int], None] | None = None) -> Iterator[Damaged]:
    """Runs records through every step that works on single examples; yields the damaged ones, in order.

    `progress` is called with the number of records done.
    """
    executor = engine.executor(split)
    keys = engine.manifest.keys(split)
    done = 0
    with ThreadPoolExecutor(threads(executor.spec.runtime)) as pool:
        numbers = tf.constant(list(records), tf.int64)
        entering = tf.data.Dataset.from_tensor_slices((numbers, tf.zeros_like(numbers)))
        for batch in handed_over(executor, batches_of(executor, entering, PROBED), PROBED).as_numpy_iterator():
            tried = batch["@record"].tolist()
            inside = pool.map(partial(_inside, executor), tried) if jpeg_damage.available() else repeat(None)
            for record, works, found in zip(tried, batch[damage.GOOD].tolist(), inside):  # noqa: B905 - without the extra, `None` repeats
                problem = found
                if not works:  # without the advice for training
                    problem = find_problem(executor, record, 0) or f"cannot read {executor.records.locate(record)}"
                    problem = problem.removesuffix(f"; {executor.damage.advice}")
                if problem is not None:
                    yield Damaged(split, keys[record], problem)
            done += len(tried)
            if progress is not None:
                progress(done)


def _inside(executor: Executor, record: int) -> str | None:
    """Describes damage in files that can still be decoded, in one line; `None` if they are whole."""
    records = executor.records
    for files in records.files(executor.plan.read):
        try:
            said = jpeg_damage.damage_inside(content_of(files[record]))
        except OSError:
            continue  # the pipeline's reader reports it
        if said is not None:
            return f"{files[record]} can be decoded but is damaged inside, which training does not notice: {said}"
    return None
