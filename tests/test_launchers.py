"""A process finds its share of each batch by whatever launched it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipegen.errors import SpecError
from pipegen.phases.hosts import resolve_share, share_line
from pipegen.spec.models import Runtime

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
HOROVOD = {"HOROVOD_RANK": "2", "HOROVOD_SIZE": "3"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6"}
SRUN = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_ID": "0"}
SBATCH = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "7"}


def cluster(kind: str, index: int, **tasks: int) -> dict[str, str]:
    hosts = {name: [f"{name}{i}:1" for i in range(count)] for name, count in tasks.items()}
    return {"TF_CONFIG": json.dumps({"cluster": hosts, "task": {"type": kind, "index": index}})}


@pytest.fixture(autouse=True)
def without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)


@pytest.mark.parametrize(("environment", "share", "by"), [
    ({}, (0, 1), ""),
    (cluster("worker", 1, worker=2), (1, 2), "TF_CONFIG"),
    (cluster("worker", 1, chief=1, worker=2), (2, 3), "TF_CONFIG"),
    (cluster("chief", 0, chief=1, worker=2), (0, 3), "TF_CONFIG"),
    (cluster("worker", 0, worker=1), (0, 1), "TF_CONFIG"),
    (cluster("ps", 0, worker=2, ps=1), (0, 1), ""),
    (cluster("evaluator", 0, worker=2), (0, 1), ""),
    (HOROVOD, (2, 3), "Horovod"),
    (TORCHRUN, (1, 4), "torchrun"),
    (OPEN_MPI, (5, 6), "Open MPI"),
    (SRUN, (3, 8), "SLURM"),
    (SBATCH, (0, 1), ""),
    ({"RANK": "1"}, (0, 1), ""),
    (SRUN | TORCHRUN, (1, 4), "torchrun"),
    (SRUN | OPEN_MPI, (5, 6), "Open MPI"),
    (SRUN | {"RANK": "0", "WORLD_SIZE": "1"}, (0, 1), "torchrun"),
    (TORCHRUN | cluster("worker", 1, worker=4), (1, 4), "TF_CONFIG"),
])  # fmt: skip
def test_the_nearest_launcher_says_the_share(environment: dict[str, str], share: tuple[int, int], by: str) -> None:
    found = resolve_share(Runtime(), environment)
    assert found.pair == share
    assert by in found.origin
    assert bool(by) == bool(found.origin)
    line = share_line(Runtime(), environment)
    assert bool(line) == bool(by)
    assert ("shard: none" in line) == (share[1] > 1)
    assert resolve_share(Runtime(shard="none"), environment).pair == (0, 1)
    assert resolve_share(Runtime.model_validate({"shard": {"index": 1, "count": 4}}), environment).pair == (1, 4)


@pytest.mark.parametrize(("environment", "says"), [
    (TORCHRUN | HOROVOD, "Horovod .* process 2 of 3, and torchrun .* 1 of 4"),
    (TORCHRUN | cluster("worker", 0, worker=2), "TF_CONFIG.* process 0 of 2, and torchrun .* 1 of 4"),
    ({"RANK": "4", "WORLD_SIZE": "4"}, "process 4 of 4, and processes count from 0"),
    ({"RANK": "one", "WORLD_SIZE": "4"}, "RANK is `one`, not a number"),
    ({"TF_CONFIG": "{"}, "TF_CONFIG does not describe a cluster"),
    ({"TF_CONFIG": "[1]"}, "TF_CONFIG does not describe a cluster"),
    ({"TF_CONFIG": '{"cluster": {"worker": 3}, "task": {}}'}, "TF_CONFIG does not describe a cluster"),
])  # fmt: skip
def test_launchers_that_cannot_be_right_are_an_error(environment: dict[str, str], says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        resolve_share(Runtime(), environment)
    assert "PG412" in str(caught.value)
    assert "shard: none" in str(caught.value)


def joined(index: int, count: int, *, initialized: bool = True) -> Any:
    distributed = SimpleNamespace(is_initialized=lambda: initialized)
    return SimpleNamespace(distributed=distributed, process_index=lambda: index, process_count=lambda: count)


def test_processes_that_jax_joined_come_before_their_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", joined(1, 2))
    assert resolve_share(Runtime(), SRUN).pair == (1, 2)
    monkeypatch.setitem(sys.modules, "jax", joined(0, 1))
    assert resolve_share(Runtime(), SRUN).pair == (3, 8)
    monkeypatch.setitem(sys.modules, "jax", joined(1, 2, initialized=False))
    assert resolve_share(Runtime(), {}).pair == (0, 1)


@pytest.mark.tf
def test_a_pipeline_says_which_share_it_takes(
    photo_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import numpy as np

    import pipegen

    sections = {
        "pipegen": 1, "source": {"image_folder": {"path": str(photo_folder)}}, "splits": {"parts": {"train": 32, "validation": 11}},
        "transforms": [{"resize": {"size": 8}}], "batch": {"size": 8, "remainder": "pad"}, "shuffle": "none",
        "runtime": {"jit": "never", "cache": "none"},
    }  # fmt: skip
    whole = pipegen.build(sections)
    assert "share" not in repr(whole) + str(whole.explain())
    batch = next(iter(whole.dataset("train", epoch=0)))[0].numpy()
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    pipe = pipegen.build(sections)
    said = "this process takes share 1 of 4, as torchrun (RANK, WORLD_SIZE) says"
    assert said in caplog.text
    assert said in repr(pipe)
    assert said in str(pipe.explain())
    np.testing.assert_array_equal(next(iter(pipe.dataset("train", epoch=0)))[0].numpy(), batch[2:4])
    assert "share" not in repr(pipegen.build(sections, runtime={"shard": "none"}))


@pytest.mark.parametrize(("batch", "hosts", "code", "said", "mended"), [
    ({"size": 4, "remainder": "keep"}, 4, "PG412", "split `train` has 3 examples, fewer than the 4 hosts", {"remainder": {"train": "pad"}}),
    ({"size": 4, "remainder": "keep"}, 2, "PG667", "the last batch of split `train`, 3 examples, does not divide among 2 hosts",
     {"remainder": {"train": "drop"}}),
    ({"size": 16}, 3, "PG412", "a global batch of 16 does not divide among 3 hosts", {"size": 15}),
    ({"size": 2}, 3, "PG412", "a global batch of 2 has less than one example for each of 3 hosts", {"size": 3}),
])  # fmt: skip
def test_shares_that_do_not_come_out_even_are_told_before_a_step(
    photo_folder: Path, batch: dict[str, Any], hosts: int, code: str, said: str, mended: dict[str, Any]
) -> None:
    """For the hosts that a spec names, as `validate` says it; each advice, followed, leaves nothing."""
    from pipegen.data.collect import collect
    from pipegen.phases.compilation import inspect

    def findings(batch: dict[str, Any], **more: Any) -> list[Any]:
        sections = {
            "pipegen": 1, "source": {"image_folder": {"path": str(photo_folder)}}, "splits": {"parts": {"train": 31, "validation": 12}},
            "transforms": [{"resize": {"size": 8}}], "batch": batch, "runtime": {"shard": {"index": 0, "count": hosts}, **more},
        }  # fmt: skip
        looked = inspect(sections)
        found = list(looked.diagnostics.sorted())
        if looked.spec is not None:
            found += collect(looked.spec.model, locate=looked.loaded.locate.label, base=looked.loaded.base).diagnostics.sorted()
        return [finding for finding in found if finding.code in ("PG412", "PG667")]

    found = findings(batch)
    assert [finding.code for finding in found] == [code]
    assert said in found[0].message
    assert findings({**batch, **mended}) == []
    if batch["size"] == 16:
        assert "5 + 5 + 6" in found[0].help[1]
        assert findings({"size": 16}, shares="uneven") == []


@pytest.mark.tf
def test_uneven_shares_are_the_batch(photo_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    from pipes import RESIZE, pipeline

    import numpy as np

    pipe = pipeline(photo_folder, {"shares": "uneven"}, transforms=[RESIZE, "random_flip"], batch={"size": 16})
    whole = next(iter(pipe.dataset("train", epoch=1)))
    parts = [next(iter(pipe.dataset("train", epoch=1, shard=(index, 3)))) for index in range(3)]
    assert [len(labels) for _, labels in parts] == [5, 5, 6]
    for joined, part in zip(zip(*parts, strict=True), whole, strict=True):
        np.testing.assert_array_equal(np.concatenate(joined), part)
    even = pipeline(photo_folder, transforms=[RESIZE, "random_flip"], batch={"size": 16})
    with pytest.raises(ValueError, match=r"does not divide among 3 hosts: use a multiple of 3, or .*uneven"):
        even.dataset("train", shard=(0, 3))
    with pytest.raises(ValueError, match="share 3 of 3 is out of range"):
        pipe.dataset("train", shard=(3, 3))
    assert "PG667" not in caplog.text
    pipeline(photo_folder, {"shard": {"index": 1, "count": 2}}, transforms=[RESIZE], batch={"size": 4, "remainder": "keep"},
             splits={"parts": {"train": 35, "validation": 8}})  # fmt: skip
    assert "PG667" in caplog.text
