"""Finds how much memory and how many cores this process may use, containers included."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime

CGROUP = Path("/sys/fs/cgroup")


def threads(runtime: Runtime, root: Path = CGROUP) -> int:
    """Threads of the pipeline's own pool: what the spec says, else the cores that this process may use."""
    if runtime.threads != "auto":
        return runtime.threads
    return available_cores(root)


def available_cores(root: Path = CGROUP) -> int:
    """Cores by affinity, or fewer where a container's quota says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota(root)
    return max(1, min(cores, int(quota + 0.5)) if quota else cores)


def _cpu_quota(root: Path) -> float | None:
    text = read_text(root / "cpu.max")
    if text is not None:
        limit, _, period = text.partition(" ")
        return None if limit == "max" else int(limit) / int(period or 100_000)
    limit_v1, period_v1 = read_text(root / "cpu/cpu.cfs_quota_us"), read_text(root / "cpu/cpu.cfs_period_us")
    if limit_v1 is None or period_v1 is None or int(limit_v1) <= 0:
        return None
    return int(limit_v1) / int(period_v1)


def ram_budget(runtime: Runtime, root: Path = CGROUP) -> int:
    """Bytes for caches and buffers: what the spec says, else half of what machine and container leave free."""
    if runtime.ram_budget != "auto":
        return runtime.ram_budget
    return available_memory(root) // 2


def available_memory(root: Path = CGROUP) -> int:
    """Bytes that this process could still take: the machine's available memory, or what its container has left."""
    free = [_machine_available()]
    for limit_name, used_name, stat_name in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        limit, used = read_text(root / limit_name), read_text(root / used_name)
        if limit is not None and used is not None and limit != "max":
            free.append(int(limit) - int(used) + _reclaimable(root / stat_name))
    return max(0, min(free))


def _machine_available() -> int:
    text = read_text(Path("/proc/meminfo"))
    for line in (text or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4 * 2**30


def _reclaimable(stat: Path) -> int:
    """File pages that the kernel gives back under pressure."""
    for line in (read_text(stat) or "").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0


def read_text(path: Path) -> str | None:
    """Returns what a file says, without the space around it, or `None` where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
