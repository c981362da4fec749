"""Pipelines whose epochs are sampled: resumed, shared, cached, skipping damaged files, with other steps and sources."""

from __future__ import annotations

from pipes import RESIZE, at, pipeline
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pipegen
from benchmarks.made_up import registered
from pipegen.errors import SpecError, StateError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

STEPS: list[Any] = [RESIZE, "random_flip", {"random_rotation": {"degrees": 25}}]
BALANCE: dict[str, Any] = {"sampling": {"repeat_factor": {"threshold": 0.9}}, "batch": {"size": 8, "remainder": "keep"}}


def batches(dataset: Any) -> list[tuple[Any, Any]]:
    return [(x.numpy(), y.numpy()) for x, y in dataset]


def same(got: list[Any], expected: list[Any]) -> None:
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return pipeline(photo_folder, **BALANCE, transforms=STEPS)


def test_an_epoch_has_the_examples_that_it_counts(pipe: Any) -> None:
    first = batches(pipe.train)
    assert len(first) == pipe.steps("train")
    assert sum(len(y) for _, y in first) == len(pipe._engine.order_of("train", 0)) > pipe.num_examples("train")
    labels = np.concatenate([y for _, y in first])
    assert labels.tolist() == pipe.labels("train")[pipe._engine.order_of("train", 0)].tolist()


@pytest.mark.nightly
def test_it_resumes_at_any_step_and_hosts_share_it(pipe: Any, photo_folder: Path) -> None:
    whole = batches(at(pipe, epoch=1))
    same(batches(at(pipe, epoch=1, step=2)), whole[2:])
    shares = [batches(pipe.dataset("train", epoch=1, shard=(i, 2))) for i in range(2)]
    joined = [tuple(np.concatenate(parts) for parts in zip(*both, strict=True)) for both in zip(*shares, strict=True)]
    same(joined, whole)
    pipe.seek(1, 3)
    again = pipeline(photo_folder, **BALANCE, transforms=STEPS)
    again.restore(pipe.state())
    same(batches(again.train), whole[3:])
    half = pipeline(photo_folder, **(BALANCE | {"batch": {"size": 4, "remainder": "keep"}}), transforms=STEPS)
    half.restore(pipe.state())
    assert np.array_equal(next(iter(half.train))[1].numpy(), whole[3][1][:4])


def test_the_longest_epoch_has_every_example_and_resumes(photo_folder: Path) -> None:
    longest = {"sampling": {"balance": "label", "epoch": "longest"}, "batch": {"size": 8, "remainder": "keep"}}
    pipe = pipeline(photo_folder, **longest, transforms=STEPS)
    whole, labels = batches(at(pipe, epoch=0)), pipe.labels("train")
    counts = np.bincount(np.concatenate([y for _, y in whole]))
    assert counts.tolist() == [np.bincount(labels).max()] * len(counts)
    assert set(pipe._engine.order_of("train", 0).tolist()) == set(range(len(labels)))
    assert len(whole) == pipe.steps("train")
    same(batches(at(pipe, epoch=0, step=2)), whole[2:])


def test_copies_of_an_example_have_draws_of_their_own(pipe: Any) -> None:
    order = pipe._engine.order_of("train", 0)
    pictures = np.concatenate([x for x, _ in batches(at(pipe, epoch=0))])
    for record in np.flatnonzero(np.bincount(order) > 1)[:3]:
        copies = pictures[order == record]
        assert len({copy.tobytes() for copy in copies}) == len(copies)


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["memory", "compiled"])
def test_a_cache_and_compiled_kernels_change_nothing(how: str, photo_folder: Path, pipe: Any) -> None:
    runtime = {"cache": "memory"} if how == "memory" else {"jit": "always"}
    other = pipeline(photo_folder, runtime, **BALANCE, transforms=STEPS)
    for epoch in (0, 1):
        same(batches(at(other, epoch=epoch)), batches(at(pipe, epoch=epoch)))


@pytest.mark.nightly
def test_examples_are_combined_with_those_that_an_epoch_has(photo_folder: Path) -> None:
    steps = {"transforms": [RESIZE, {"mixup": {"alpha": 0.4}}], "output": {"encode": {"label": "one_hot"}}}
    whole = batches(pipeline(photo_folder, **(BALANCE | steps)).dataset("train", epoch=1))
    parts = pipeline(photo_folder, **(BALANCE | steps | {"batch": {"size": 4, "remainder": "keep"}}))
    np.testing.assert_array_equal(np.concatenate([x for x, _ in batches(at(parts, epoch=1))]), np.concatenate([x for x, _ in whole]))


@pytest.mark.nightly
def test_the_plan_as_written_gives_the_same_examples(pipe: Any) -> None:
    """Without a pass, an epoch is named in stored order, held and put into its order."""
    from pipegen.backend.datasets.pipeline_dataset import fixed_dataset
    from pipegen.physical.extent import Position

    written = pipe._engine.executor_of(pipe._plans["train"], "train")
    same(batches(fixed_dataset(written, Position(2))), batches(at(pipe, epoch=2)))


