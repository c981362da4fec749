"""What is said about migrated code: mistakes it made, what changes in meaning, what has no equivalent, what is not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["broken", "mistake", "meaning", "missing", "unresolved", "by hand"]

_TABLE: dict[str, tuple[str, Kind]] = {
    "PG601": ("not-readable", "broken"),
    "PG602": ("not-python-3", "broken"),
    "PG603": ("broken-notebook", "broken"),
    "PG610": ("unknown-value", "unresolved"),
    "PG611": ("unknown-data", "unresolved"),
    "PG612": ("unknown-generator", "unresolved"),
    "PG615": ("edit-by-hand", "by hand"),
    "PG620": ("other-split", "meaning"),
    "PG621": ("other-draws", "meaning"),
    "PG622": ("other-batches", "meaning"),
    "PG623": ("other-pixels", "meaning"),
    "PG624": ("other-classes", "meaning"),
    "PG630": ("no-equivalent", "missing"),
    "PG631": ("unknown-argument", "missing"),
    "PG640": ("augmented-validation", "mistake"),
    "PG641": ("tiny-angle", "mistake"),
    "PG642": ("fit-of-nothing", "mistake"),
    "PG643": ("never-fitted", "mistake"),
    "PG644": ("shuffled-predictions", "mistake"),
    "PG645": ("positional-argument", "mistake"),
    "PG646": ("swallowed-keyword", "mistake"),
    "PG647": ("text-for-boolean", "mistake"),
    "PG648": ("normalised-twice", "mistake"),
    "PG649": ("skipped-data", "mistake"),
    "PG650": ("odd-rescale", "mistake"),
    "PG651": ("odd-zoom", "mistake"),
    "PG652": ("whole-pixel-shift", "mistake"),
    "PG653": ("width-before-height", "mistake"),
    "PG654": ("unequal-preprocessing", "mistake"),
    "PG655": ("flip-probability", "mistake"),
    "PG656": ("subset-without-split", "mistake"),
    "PG657": ("fed-with-zip", "mistake"),
    "PG658": ("black-images", "mistake"),
}

NAMES: dict[str, str] = {code: name for code, (name, _) in _TABLE.items()}
"""The codes and their names."""


@dataclass(frozen=True)
class Finding:
    """One remark.

    Attributes:
        code: `PG6` and two digits.
        line: The line of the code that it is about, from 1; 0 for the whole file.
        message: One sentence that makes sense alone.
        help: What to do about it, or what was done.
    """

    code: str
    line: int
    message: str
    help: str = ""

    @property
    def kind(self) -> Kind:
        """Which part of the report it stands in."""
        return _TABLE[self.code][1]


@dataclass
class Findings:
    """Collects findings; an exact repeat is dropped."""

    items: dict[Finding, None] = field(default_factory=dict)

    def add(self, code: str, line: int, message: str, help: str = "") -> None:
        """Record one finding."""
        self.items.setdefault(Finding(code, line, message, help))

    def of(self, kind: Kind) -> list[Finding]:
        """Those of one kind, by line."""
        return sorted((f for f in self.items if f.kind == kind), key=lambda f: (f.line, f.code, f.message))
