"""A dataset is its physical plan, node by node and under its names, which are what a profile shows."""

from __future__ import annotations

from itertools import pairwise
from pipes import pipeline
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.physical import nodes as p
from pipegen.physical.nodes import node_name

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.backend.running.execute import Executor

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

KINDS = {
    p.Steps: ("flat_map_dataset",),
    p.Map: ("map_dataset", "parallel_map_dataset_v2", "map_and_batch_dataset"),
    p.Unbatch: ("unbatch_dataset",),
    p.Prefetch: ("_PrefetchDataset",),
}
STEPS: list[Any] = [{"resize": {"size": 24}}, "random_flip", {"rescale": {"to": [0, 1]}}]


def entering(executor: Executor) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensors((tf.zeros([], tf.int64), tf.zeros([], tf.int64)))


def chain(ds: Any, begin: Any) -> list[Any]:
    """The datasets from the first operation to the last."""
    found: list[Any] = []
    while ds is not begin:
        found.insert(0, ds)
        (ds,) = ds._inputs()
    return found


@pytest.mark.by_day(2)
@pytest.mark.parametrize("cache", ["none", "memory"])
@pytest.mark.parametrize("form", [p.FIXED, p.FIXED.built_on(), p.REQUESTED], ids=lambda form: form.name)
def test_a_dataset_has_the_operations_and_scopes_of_its_plan(
    photo_folder: Path, cache: str, form: p.Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipegen.passes import chunk_elements

    monkeypatch.setattr(chunk_elements, "LONG_EPOCH", 1)
    pipe = pipeline(photo_folder, transforms=STEPS, runtime={"cache": cache, "threads": 2}, batch={"size": 8, "remainder": "keep"})
    executor = pipe._engine.executor("train")
    plan = executor.physical(form)
    begin = entering(executor)
    made = chain(batches_of(executor, begin, form), begin)
    wanted = [(name, operation) for name, operation in plan.named() if not isinstance(operation, p.Enter) and not p.hands_over(operation)]
    stacks = {name: operation for name, operation in wanted if isinstance(operation, p.Stack)}
    behind = dict(pairwise(name for name, _ in wanted))
    wanted = [(f"{name}_{behind[name]}" if behind.get(name) in stacks else name, o) for name, o in wanted if name not in stacks]
    assert [ds._name for ds in made] == [name for name, _ in wanted], "a map puts its elements where they are stacked"
    for ds, (name, operation) in zip(made, wanted, strict=True):
        how = ds._pipegen_operation.__name__ if hasattr(ds, "_pipegen_operation") else type(ds).__name__
        assert how in KINDS[type(operation)]
        if isinstance(operation, p.Map):
            calls, size = (ds._pipegen_own.get(given) for given in ("num_parallel_calls", "batch_size"))
            assert (None if calls is None else int(calls)) == operation.threads
            if size is not None:
                stack = stacks[name.rpartition("_")[2]]
                assert (int(size), ds._pipegen_own["drop_remainder"]) == (stack.size, stack.full)
            scopes = {op.name.split("/")[0] for op in ds._pipegen_function.graph.get_operations() if "/" in op.name}
            assert scopes <= {node_name(function) for function in operation.functions}


@pytest.mark.nightly
def test_what_is_handed_over_is_noted_as_the_plan_says(photo_folder: Path) -> None:
    pipe = pipeline(photo_folder, transforms=STEPS)
    executor, progress = pipe._engine.executor("train"), pipe._engine.train_progress()
    batches = batches_of(executor, progress.head(), p.TRAINING)
    for form, noted in ((p.FIXED.bare(), [0, 0, 0, 0]), (p.TRAINING.bare(), [0, 1, 0, 0])):
        next(iter(handed_over(executor, batches, form, progress)))
        assert progress.delivered.numpy().tolist() == noted
