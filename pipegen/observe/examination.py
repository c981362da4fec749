"""Runs the checks one after another, and holds what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pipegen.observe.asking import ask
from pipegen.observe.machine import Machine
from pipegen.observe.storage import files_of

if TYPE_CHECKING:
    from pipegen.observe.storage import Needs


Verdict = Literal["ok", "note", "warning", "error"]
VERDICTS: tuple[Verdict, ...] = ("ok", "note", "warning", "error")
"""From the best to the worst. A note is worth knowing, a warning costs time, an error keeps pipegen or a device from working."""


@dataclass(frozen=True)
class Line:
    """Holds a line of the examination.

    Attributes:
        about: What it is about, in a word or two.
        fact: What was found.
        verdict: How good that is.
        remedy: What to do about it; empty where there is nothing to do.
        figures: The same as plain values.
    """

    about: str
    fact: str
    verdict: Verdict = "ok"
    remedy: str = ""
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {"about": self.about, "fact": self.fact, "verdict": self.verdict, "remedy": self.remedy or None, "figures": self.figures}


def worst(lines: Iterable[Line]) -> Verdict:
    """Returns the worst verdict of several lines."""
    return max((line.verdict for line in lines), key=VERDICTS.index, default="ok")


@dataclass
class Examination:
    """Holds what the checks look at.

    Attributes:
        machine: The machine.
        needs: What a spec asks for, where one was named.
        folder: The data to measure the storage of, where a spec does not say.
        answered: TensorFlow's answers; by default another process is asked.
    """

    machine: Machine = field(default_factory=Machine)
    needs: Needs | None = None
    folder: str | None = None
    answered: dict[str, Any] | None = None

    @cached_property
    def answers(self) -> dict[str, Any]:
        """Asks TensorFlow once; the answers are what it says, and where that failed `failed` and `doing`."""
        return ask(self.machine.environment) if self.answered is None else self.answered

    @property
    def cores(self) -> int:
        """Returns the cores that a pipeline takes: those of the affinity, or fewer by the control group's quota."""
        quota = self.machine.cgroup.cpu_quota
        return max(1, min(self.machine.affinity, round(quota)) if quota else self.machine.affinity)

    @cached_property
    def files(self) -> list[str]:
        """Lists the files of the data; of very many some."""
        if self.folder is not None:
            return files_of(self.folder)
        return [] if self.needs is None else self.needs.files


Check = Callable[[Examination], Iterator[Line]]


def examine(examination: Examination, checks: tuple[Check, ...]) -> Iterator[Line]:
    """Runs checks, such as all of `pipegen.observe.doctor.CHECKS`; one that fails is a line, too."""
    for check in checks:
        try:
            yield from check(examination)
        except Exception as error:  # an odd machine is what this is for
            about = check.__module__.rpartition(".")[2].replace("_", " ")
            yield Line(about, f"cannot be examined here: {type(error).__name__}: {error}", "note")
