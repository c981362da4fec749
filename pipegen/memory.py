"""Finds how much memory and how many cores this process may use, containers included."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.cgroup import MOUNTED, Cgroup, read_text

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime


def threads(runtime: Runtime, root: Path = MOUNTED) -> int:
    """Threads of the pipeline's own pool: what the spec says, else the cores that this process may use."""
    if runtime.threads != "auto":
        return runtime.threads
    return available_cores(root)


def available_cores(root: Path = MOUNTED) -> int:
    """Cores by affinity, or fewer where a container's quota says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Cgroup(mounted=root).cpu_quota
    return max(1, min(cores, int(quota + 0.5)) if quota else cores)


def ram_budget(runtime: Runtime, root: Path = MOUNTED) -> int:
    """Bytes for caches and buffers: what the spec says, else half of what machine and container leave free."""
    if runtime.ram_budget != "auto":
        return runtime.ram_budget
    return available_memory(root) // 2


def available_memory(root: Path = MOUNTED) -> int:
    """Bytes that this process could still take: the machine's available memory, or what its container has left."""
    free, left = _machine_available(), Cgroup(mounted=root).memory_left
    return free if left is None else min(free, left)


def granted_memory(root: Path = Path("/")) -> tuple[int, str] | None:
    """Returns the bytes that this process may have at most, and who grants them; `None` where nothing says so."""
    limit, total = Cgroup(root).memory_limit, _meminfo("MemTotal", root)
    if limit is not None and (total is None or limit < total):
        return limit, "the control group of this process grants"
    return None if total is None else (total, "this machine has")


def _meminfo(name: str, root: Path = Path("/")) -> int | None:
    lines = (read_text(root / "proc/meminfo") or "").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)


def _machine_available() -> int:
    available = _meminfo("MemAvailable")
    if available is not None:
        return available
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4 * 2**30
