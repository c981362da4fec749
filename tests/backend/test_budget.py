"""Threads and memory: what machine, container and spec allow, on made-up cgroup trees; and the dataset options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipegen.spec.models import Runtime

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

MIB = 2**20


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 8 cores with 1,000 MiB to spare."""
    from pipegen import memory

    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    monkeypatch.setattr(memory, "_machine_available", lambda: 1000 * MIB)


def tree(root: Path, **files: str) -> Path:
    """A cgroup tree; `__` stands for `/` and a trailing part after the first dot stays."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(("files", "cores"), [
    ({}, 8),
    ({"cpu.max": "max 100000"}, 8),
    ({"cpu.max": "200000 100000"}, 2),
    ({"cpu.max": "150000 100000"}, 2),
    ({"cpu.max": "20000 100000"}, 1),
    ({"cpu.max": "1600000 100000"}, 8),
    ({"cpu__cpu.cfs_quota_us": "-1", "cpu__cpu.cfs_period_us": "100000"}, 8),
    ({"cpu__cpu.cfs_quota_us": "300000", "cpu__cpu.cfs_period_us": "100000"}, 3),
    ({"cpu__cpu.cfs_quota_us": "300000"}, 8),
])  # fmt: skip
def test_cores_follow_the_container_s_quota(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    from pipegen.memory import available_cores, threads

    root = tree(tmp_path, **files)
    assert available_cores(root) == cores
    assert threads(Runtime(), root) == cores
    assert threads(Runtime(threads=5), root) == 5


@pytest.mark.parametrize(("files", "mib"), [
    ({}, 1000),
    ({"memory.max": "max", "memory.current": str(900 * MIB)}, 1000),
    ({"memory.max": str(500 * MIB), "memory.current": str(200 * MIB)}, 300),
    ({"memory.max": str(500 * MIB), "memory.current": str(200 * MIB), "memory.stat": f"anon 5\ninactive_file {100 * MIB}\nfile 9"}, 400),
    ({"memory.max": str(5000 * MIB), "memory.current": str(200 * MIB)}, 1000),
    ({"memory.max": str(500 * MIB), "memory.current": str(600 * MIB)}, 0),
    ({"memory.max": str(500 * MIB)}, 1000),
    ({"memory__memory.limit_in_bytes": str(400 * MIB), "memory__memory.usage_in_bytes": str(100 * MIB)}, 300),
    ({"memory__memory.limit_in_bytes": str(400 * MIB), "memory__memory.usage_in_bytes": str(100 * MIB),
      "memory__memory.stat": f"total_inactive_file {50 * MIB}"}, 350),
    ({"memory__memory.limit_in_bytes": "9223372036854771712", "memory__memory.usage_in_bytes": str(100 * MIB)}, 1000),
])  # fmt: skip
def test_memory_follows_the_container_s_limit(tmp_path: Path, files: dict[str, str], mib: int) -> None:
    from pipegen.memory import available_memory, ram_budget

    root = tree(tmp_path, **files)
    assert available_memory(root) == mib * MIB
    assert ram_budget(Runtime(), root) == mib * MIB // 2
    assert ram_budget(Runtime(ram_budget=123 * MIB), root) == 123 * MIB


def test_the_real_machine_has_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    from pipegen.memory import available_cores, available_memory

    assert available_cores() >= 1
    assert available_memory() > 2**26


@pytest.mark.smoke
def test_options_come_from_the_runtime_section() -> None:
    import tensorflow as tf

    from pipegen.backend.process.devices import make_options

    options = make_options(Runtime(threads=3, ram_budget=64 * MIB))
    assert options.deterministic
    assert options.threading.private_threadpool_size == 3
    assert options.autotune.ram_budget == 64 * MIB
    assert options.autotune.enabled is False, "its thread may hold up whoever lets an iterator go, for up to a minute"
    assert options.experimental_optimization.apply_default_optimizations is False
    assert options.experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.OFF


@pytest.mark.nightly
def test_every_dataset_carries_them(photo_folder: Path) -> None:
    from pipes import RESIZE, pipeline

    pipe = pipeline(photo_folder, {"threads": 3, "ram_budget": "64MiB"}, transforms=[RESIZE])
    derived: list[Any] = [pipe.train, pipe.validation, pipe.dataset("train"), pipe.train.map(lambda x, y: x), pipe.train.repeat()]
    for ds in derived:
        assert ds.options().threading.private_threadpool_size == 3
        assert ds.options().autotune.ram_budget == 64 * MIB
        assert ds.options().autotune.enabled is False
        assert ds.options().experimental_optimization.apply_default_optimizations is False
