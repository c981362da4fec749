"""Measurements of this machine: factors of its costs (`profile --save`), and fast settings of `runtime:` (`tune`).

They lie in the user's cache folder, in a file for each machine, since machines may share a home folder. They never change what a model
sees. The environment variable `PIPEGEN_MACHINE` names another file, or is `off`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from pathlib import Path

from pipegen.frozen import dataclass
from pipegen.kept import keep, open_kept, user_folder
from pipegen.memory import available_cores
from pipegen.phases.hosts import resolve_share
from pipegen.plan.cost import ASSUMED_FILE, Circumstances
from pipegen.release import __version__
from pipegen.spec.models import PipelineSpec
from pipegen.terminal import log

VARIABLE = "PIPEGEN_MACHINE"
FOLDER = "machines"
_VERSION = 1
_LARGEST = 1 << 20  # the most bytes of a valid file
_FACTORS = (0.01, 100.0)  # the range of valid factors


@dataclass(frozen=True)
class Tuned:
    """The settings that `pipegen tune` found for one spec. A setting of `None` stays as pipegen chooses it.

    `times` is the speed-up over pipegen's own choice, `low` and `high` are the bounds of its confidence interval. The measured split had so
    many `examples`; the date is such as 2026-11-23.
    """

    threads: int | None = None
    prefetch: int | None = None
    cache: str | None = None
    times: float = 1.0
    low: float = 1.0
    high: float = 1.0
    examples: int = 0
    date: str = ""

    @property
    def settings(self) -> dict[str, int | str]:
        """The settings that are set, by their names in `runtime:`."""
        given = {"cache": self.cache, "threads": self.threads, "prefetch": self.prefetch}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.settings.items()) or "nothing to change"

    @property
    def says(self) -> str:
        """The settings and their origin, in a line."""
        gain = f"{self.times:.2f} × ({self.low:.2f} to {self.high:.2f}) as fast"
        return f"{self}, which `pipegen tune` found on this machine on {self.date}: {gain}"

    def suits(self, examples: int) -> bool:
        """Decides if the settings were measured on about this number of examples."""
        return 0.9 * self.examples <= examples <= 1.1 * self.examples


@dataclass(frozen=True)
class Machine:
    """The measurements of this machine.

    `factors` has measured cost over modelled cost, by kind of work (see `plan/cost.py`), and `fitted` their date, or "". `tuned` has the
    settings that `pipegen tune` found, by `phases/specs.py::tuned_key` of the spec.
    """

    factors: Mapping[str, float] = field(default_factory=dict)
    fitted: str = ""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)

    def with_factors(self, factors: Mapping[str, float], date: str) -> Machine:
        """Replaces the factors of some kinds of work."""
        return replace(self, factors={**self.factors, **factors}, fitted=date)

    def with_tuned(self, key: str, found: Tuned) -> Machine:
        """Replaces the settings for a spec."""
        return replace(self, tuned={**self.tuned, key: found})


_seen: dict[str, tuple[tuple[int, int], Machine]] = {}  # the measurements of each file, with the file's time and size when it was read
_ignored = [0]


@contextmanager
def ignored() -> Iterator[None]:
    """Ignores earlier measurements of the machine while it is measured again."""
    _ignored[0] += 1
    try:
        yield
    finally:
        _ignored[0] -= 1


def machine_file() -> Path | None:
    """The path of this machine's file, which need not exist; `None` if it is switched off, or the user has no cache folder."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named == "off" else Path(named).absolute()
    # A container with fewer cores is another machine.
    about = "\n".join((os.uname().nodename, _processor(), str(available_cores())))
    folder = user_folder(FOLDER)
    return folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.json" if folder is not None else None


def circumstances(
    spec: PipelineSpec, cores: int, *, examples: int | None = None, file_bytes: float | None = None, stored: int | None = None
) -> Circumstances:
    """Collects what the cost of a split depends on; the examples and the sizes in bytes are known only with the data.

    `file_bytes` is the mean size of a stored record, `stored` what the source keeps in memory.
    """
    used = cores if spec.runtime.threads == "auto" else spec.runtime.threads
    hosts = resolve_share(spec.runtime).count
    return Circumstances(file_bytes or ASSUMED_FILE, used, examples, not file_bytes, machine().factors, hosts, stored)


def machine() -> Machine:
    """Reads the measurements of this machine. Ignores a file that cannot be read, with a line in the log."""
    file = machine_file()
    if file is None or _ignored[0]:
        return Machine()
    try:
        found = os.stat(file)
    except OSError:
        return Machine()
    state, known = (found.st_mtime_ns, found.st_size), _seen.get(str(file))
    if known is None or known[0] != state:
        known = _seen[str(file)] = state, _read(file)
    return known[1]


def keep_machine(known: Machine) -> Path | None:
    """Writes the measurements of this machine; returns the file, or `None` if it is switched off. Raises `OSError` if it cannot be
    written."""
    file = machine_file()
    if file is None:
        return None
    about = {"pipegen": __version__, "cores": available_cores(), "processor": _processor()}
    tuned = {key: asdict(found) for key, found in known.tuned.items()}
    content = {"version": _VERSION, "machine": about, "fitted": known.fitted, "factors": dict(known.factors), "tuned": tuned}
    keep(file.parent, file.name, [json.dumps(content, indent=1, sort_keys=True).encode()])
    return file


def _read(file: Path) -> Machine:
    try:
        with open_kept(file.parent, file.name) as stream:
            text = stream.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ValueError("it is too large")
        content = json.loads(text)
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']}, and this pipegen writes version {_VERSION}")
        factors = {str(name): float(value) for name, value in content["factors"].items()}
        if not all(math.isfinite(value) and _FACTORS[0] <= value <= _FACTORS[1] for value in factors.values()):
            raise ValueError(f"a factor is not between {_FACTORS[0]:g} and {_FACTORS[1]:g}")
        tuned = {str(key): Tuned(**found) for key, found in content["tuned"].items()}
        for found in tuned.values():
            wrong = [v for v in (found.threads, found.prefetch) if v is not None and (type(v) is not int or not 0 < v <= 1024)]
            if wrong or found.cache not in (None, "memory", "none"):
                raise ValueError("a setting is not valid in `runtime`")
            float(found.times), float(found.low), float(found.high), int(found.examples)
        return Machine(factors, str(content["fitted"]), tuned)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("ignoring the measurements of this machine in %s: %s", file, str(error) or type(error).__name__)
        return Machine()


def _processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return os.uname().machine
