"""The checks of `pipegen doctor`: the facts about a machine that they share, their results, and the loop over them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pipegen.frozen import dataclass
from pipegen.memory import Cgroup, read_text
from pipegen.observe.asking import ask
from pipegen.observe.storage import Needs, files_of

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A mounted file system: the mount point, its type such as `nfs4`, the device, and the device's number as `MAJOR:MINOR`."""

    place: str
    kind: str
    device: str
    number: str


@dataclass(frozen=True)
class Machine:
    """A machine, with the folder of `proc`, `sys` and `dev`, and the environment variables."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def read(self, name: str) -> str:
        """Reads a file; "" if it cannot be read."""
        return read_text(self.root / name) or ""

    def matching(self, pattern: str) -> list[Path]:
        """Lists the files that match a pattern."""
        return sorted(self.root.glob(pattern))

    @cached_property
    def cgroup(self) -> Cgroup:
        """The control groups of this process."""
        return Cgroup(self.root)

    @cached_property
    def processor(self) -> dict[str, str]:
        """The entries of `/proc/cpuinfo` for the first processor."""
        first = self.read("proc/cpuinfo").split("\n\n", 1)[0]
        return {name.strip(): value.strip() for line in first.splitlines() for name, _, value in [line.partition(":")]}

    @property
    def processors(self) -> int:
        """Number of processors of the machine."""
        return sum(line.startswith("processor") for line in self.read("proc/cpuinfo").splitlines())

    @property
    def affinity(self) -> int:
        """Number of processors that this process may use."""
        pairs = [part.split("-") for part in self.status("Cpus_allowed_list").split(",") if part]  # such as `0-3,8`
        return sum(int(pair[-1]) - int(pair[0]) + 1 for pair in pairs) or self.processors

    def status(self, name: str) -> str:
        """Reads a value of `/proc/self/status`; "" if there is none."""
        found = re.search(rf"^{name}:\s*(.*)$", self.read("proc/self/status"), re.MULTILINE)
        return found[1] if found else ""

    @property
    def open_files(self) -> tuple[float, float] | None:
        """The soft and the hard limit of open files."""
        found = re.search(r"^Max open files\s+(\S+)\s+(\S+)", self.read("proc/self/limits"), re.MULTILINE)
        if found is None:
            return None
        soft, hard = (float(limit.replace("unlimited", "inf")) for limit in found.groups())
        return soft, hard

    def mount_of(self, path: Path) -> Mount | None:
        """Finds the mount of a path: the longest mount point, and the last of several at it."""
        found = None
        for line in self.read("proc/self/mountinfo").splitlines():
            before, _, behind = line.partition(" - ")
            fields, (kind, device) = before.split(), behind.split()[:2]
            place = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
            if path.is_relative_to(place) and (found is None or len(place) >= len(found.place)):
                found = Mount(place, kind, device, fields[2])
        return found

    def rotational(self, mount: Mount) -> str | None:
        """Reads the kernel's flag of a mount's disk: `1` for a rotational one, as virtual disks often are called; `None` without a disk."""
        block = self.root / "sys/dev/block" / mount.number
        found = (read_text(folder / "queue/rotational") for folder in (block, block.resolve().parent))
        return next((said for said in found if said is not None), None)


Verdict = Literal["ok", "note", "warning", "error"]
VERDICTS: tuple[Verdict, ...] = ("ok", "note", "warning", "error")
"""From the best to the worst. A note is worth knowing, a warning costs time, an error keeps pipegen or a device from working."""


@dataclass(frozen=True)
class Line:
    """A result of a check: its subject in a word or two, the fact, the verdict on it, a remedy or "", and the fact as plain values."""

    about: str
    fact: str
    verdict: Verdict = "ok"
    remedy: str = ""
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Converts the line to plain values."""
        return {**vars(self), "remedy": self.remedy or None}


def judged(about: str, fact: str, figures: dict[str, Any], *problems: tuple[bool, Verdict, str]) -> Line:
    """Makes a line with the verdict and the remedy of the first of several problems that is there, else with `ok`."""
    verdict, remedy = next(((verdict, remedy) for is_there, verdict, remedy in problems if is_there), ("ok", ""))
    return Line(about, fact, verdict, remedy, figures)


def worst(lines: Iterable[Line]) -> Verdict:
    """Finds the worst verdict of several lines."""
    return max((line.verdict for line in lines), key=VERDICTS.index, default="ok")


@dataclass
class Examination:
    """The subject of the checks: the machine, the needs of a spec or a folder of data, and TensorFlow's answers, by default asked for."""

    machine: Machine = field(default_factory=Machine)
    needs: Needs | None = None
    folder: str | None = None
    answered: dict[str, Any] | None = None

    @cached_property
    def answers(self) -> dict[str, Any]:
        """TensorFlow's answers; after a failure also `failed` and `doing`."""
        return ask(self.machine.environment) if self.answered is None else self.answered

    @property
    def cores(self) -> int:
        """The cores that a pipeline takes: those of the affinity, or fewer by the control group's quota."""
        quota = self.machine.cgroup.cpu_quota
        return max(1, min(self.machine.affinity, int(quota + 0.5)) if quota else self.machine.affinity)

    @cached_property
    def files(self) -> list[str]:
        """Files of the data; a sample of very many."""
        if self.folder is not None:
            return files_of(self.folder)
        return [] if self.needs is None else self.needs.files


Check = Callable[[Examination], Iterable[Line]]


def examine(examination: Examination, checks: tuple[Check, ...]) -> Iterator[Line]:
    """Runs checks, such as all of `pipegen.observe.doctor.CHECKS`; a failure yields a line, too."""
    for check in checks:
        try:
            yield from check(examination)
        except Exception as error:  # odd machines are examined, too
            about = check.__module__.rpartition(".")[2].replace("_", " ")
            yield Line(about, f"cannot be examined here: {type(error).__name__}: {error}", "note")
