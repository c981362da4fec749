"""Samples of the usage of a machine by a process and its descendants: from `/proc`, and of NVIDIA's GPUs by NVML."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from pipegen.memory import Cgroup, available_cores

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATE, _PARENT, _USER, _CHILDREN_SYSTEM, _RSS = 0, 1, 11, 14, 21
"""Indices of fields in `/proc/PID/stat`, counted after the name of the program."""


class Tree:
    """A process and its descendants.

    The counters of an ended process go to the one that waited for it, so the sum over the living ones loses nothing. psutil searches all
    processes of the machine for children, which takes 1.4 ms where 65 run; this takes 0.04 ms.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._proc = str(proc)
        # The kernel may be built without this file; then the parents of all processes are read.
        own = os.getpid()
        self._lists_children = os.path.exists(f"{self._proc}/{own}/task/{own}/children")

    def used(self) -> dict[str, Any]:
        """Reads the usage of the processes.

        That is their number; the seconds of processor time and the bytes read from and written to storage so far, including ended
        descendants, `None` if the system does not tell; and the bytes in memory now, shared memory counted for each process.
        """
        pids = [self._pid]
        below = self._children if self._lists_children else self._by_parent().get
        for pid in pids:  # grows while it is walked
            pids += below(pid) or []
        found = {pid: fields for pid in pids if (fields := self._stat(pid)) is not None}  # the others have just ended
        ticks = sum(int(field) for fields in found.values() for field in fields[_USER : _CHILDREN_SYSTEM + 1])
        pages = sum(int(fields[_RSS]) for fields in found.values())
        moved = list(takewhile(lambda pair: pair is not None, map(self._moved, found)))
        whole = len(moved) == len(found)
        read, written = (sum(pair[i] for pair in moved if pair is not None) if whole else None for i in (0, 1))
        return {"processes": len(found), "cpu": ticks / _TICK, "rss": pages * _PAGE, "read": read, "written": written}

    def _children(self, pid: int) -> list[int]:
        try:
            threads = os.listdir(f"{self._proc}/{pid}/task")
        except OSError:
            return []
        return [int(child) for thread in threads for child in self._text(f"{pid}/task/{thread}/children").split()]

    def _by_parent(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):
            fields = self._stat(int(name)) if name.isdigit() else None
            if fields is not None:
                found.setdefault(int(fields[_PARENT]), []).append(int(name))
        return found

    def _stat(self, pid: int) -> list[bytes] | None:
        fields = self._text(f"{pid}/stat").rpartition(b")")[2].split()
        return fields if len(fields) > _RSS else None

    def _moved(self, pid: int) -> tuple[int, int] | None:
        text = self._text(f"{pid}/io")
        pairs = dict(line.split(b": ") for line in text.splitlines() if b": " in line)
        if b"read_bytes" in pairs and b"write_bytes" in pairs:
            return int(pairs[b"read_bytes"]), int(pairs[b"write_bytes"])
        # A zombie has no counters, and those of another user's process are not readable.
        state = self._stat(pid)
        return (0, 0) if state is None or state[_STATE] == b"Z" else None

    def _text(self, name: str) -> bytes:
        with suppress(OSError):
            file = os.open(f"{self._proc}/{name}", os.O_RDONLY | os.O_CLOEXEC)  # a file object takes three times as long
            try:
                return os.read(file, 1 << 16)
            finally:
                os.close(file)
        return b""


