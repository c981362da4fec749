"""Epochs that are asked for by their numbers: TensorFlow traces and optimises one graph for all of them."""

from __future__ import annotations

from pipes import numbered
from typing import Any

import pytest

pytestmark = pytest.mark.tf


def rows(dataset: Any) -> list[float]:
    return [float(row) for _, y in dataset for row in y]


def test_one_graph_serves_every_epoch_and_each_has_its_own_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.backend.datasets import pipeline_dataset

    pipe = numbered(8, 4)
    wanted = []
    for epoch in range(3):
        pipe.seek(epoch, 0)
        wanted.append(rows(pipe.train))
    assert len({tuple(one) for one in wanted}) == 3
    made: list[Any] = []

    class Counted(pipeline_dataset.MovableIterator):
        def __init__(self, endless: Any) -> None:
            made.append(self)
            super().__init__(endless)

    monkeypatch.setattr("pipegen.backend.datasets.pipeline_dataset.MovableIterator", Counted)
    executor = pipe._engine.executor("train")
    first = pipe.dataset("train", epoch=0)
    assert rows(first) == wanted[0]
    traced = len(executor._traced)
    assert [rows(pipe.dataset("train", epoch=epoch)) for epoch in (2, 1)] == [wanted[2], wanted[1]]
    assert rows(pipe.dataset("train", epoch=1, step=3)) == wanted[1][6:]
    assert rows(pipe.dataset("train", epoch=1, step=4)) == []
    assert rows(first) == wanted[0], "an older dataset begins where it did"
    assert (len(executor._traced), len(made)) == (traced, 1), "the first dataset has its own iterator, and one more serves all the others"

    side_by_side = [iter(pipe.dataset("train", epoch=epoch)) for epoch in (0, 2)]
    taken = [[float(row) for _ in range(4) for row in next(iterator)[1]] for iterator in side_by_side]
    assert taken == [wanted[0], wanted[2]]
    halves = [iter(pipe.dataset("train", epoch=epoch)) for epoch in (0, 2)]
    mixed = [[float(row) for row in next(iterator)[1]] for _ in range(4) for iterator in halves]
    assert [row for batch in mixed[::2] for row in batch] == wanted[0]
    assert [row for batch in mixed[1::2] for row in batch] == wanted[2]
