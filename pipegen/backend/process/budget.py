"""Finds how many threads and how much memory this process may use, containers included."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.memory import CGROUP, available_memory, ram_budget, read_text

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime

__all__ = ["available_cores", "available_memory", "ram_budget", "threads"]


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
