"""Keeps what was measured on this machine: how its costs differ from the model's (`profile --save`), and which `runtime:` is fast (`tune`).

A file for each machine lies in the user's cache folder: a home folder may be shared by many. Nothing in it changes what a model sees. The
environment variable `PIPEGEN_MACHINE` names another file, or is `off`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.kept import keep, open_kept, user_folder
from pipegen.memory import available_cores
from pipegen.phases.hosts import resolve_share
from pipegen.plan.cost import ASSUMED_FILE, Circumstances
from pipegen.release import __version__
from pipegen.terminal import log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipegen.spec.models import PipelineSpec

VARIABLE = "PIPEGEN_MACHINE"
FOLDER = "machines"
_VERSION = 1
_LARGEST = 1 << 20
"""Bytes that such a file never has; what is larger is none."""
_FACTORS = (0.01, 100.0)
"""Between these lies what can be measured; anything else is a mistake."""


@dataclass(frozen=True)
class Tuned:
    """Holds what `pipegen tune` found for one spec. A setting that is `None` stays as pipegen chooses it.

    Attributes:
        threads: For `threads`.
        prefetch: For `prefetch`.
        cache: `memory` or `none`, for `cache`.
        times: How many times as fast that is as pipegen's own choice.
        low: The least of it that the noise allows.
        high: The most.
        examples: Examples in the split that it was measured on.
        date: When, such as 2026-11-23.
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
        """The settings, as `runtime:` has them."""
        given = {"cache": self.cache, "threads": self.threads, "prefetch": self.prefetch}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.settings.items()) or "nothing to change"

    @property
    def says(self) -> str:
        """Says what it is and where it comes from, in a line."""
        gain = f"{self.times:.2f} × ({self.low:.2f} to {self.high:.2f}) as fast"
        return f"{self}, which `pipegen tune` found on this machine on {self.date}: {gain}"

    def suits(self, examples: int) -> bool:
        """Returns whether it was measured on about as many examples."""
        return 0.9 * self.examples <= examples <= 1.1 * self.examples


@dataclass(frozen=True)
class Machine:
    """Holds what is known of this machine.

    Attributes:
        factors: How many times the model's costs each kind of work takes; see `plan/cost.py`.
        fitted: When these were measured; empty without any.
        tuned: What `pipegen tune` found, by `phases/specs.py::tuned_key` of the spec.
    """

    factors: Mapping[str, float] = field(default_factory=dict)
    fitted: str = ""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)

    def with_factors(self, factors: Mapping[str, float], date: str) -> Machine:
        """Returns it with factors that were measured now; those of other kinds of work stay."""
        return replace(self, factors={**self.factors, **factors}, fitted=date)

    def with_tuned(self, key: str, found: Tuned) -> Machine:
        """Returns it with what was found for a spec, in place of an earlier answer."""
        return replace(self, tuned={**self.tuned, key: found})


_seen: dict[str, tuple[tuple[int, int], Machine]] = {}
_ignored = [0]


@contextmanager
def ignored() -> Iterator[None]:
    """Leaves out what is known of the machine while it is measured anew."""
    _ignored[0] += 1
    try:
        yield
    finally:
        _ignored[0] -= 1


def machine_file() -> Path | None:
    """Returns where the file of this machine is, or would be; `None` where it is switched off, or the user has no folder for it."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named == "off" else Path(named).absolute()
    folder = user_folder(FOLDER)
    return folder / f"{_name()}.json" if folder is not None else None


def circumstances(
    spec: PipelineSpec, cores: int, *, examples: int | None = None, file_bytes: float | None = None, stored: int | None = None
) -> Circumstances:
    """Returns what the cost of a split depends on.

    Args:
        spec: The spec.
        cores: Cores that this process may use.
        examples: Examples in the split, where the data is known.
        file_bytes: The mean size of a stored record, where the data is known.
        stored: The bytes that its source keeps in memory, where the data is known.
    """
    used = cores if spec.runtime.threads == "auto" else spec.runtime.threads
    hosts = resolve_share(spec.runtime).count
    return Circumstances(file_bytes or ASSUMED_FILE, used, examples, not file_bytes, machine().factors, hosts, stored)


def machine() -> Machine:
    """Returns what is known of this machine. A file that cannot be read is left out, and a line in the log says so."""
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
    """Writes what is known of this machine; the result is the file, or `None` where it is switched off.

    Raises:
        OSError: When it cannot be written.
    """
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
        return _parsed(json.loads(text))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("%s is left out, which keeps what was measured on this machine: %s", file, str(error) or type(error).__name__)
        return Machine()


def _parsed(content: Any) -> Machine:
    """Raises `ValueError`, `TypeError`, `KeyError` or `AttributeError` for what is no such file."""
    if content["version"] != _VERSION:
        raise ValueError(f"it is of version {content['version']}, and this pipegen writes version {_VERSION}")
    factors = {str(name): float(value) for name, value in content["factors"].items()}
    if not all(math.isfinite(value) and _FACTORS[0] <= value <= _FACTORS[1] for value in factors.values()):
        raise ValueError("it has a factor that nothing can be measured to have")
    tuned = {str(key): Tuned(**found) for key, found in content["tuned"].items()}
    for found in tuned.values():
        wrong = [v for v in (found.threads, found.prefetch) if v is not None and (type(v) is not int or not 0 < v <= 1024)]
        if wrong or found.cache not in (None, "memory", "none"):
            raise ValueError("it has a setting that `runtime` does not take")
        float(found.times), float(found.low), float(found.high), int(found.examples)
    return Machine(factors, str(content["fitted"]), tuned)


def _name() -> str:
    """Names this machine: another processor, or a container with fewer cores, is another one."""
    about = "\n".join((os.uname().nodename, _processor(), str(available_cores())))
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return os.uname().machine