@pytest.mark.nightly
def test_a_damaged_copy_is_replaced(photo_folder: Path, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(photo_folder, tmp_path / "photos")
    pipe = pipeline(folder, **BALANCE, transforms=STEPS)
    often = np.bincount(pipe._engine.order_of("train", 0))
    victim = pipe.files("train")[int(often.argmax())]
    with open(victim, "r+b") as file:
        file.truncate(300)
    skipping = pipeline(folder, **BALANCE, transforms=STEPS, errors={"decode": {"skip": {"max_fraction": 0.2}}})
    found = batches(at(skipping))
    assert [len(y) for _, y in found] == [len(y) for _, y in batches(at(skipping, epoch=1))]
    same(batches(at(skipping, step=1)), found[1:])


@pytest.mark.nightly
def test_epochs_of_some_steps_go_on_through_sampled_passes(photo_folder: Path) -> None:
    kept = pipeline(photo_folder, **BALANCE, transforms=[RESIZE])
    short = pipeline(photo_folder, **BALANCE, transforms=[RESIZE], epoch={"steps": 3})
    long = np.concatenate([y for epoch in (0, 1) for _, y in batches(at(kept, epoch=epoch))])
    got = np.concatenate([y for epoch in range(3) for _, y in batches(at(short, epoch=epoch))])
    np.testing.assert_array_equal(got, long[: len(got)])


@pytest.mark.nightly
def test_records_in_shards_are_balanced_by_labels_that_are_read_once() -> None:
    with registered():
        spec = {
            "pipegen": 1,
            "source": {"made_up": {"files": 4, "each": 30}},
            "splits": {"parts": {"train": 0.8, "validation": 0.2}, "method": "hash"},
            "sampling": {"balance": "label"},
            "output": {"dtype": "uint8"},
            "batch": {"size": 8, "remainder": "keep"},
        }
        pipe = pipegen.build(spec)
        labels = np.concatenate([y for _, y in batches(at(pipe, epoch=2))])
        assert len(labels) == pipe.num_examples("train")
        counts = np.bincount(labels)[np.unique(pipe.labels("train"))]
        assert np.ptp(counts) <= 1
        assert "records were read for this" in str(pipe.explain())
        blocks = spec | {
            "source": {"made_up": {"files": 4, "each": 30, "encoded": True, "by_block": True}},
            "transforms": [{"resize": {"size": 2}}],
        }
        with pytest.raises(SpecError, match="PG470"):
            pipegen.build(blocks)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, photo_folder: Path) -> Path:
    """A table of photographs with their difficulty and a weight."""
    folder = tmp_path_factory.mktemp("table")
    files = sorted(photo_folder.rglob("*.jpg"))
    lines = [f"{file},{file.parent.name},{i * 7 % 42 / 42:.3f},{i % 3}" for i, file in enumerate(files)]
    (folder / "photos.csv").write_text("\n".join(["image,label,loss,weight", *lines]) + "\n")
    return folder / "photos.csv"


def of_table(table: Path, **own: Any) -> Any:
    features = {
        "image": {"kind": "image", "root": "/"},
        "label": {"kind": "label"},
        "loss": {"kind": "tensor"},
        "weight": {"kind": "weight"},
    }
    spec = {"pipegen": 1, "source": {"csv": {"path": str(table), "features": features}}, "transforms": [RESIZE], "batch": {"size": 7}}
    return pipegen.build(spec | own, runtime={"jit": "never", "cache": "none"})


def test_examples_are_seen_by_their_weights(table: Path) -> None:
    pipe = of_table(table, sampling={"weights": "weight"})
    seen = sum(np.bincount(pipe._engine.order_of("train", epoch), minlength=42) for epoch in range(6))
    assert seen.reshape(-1, 3).sum(0).tolist() == [0, 84, 168]
    assert "the rarest example is seen never, the commonest 2 times an epoch" in str(pipe.explain())


def test_easy_examples_come_first(table: Path) -> None:
    pace = {"linear": {"from": 0.2, "to": 1, "epochs": [0, 4]}}
    pipe = of_table(table, order={"by": "loss", "from": "low", "pace": pace})
    loss = np.arange(42) * 7 % 42
    reach = [loss[pipe._engine.order_of("train", epoch)].max() for epoch in range(6)]
    assert reach == sorted(reach)
    assert len({*pipe._engine.order_of("train", 0).tolist()}) == 9
    assert sorted(pipe._engine.order_of("train", 4).tolist()) == list(range(42))
    assert "epoch 0 draws 42 examples from the 9 easiest of 42: each is seen 4.67 times an epoch" in str(pipe.explain())
    state = pipe.state()
    hard = of_table(table, order={"by": "loss", "from": "high", "pace": pace})
    with pytest.raises(StateError, match=r"order\.from: low → high"):
        hard.restore(state)


@pytest.mark.nightly
def test_easy_examples_in_epochs_of_some_steps(table: Path) -> None:
    ordered = {"order": {"by": "loss", "pace": 0.5}, "epoch": {"steps": 9}}
    pipe = of_table(table, **ordered)
    assert pipe.steps("train") == 9
    order = pipe._engine.order_of("train", 3)
    assert np.unique(np.bincount(order)[np.unique(order)]).tolist() == [3]
    other = of_table(table, **ordered, batch={"size": 14})
    pipe.seek(3, 2)
    with pytest.raises(StateError, match="finish this epoch with batches of 7, as it was begun, not with 14"):
        other.restore(pipe.state())
    pipe.seek(3)
    other.restore(pipe.state())  # of which nothing was begun
    gone_on = [y.numpy().tolist() for _, y in other.train]
    anew = of_table(table, **ordered, batch={"size": 14})
    anew.seek(3)
    assert (len(gone_on), gone_on) == (9, [y.numpy().tolist() for _, y in anew.train])


@pytest.mark.nightly
def test_a_measured_mean_counts_each_example_once(table: Path) -> None:
    steps = [RESIZE, {"standardize": {"statistics": "featurewise"}}]
    sampled = of_table(table, transforms=steps, sampling={"weights": "weight"})
    assert sampled._compiled.learned[0].numbers.figures() == of_table(table, transforms=steps)._compiled.learned[0].numbers.figures()