class Gpus:
    """The GPUs of this machine, in NVML's order: the name and the bytes of memory of each, or why there are none."""

    def __init__(self) -> None:
        self.about: list[dict[str, Any]] = []
        self.absent = ""
        self._handles: list[Any] = []
        try:
            import pynvml
        except ImportError:
            self.absent = "nvidia-ml-py is not installed: pip install 'pipegen[monitor]'"
            return
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            for handle in self._handles:
                name = pynvml.nvmlDeviceGetName(handle)  # bytes in older releases of the library
                called = name.decode(errors="replace") if isinstance(name, bytes) else name
                self.about.append({"name": called, "memory": self._figure(handle, "MemoryInfo", "total")})
        except pynvml.NVMLError as error:
            self.absent, self.about, self._handles = f"the NVIDIA driver does not answer ({str(error).lower()})", [], []
        if not self._handles and not self.absent:
            self.absent = "the NVIDIA driver lists none"

    def read(self) -> list[dict[str, int | None]]:
        """Reads the recent load in percent and the used memory in bytes of each; `None` for unknown figures."""
        figures = {"busy": ("UtilizationRates", "gpu"), "memory": ("MemoryInfo", "used")}
        return [{name: self._figure(handle, *where) for name, where in figures.items()} for handle in self._handles]

    def _figure(self, handle: Any, group: str, name: str) -> int | None:
        try:
            return int(getattr(getattr(self._nvml, f"nvmlDeviceGet{group}")(handle), name))
        except self._nvml.NVMLError:  # such as for the load of a part of a GPU (MIG)
            return None


SHARE = 0.005  # the share of a core that measuring may take; if samples are expensive, they are further apart


class Sampler:
    """A sampler of a process, its descendants and the machine, at least `every` so many seconds, by a `SHARE` of one core.

    `clock` reads the processor seconds of the measuring process, or of its thread if a process watches itself.
    """

    def __init__(self, every: float, *, clock: Any = time.process_time) -> None:
        import psutil

        self._psutil: Any = psutil
        self._cgroup, self._gpus = Cgroup(), Gpus()
        self._every, self._clock = every, clock
        self._owns_cpu, self._owns_memory = self._cgroup.owns("cpuacct"), self._cgroup.owns("memory")
        self._cost = 0.0  # processor seconds from one sample to the next

    def start(self, pid: int) -> None:
        """Starts to measure a process."""
        self._tree = Tree(pid)
        self.began = time.time()
        self._start = time.monotonic()
        self._before = self._counters()
        self._psutil.cpu_percent(percpu=True)
        self._spent = self._clock()

    def about(self) -> dict[str, Any]:
        """Makes the first row of the record, with the facts about the machine."""
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
        """Seconds since the run began."""
        return time.monotonic() - self._start

    def sample(self) -> dict[str, Any]:
        """Takes a sample: present figures, and rates since the sample before."""
        now, before = self._counters(), self._before
        self._before = now
        passed = max(now["at"] - before["at"], 1e-6)

        def rate(name: str) -> float | None:
            counted, earlier = now[name], before[name]
            return None if counted is None or earlier is None else max(0.0, counted - earlier) / passed

        memory = self._psutil.virtual_memory()
        throttled, periods = rate("throttled"), rate("periods")
        cgroup = {
            "cores": _rounded(rate("cgroup"), 3),
            "memory": self._cgroup.memory_used if self._owns_memory else None,
            "throttled": _rounded(throttled / periods, 3) if throttled is not None and periods else None,
        }
        return {
            "t": round(now["at"] - self._start, 3),
            "cpu": self._psutil.cpu_percent(percpu=True),
            "run": {
                "processes": now["processes"],
                "cores": _rounded(rate("cpu"), 3),
                "rss": now["rss"],
                "read": _rounded(rate("read")),
                "written": _rounded(rate("written")),
            },
            "machine": {"memory": memory.total - memory.available}
            | {name: _rounded(rate(name)) for name in ("disk_read", "disk_written", "received", "sent")},
            "cgroup": cgroup if self._owns_cpu or self._owns_memory else None,
            "gpu": self._gpus.read(),
        }

    def pause(self) -> float:
        """Computes the seconds until the next sample from the processor time spent since the last call."""
        spent = self._clock()
        self._cost = max(spent - self._spent, 0.7 * self._cost)
        self._spent = spent
        return max(self._every, self._cost / SHARE)

    def _counters(self) -> dict[str, Any]:
        disk = self._psutil.disk_io_counters() if Path("/proc/diskstats").exists() else None
        net = [n for name, n in self._psutil.net_io_counters(pernic=True).items() if name != "lo"]
        throttled = self._cgroup.throttled or (None, None)
        return {
            "at": time.monotonic(),
            **self._tree.used(),
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
