"""Reads a machine through `/proc`, `/sys`, `/dev` and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipegen.memory import Cgroup, read_text

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """Holds where a folder is mounted from.

    Attributes:
        place: The mount point.
        kind: The kind of file system, such as `ext4` or `nfs4`.
        device: What is mounted.
        number: The device's number, as `MAJOR:MINOR`.
    """

    place: str
    kind: str
    device: str
    number: str


@dataclass(frozen=True)
class Machine:
    """Reads what a machine is.

    Attributes:
        root: Where `proc`, `sys` and `dev` are.
        environment: The environment's variables.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def read(self, name: str) -> str:
        """Returns what a file says; nothing where it cannot be read."""
        return read_text(self.root / name) or ""

    def exists(self, name: str) -> bool:
        """Returns whether there is such a file."""
        return (self.root / name).exists()

    def matching(self, pattern: str) -> list[Path]:
        """Returns the files that match a pattern."""
        return sorted(self.root.glob(pattern))

    @cached_property
    def cgroup(self) -> Cgroup:
        """Finds the control groups of this process."""
        return Cgroup(self.root)

    @cached_property
    def processor(self) -> dict[str, str]:
        """Reads what `/proc/cpuinfo` says of the first processor."""
        first = self.read("proc/cpuinfo").split("\n\n", 1)[0]
        return {name.strip(): value.strip() for line in first.splitlines() for name, _, value in [line.partition(":")]}

    @property
    def processors(self) -> int:
        """Returns how many processors the machine has."""
        return sum(line.startswith("processor") for line in self.read("proc/cpuinfo").splitlines())

    @property
    def affinity(self) -> int:
        """Returns on how many of them this process may run."""
        return self._ranges(self.status("Cpus_allowed_list")) or self.processors

    def status(self, name: str) -> str:
        """Returns a value of `/proc/self/status`."""
        found = re.search(rf"^{name}:\s*(.*)$", self.read("proc/self/status"), re.MULTILINE)
        return found[1] if found else ""

    def memory(self, name: str) -> int | None:
        """Returns bytes that `/proc/meminfo` names."""
        found = re.search(rf"^{name}:\s*(\d+) kB", self.read("proc/meminfo"), re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    @property
    def open_files(self) -> tuple[float, float] | None:
        """Returns how many files a process may have open, and to how many it may raise that."""
        found = re.search(r"^Max open files\s+(\S+)\s+(\S+)", self.read("proc/self/limits"), re.MULTILINE)
        return None if found is None else (_limit(found[1]), _limit(found[2]))

    def mount_of(self, path: Path) -> Mount | None:
        """Returns the mount that a path lies in: of those that reach furthest, the last."""
        found = None
        for line in self.read("proc/self/mountinfo").splitlines():
            before, _, behind = line.partition(" - ")
            fields, (kind, device) = before.split(), behind.split()[:2]
            place = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
            if path.is_relative_to(place) and (found is None or len(place) >= len(found.place)):
                found = Mount(place, kind, device, fields[2])
        return found

    def rotational(self, mount: Mount) -> str | None:
        """Returns what the kernel says of a mount's disk: `1` for one that spins, as virtual disks often say; `None` without a disk."""
        block = self.root / "sys/dev/block" / mount.number
        for folder in (block, block.resolve().parent):
            said = read_text(folder / "queue/rotational")
            if said is not None:
                return said
        return None

    @staticmethod
    def _ranges(text: str) -> int:
        """Returns how many numbers a list such as `0-3,8` has."""
        pairs = [part.split("-") for part in text.split(",") if part]
        return sum(int(pair[-1]) - int(pair[0]) + 1 for pair in pairs)


def _limit(text: str) -> float:
    return float("inf") if text == "unlimited" else float(text)
