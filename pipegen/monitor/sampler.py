"""Measures a run at a point in time, and says when to measure again so that it costs next to nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pipegen.memory import Cgroup, available_cores
from pipegen.monitor.gpu import Gpus
from pipegen.monitor.processes import Tree, Used

SHARE = 0.005
"""The share of a core that measuring may take: where a sample is dear, they are further apart."""


class Sampler:
    """Measures a process, its descendants and the machine.

    Args:
        every: Seconds between samples, or more where a sample is dear.
        share: The share of one core that measuring may take.
        clock: Gives the processor seconds of what measures; that of the thread where a process watches itself.

    Raises:
        ModuleNotFoundError: Without psutil.
    """

    def __init__(self, every: float, *, share: float = SHARE, clock: Any = time.process_time) -> None:
        import psutil

        self._psutil: Any = psutil
        self._cgroup, self._gpus = Cgroup(), Gpus()
        self._every, self._share, self._clock = every, share, clock
        self._owns_cpu, self._owns_memory = self._cgroup.owns("cpuacct"), self._cgroup.owns("memory")
        self._cost = 0.0
        """Processor seconds from one sample to the next, whatever is done with it."""

    def start(self, pid: int) -> None:
        """Begins to measure a process."""
        self._tree = Tree(pid)
        self.began = time.time()
        self._start = time.monotonic()
        self._before = self._counters()
        self._psutil.cpu_percent(percpu=True)
        self._spent = self._clock()

    def about(self) -> dict[str, Any]:
        """Returns what holds for the whole run."""
        return {
            "event": "start",
            "version": 1,
            "time": round(self.began, 3),
            "cores": os.cpu_count(),
            "cores_granted": available_cores(),
            "memory": self._psutil.virtual_memory().total,
            "memory_granted": self._cgroup.memory_limit,
            "gpus": self._gpus.about,
            "no_gpu": self._gpus.absent or None,
            "every": self._every,
        }

    @property
    def seconds(self) -> float:
        """Returns the time since the run began."""
        return time.monotonic() - self._start

    def sample(self) -> dict[str, Any]:
        """Returns figures of now, and rates since the sample before."""
        now, before = self._counters(), self._before
        self._before = now
        passed = max(now["at"] - before["at"], 1e-6)

        def rate(name: str) -> float | None:
            counted, earlier = now[name], before[name]
            return None if counted is None or earlier is None else max(0.0, counted - earlier) / passed

        tree: Used = now["tree"]
        memory = self._psutil.virtual_memory()
        return {
            "t": round(now["at"] - self._start, 3),
            "cpu": self._psutil.cpu_percent(percpu=True),
            "run": {
                "processes": tree.processes,
                "cores": _rounded(rate("cpu"), 3),
                "rss": tree.rss,
                "read": _rounded(rate("read")),
                "written": _rounded(rate("written")),
            },
            "machine": {"memory": memory.total - memory.available}
            | {name: _rounded(rate(name)) for name in ("disk_read", "disk_written", "received", "sent")},
            "cgroup": self._of_cgroup(rate) if self._owns_cpu or self._owns_memory else None,
            "gpu": self._gpus.read(),
        }

    def pause(self) -> float:
        """Returns seconds until the next sample, by what has been spent since it was asked last."""
        spent = self._clock()
        self._cost = max(spent - self._spent, 0.7 * self._cost)
        self._spent = spent
        return max(self._every, self._cost / self._share)

    def _of_cgroup(self, rate: Any) -> dict[str, Any]:
        throttled, periods = rate("throttled"), rate("periods")
        return {
            "cores": _rounded(rate("cgroup"), 3),
            "memory": self._cgroup.memory_used if self._owns_memory else None,
            "throttled": _rounded(throttled / periods, 3) if throttled is not None and periods else None,
        }

    def _counters(self) -> dict[str, Any]:
        tree = self._tree.used()
        disk = self._psutil.disk_io_counters() if Path("/proc/diskstats").exists() else None
        net = [n for name, n in self._psutil.net_io_counters(pernic=True).items() if name != "lo"]
        throttled = self._cgroup.throttled or (None, None)
        return {
            "at": time.monotonic(),
            "tree": tree,
            "cpu": tree.cpu_s,
            "read": tree.read,
            "written": tree.written,
            "disk_read": disk.read_bytes if disk else None,
            "disk_written": disk.write_bytes if disk else None,
            "received": sum(n.bytes_recv for n in net),
            "sent": sum(n.bytes_sent for n in net),
            "cgroup": self._cgroup.cpu_seconds if self._owns_cpu else None,
            "throttled": throttled[0],
            "periods": throttled[1],
        }


def _rounded(value: float | None, digits: int | None = None) -> float | None:
    return None if value is None else round(value, digits)
