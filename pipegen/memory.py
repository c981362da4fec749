"""How much memory and how many cores this process may use, by the machine and by its control groups."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

MOUNTED = Path("/sys/fs/cgroup")
_NONE = 2**60
"""Version 1 writes no limit as the largest number of pages."""


class Cgroup:
    """Finds the control groups of this process.

    Args:
        root: Where `proc` and `sys` are looked for.
        mounted: Where the groups are mounted; below `root` by default.
    """

    def __init__(self, root: Path = Path("/"), mounted: Path | None = None) -> None:
        self._mounted = mounted or root / "sys/fs/cgroup"
        self._own = root / "proc/self/cgroup"
        self._groups: dict[str, list[Path]] = {}

    @cached_property
    def version(self) -> int:
        """Returns 2, 1, or 0 where nothing is mounted; a machine with both keeps the controllers in version 1."""
        if any((self._mounted / name).exists() for name in ("cgroup.controllers", "cpu.max", "memory.max")):
            return 2
        return 1 if any((self._mounted / name).is_dir() for name in ("memory", "cpu")) else 0

    def groups(self, controller: str) -> list[Path]:
        """Returns the folders of a controller's groups, the process's own first, then those above it."""
        if controller not in self._groups:
            top = self._mounted if self.version == 2 else self._mounted / controller
            own = next((path for path in self._paths(controller) if (top / path).is_dir()), "")
            folder = top / own
            self._groups[controller] = [folder, *(above for above in folder.parents if above == top or top in above.parents)]
        return self._groups[controller]

    def _paths(self, controller: str) -> list[str]:
        """Returns the path that the kernel tells, without its leading slash; none that leads out of what is mounted."""
        lines = [line.split(":", 2) for line in (read_text(self._own) or "").splitlines()]
        wanted = "" if self.version == 2 else controller
        paths = [parts[2].lstrip("/") for parts in lines if len(parts) == 3 and wanted in parts[1].split(",")]
        return [path for path in paths if ".." not in path.split("/")]

    # What is granted

    @property
    def cpu_quota(self) -> float | None:
        """Returns how many cores' time the groups grant; `None` without a quota."""
        granted = [quota for group in self.groups("cpu") if (quota := _quota(group)) is not None]
        return min(granted, default=None)

    @property
    def memory_limit(self) -> int | None:
        """Returns bytes that the groups grant; `None` without a limit."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        limits = [limit for group in self.groups("memory") if (limit := read_int(group / name)) is not None and limit < _NONE]
        return min(limits, default=None)

    # What was used

    @property
    def memory_used(self) -> int | None:
        """Returns bytes that the process's own group holds, less file pages that the kernel gives back under pressure."""
        used = self._held(self.groups("memory")[0])
        return used if used is None else max(0, used)

    @property
    def memory_left(self) -> int | None:
        """Returns bytes that the groups still grant; `None` without a limit."""
        name, left = "memory.max" if self.version == 2 else "memory.limit_in_bytes", []
        for group in self.groups("memory"):
            limit, used = read_int(group / name), self._held(group)
            if limit is not None and used is not None:
                left.append(max(0, limit - used))
        return min(left, default=None)

    def _held(self, group: Path) -> int | None:
        used = read_int(group / ("memory.current" if self.version == 2 else "memory.usage_in_bytes"))
        if used is None:
            return None
        counts = read_counts(group / "memory.stat")
        return used - counts.get("total_inactive_file", counts.get("inactive_file", 0))

    @property
    def cpu_seconds(self) -> float | None:
        """Returns seconds of processor time that the process's own group has taken."""
        if self.version == 2:
            micros = read_counts(self.groups("cpu")[0] / "cpu.stat").get("usage_usec")
            return None if micros is None else micros / 1e6
        nanos = read_int(self.groups("cpuacct")[0] / "cpuacct.usage")
        return None if nanos is None else nanos / 1e9

    @property
    def throttled(self) -> tuple[int, int] | None:
        """Returns in how many periods the group was held back, and of how many; `None` without a quota."""
        counts = read_counts(self.groups("cpu")[0] / "cpu.stat")
        return (counts["nr_throttled"], counts["nr_periods"]) if counts.get("nr_periods") else None

    def owns(self, controller: str) -> bool:
        """Returns whether the process has a group of its own there, rather than that of the whole machine."""
        groups = self.groups(controller)
        if self.version == 2:  # the machine's own has no such file
            return (groups[0] / "memory.current").exists()
        return len(groups) > 1 or (self.memory_limit if controller == "memory" else self.cpu_quota) is not None


def _quota(group: Path) -> float | None:
    text = read_text(group / "cpu.max")
    if text is not None:
        limit, _, period = text.partition(" ")
        return None if limit == "max" else int(limit) / int(period or 100_000)
    limit_v1, period_v1 = read_int(group / "cpu.cfs_quota_us"), read_int(group / "cpu.cfs_period_us")
    return limit_v1 / period_v1 if limit_v1 is not None and period_v1 and limit_v1 > 0 else None


def read_text(path: Path) -> str | None:
    """Returns what a file says, without the space around it, or `None` where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """Returns the number that a file says, or `None` where it says none."""
    text = read_text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def read_counts(path: Path) -> dict[str, int]:
    """Returns a file of lines such as `nr_periods 12`."""
    pairs = [line.split() for line in (read_text(path) or "").splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


class Limits(Protocol):
    """What a spec says of the machine: its section `runtime`."""

    @property
    def threads(self) -> Literal["auto"] | int: ...

    @property
    def ram_budget(self) -> Literal["auto"] | int: ...


def threads(runtime: Limits, root: Path = MOUNTED) -> int:
    """Threads of the pipeline's own pool: what the spec says, else the cores that this process may use."""
    if runtime.threads != "auto":
        return runtime.threads
    return available_cores(root)


def available_cores(root: Path = MOUNTED) -> int:
    """Cores by affinity, or fewer where a container's quota says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Cgroup(mounted=root).cpu_quota
    return max(1, min(cores, int(quota + 0.5)) if quota else cores)


def ram_budget(runtime: Limits, root: Path = MOUNTED) -> int:
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
