"""The checks of `pipegen doctor`: what they share, their results, and the loop over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from pipegen.frozen import dataclass
from pipegen.observe.asking import ask
from pipegen.observe.machine import Machine
from pipegen.observe.storage import Needs, files_of

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
        return max(1, min(self.machine.affinity, round(quota)) if quota else self.machine.affinity)

    @cached_property
    def files(self) -> list[str]:
        """Files of the data; a sample of very many."""
        if self.folder is not None:
            return files_of(self.folder)
        return [] if self.needs is None else self.needs.files


Check = Callable[[Examination], Iterator[Line]]


def examine(examination: Examination, checks: tuple[Check, ...]) -> Iterator[Line]:
    """Runs checks, such as all of `pipegen.observe.doctor.CHECKS`; a failure yields a line, too."""
    for check in checks:
        try:
            yield from check(examination)
        except Exception as error:  # odd machines are examined, too
            about = check.__module__.rpartition(".")[2].replace("_", " ")
            yield Line(about, f"cannot be examined here: {type(error).__name__}: {error}", "note")
