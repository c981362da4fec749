"""Holds what a check says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

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
