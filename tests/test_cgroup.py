"""Groups of version 1 and 2, nested and not, on made-up trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipegen.memory import Cgroup

MIB = 2**20


def machine(root: Path, own: str, files: dict[str, str]) -> Cgroup:
    for name, text in {"proc/self/cgroup": own, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Cgroup(root)


def test_the_least_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    """As in a SLURM job, whose steps are groups without limits of their own."""
    found = machine(tmp_path, "0::/job/step", {
        "cgroup.controllers": "cpu memory",
        "job/cpu.max": "400000 100000",
        "job/step/cpu.max": "max 100000",
        "job/memory.max": str(900 * MIB),
        "job/memory.current": str(600 * MIB),
        "job/step/memory.max": "max",
        "job/step/memory.current": str(200 * MIB),
        "job/step/memory.stat": f"anon 1\ninactive_file {50 * MIB}",
        "job/step/cpu.stat": "usage_usec 2500000\nnr_periods 0",
    })  # fmt: skip
    assert (found.version, found.cpu_quota, found.memory_limit) == (2, 4.0, 900 * MIB)
    assert (found.memory_left, found.memory_used) == (300 * MIB, 150 * MIB)
    assert (found.cpu_seconds, found.throttled, found.owns("cpu")) == (2.5, None, True)


def test_version_1_has_a_tree_for_each_controller(tmp_path: Path) -> None:
    found = machine(tmp_path, "5:cpu,cpuacct:/docker/a\n4:memory:/docker/b\n0::/x", {
        "cpu/docker/a/cpu.cfs_quota_us": "150000",
        "cpu/docker/a/cpu.cfs_period_us": "100000",
        "cpu/docker/a/cpu.stat": "nr_periods 10\nnr_throttled 4",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
        "cpuacct/docker/a/cpuacct.usage": "3000000000",
        "memory/docker/b/memory.limit_in_bytes": str(500 * MIB),
        "memory/docker/b/memory.usage_in_bytes": str(100 * MIB),
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/memory.usage_in_bytes": str(700 * MIB),
    })  # fmt: skip
    assert (found.version, found.cpu_quota, found.memory_limit, found.memory_left) == (1, 1.5, 500 * MIB, 400 * MIB)
    assert (found.cpu_seconds, found.throttled, found.memory_used) == (3.0, (4, 10), 100 * MIB)


@pytest.mark.parametrize("own", ["0::/", "0::/../../other", "0::/not/mounted/here", "", "garbage"])
def test_inside_a_container_its_group_is_the_root(tmp_path: Path, own: str) -> None:
    found = machine(tmp_path, own, {"cpu.max": "200000 100000", "memory.max": str(MIB), "memory.current": "0"})
    assert found.groups("cpu") == [tmp_path / "sys/fs/cgroup"]
    assert (found.cpu_quota, found.memory_limit, found.owns("memory")) == (2.0, MIB, True)


def test_without_groups_nothing_is_known(tmp_path: Path) -> None:
    found = Cgroup(tmp_path)
    assert (found.version, found.cpu_quota, found.memory_limit, found.memory_left) == (0, None, None, None)
    assert (found.cpu_seconds, found.throttled, found.memory_used, found.owns("memory")) == (None, None, None, False)
