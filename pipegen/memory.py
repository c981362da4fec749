"""Memory and cores that this process may use, by the machine and by its control groups."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

MOUNTED = Path("/sys/fs/cgroup")
_NONE = 2**60  # limits from here on mean no limit: version 1 writes the largest number of pages


class Cgroup:
    """The control groups of this process; `root` is the parent of `proc` and `sys`, and they are `mounted` below it by default."""

    def __init__(self, root: Path = Path("/"), mounted: Path | None = None) -> None:
        self._mounted = mounted or root / "sys/fs/cgroup"
        self._own = root / "proc/self/cgroup"
        self._groups: dict[str, list[Path]] = {}

    @cached_property
    def version(self) -> int:
        """2, 1, or 0 if nothing is mounted; a machine with both has its controllers in version 1."""
        if any((self._mounted / name).exists() for name in ("cgroup.controllers", "cpu.max", "memory.max")):
            return 2
        return 1 if any((self._mounted / name).is_dir() for name in ("memory", "cpu")) else 0

    def groups(self, controller: str) -> list[Path]:
        """Lists the folders of a controller's groups: the process's own, then those above it."""
        if controller not in self._groups:
            top, wanted = (self._mounted, "") if self.version == 2 else (self._mounted / controller, controller)
            lines = [line.split(":", 2) for line in (read_text(self._own) or "").splitlines()]
            paths = [parts[2].lstrip("/") for parts in lines if len(parts) == 3 and wanted in parts[1].split(",")]
            # Paths that leave the mount are skipped.
            folder = top / next((path for path in paths if ".." not in path.split("/") and (top / path).is_dir()), "")
            self._groups[controller] = [folder, *(above for above in folder.parents if above == top or top in above.parents)]
        return self._groups[controller]

    # Limits

    @property
    def cpu_quota(self) -> float | None:
        """Number of cores that the groups allow; `None` without a quota."""
        granted = [quota for group in self.groups("cpu") if (quota := _quota(group)) is not None]
        return min(granted, default=None)

    @property
    def memory_limit(self) -> int | None:
        """Bytes that the groups allow; `None` without a limit."""
        return min((limit for _, limit in self._limited() if limit < _NONE), default=None)

    def _limited(self) -> list[tuple[Path, int]]:
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        return [(group, limit) for group in self.groups("memory") if (limit := read_int(group / name)) is not None]

    # Use

    @property
    def memory_used(self) -> int | None:
        """Bytes used by the process's own group, without file pages that the kernel reclaims under pressure."""
        used = self._held(self.groups("memory")[0])
        return used if used is None else max(0, used)

    @property
    def memory_left(self) -> int | None:
        """Bytes left up to the limit; `None` without a limit."""
        return min((max(0, limit - used) for group, limit in self._limited() if (used := self._held(group)) is not None), default=None)

    def _held(self, group: Path) -> int | None:
        used = read_int(group / ("memory.current" if self.version == 2 else "memory.usage_in_bytes"))
        if used is None:
            return None
        counts = read_counts(group / "memory.stat")
        return used - counts.get("total_inactive_file", counts.get("inactive_file", 0))

    @property
    def cpu_seconds(self) -> float | None:
        """Seconds of processor time used by the process's own group."""
        if self.version == 2:
            micros = read_counts(self.groups("cpu")[0] / "cpu.stat").get("usage_usec")
            return None if micros is None else micros / 1e6
        nanos = read_int(self.groups("cpuacct")[0] / "cpuacct.usage")
        return None if nanos is None else nanos / 1e9

    @property
    def throttled(self) -> tuple[int, int] | None:
        """Number of throttled periods, and of all periods; `None` without a quota."""
        counts = read_counts(self.groups("cpu")[0] / "cpu.stat")
        return (counts["nr_throttled"], counts["nr_periods"]) if counts.get("nr_periods") else None

    def owns(self, controller: str) -> bool:
        """Checks if the process has its own group for a controller, rather than that of the machine."""
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
    """Reads a text without surrounding space; `None` if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """Reads a number; `None` if there is none."""
    text = read_text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def read_counts(path: Path) -> dict[str, int]:
    """Reads a file of lines such as `nr_periods 12`."""
    pairs = [line.split() for line in (read_text(path) or "").splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


class Limits(Protocol):
    """Limits in the section `runtime` of a spec."""

    @property
    def threads(self) -> Literal["auto"] | int: ...
    @property
    def ram_budget(self) -> Literal["auto"] | int: ...


def threads(runtime: Limits, root: Path = MOUNTED) -> int:
    """Threads of the pipeline's own pool: by the spec, else the cores that this process may use."""
    return available_cores(root) if runtime.threads == "auto" else runtime.threads


def available_cores(root: Path = MOUNTED) -> int:
    """Cores by affinity, limited by the container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Cgroup(mounted=root).cpu_quota
    return max(1, min(cores, int(quota + 0.5)) if quota else cores)


def ram_budget(runtime: Limits, root: Path = MOUNTED) -> int:
    """Bytes for caches and buffers: by the spec, else half of the available memory."""
    return available_memory(root) // 2 if runtime.ram_budget == "auto" else runtime.ram_budget


def available_memory(root: Path = MOUNTED) -> int:
    """Bytes that this process can still use: the machine's available memory, limited by the container."""
    free, left = _machine_available(), Cgroup(mounted=root).memory_left
    return free if left is None else min(free, left)


def granted_memory(root: Path = Path("/")) -> tuple[int, str] | None:
    """Maximal memory of this process in bytes, with the words for its source; `None` if unknown."""
    limit, total = Cgroup(root).memory_limit, meminfo("MemTotal", root)
    if limit is not None and (total is None or limit < total):
        return limit, "the control group of this process grants"
    return None if total is None else (total, "this machine has")


def _machine_available() -> int:
    free = meminfo("MemAvailable")
    if free is not None:
        return free
    has_pages = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if has_pages else 4 * 2**30


def meminfo(name: str, root: Path = Path("/")) -> int | None:
    """Reads an entry of `/proc/meminfo` in bytes; `None` if there is none."""
    lines = (read_text(root / "proc/meminfo") or "").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
