"""Defines what differs between two specs: a change, what it means for the numbers that a model sees, and the whole comparison."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pipegen.diagnostics.diagnostic import Span
from pipegen.spec.source_map import KeyPath, format_path

Kind = Literal["numbers", "perhaps", "speed", "nothing"]
"""What a change is about:

- `numbers`: the model sees other numbers.
- `perhaps`: the specs alone cannot tell: the data lies elsewhere, or a version moved.
- `speed`: where and how fast it runs.
- `nothing`: names, comments, and other words for the same.
"""
GONE = "it is no longer there"
KINDS: tuple[Kind, ...] = ("numbers", "perhaps", "speed", "nothing")


@dataclass(frozen=True, slots=True)
class Change:
    """Holds one difference.

    Attributes:
        kind: What it is about.
        path: Where in a spec, as in `transforms[1].random_flip.axis`.
        text: What differs, in words.
        effect: What that means, in words.
        splits: The splits that it reaches, in words; empty where that goes without saying.
        span: Its place in the second spec, or in the first for what is gone there.
    """

    kind: Kind
    path: KeyPath
    text: str
    effect: str
    splits: str = ""
    span: Span | None = None

    @property
    def gone(self) -> bool:
        """Returns whether it is about something that the second spec does not have."""
        return self.text == GONE

    def as_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        values = asdict(self)
        return values | {"path": format_path(self.path)}


@dataclass(frozen=True, slots=True)
class Draws:
    """Holds what becomes of the random draws.

    Attributes:
        kept: The ids of steps that draw the same numbers in both.
        moved: Those of steps in both that draw others now, and why.
    """

    kept: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds what differs between two specs or locks.

    Attributes:
        names: What the two are called.
        hashes: Their spec hashes; empty for locks of several specs.
        changes: The differences, by kind and then by place.
        draws: What becomes of the random draws.
        notes: What was not compared, in words.
    """

    names: tuple[str, str]
    hashes: tuple[str, str] | tuple[()] = ()
    changes: tuple[Change, ...] = ()
    draws: Draws = field(default_factory=Draws)
    notes: tuple[str, ...] = ()

    @property
    def same_numbers(self) -> bool:
        """Returns whether the model sees the same numbers, as far as the specs alone can tell."""
        return not self.of("numbers")

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Returns the changes of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    def as_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "version": 1,
            "names": list(self.names),
            "spec_hashes": list(self.hashes),
            "same_numbers": self.same_numbers,
            "changes": [change.as_json() for change in self.changes],
            "draws": {"kept": list(self.draws.kept), "moved": [{"id": step, "why": why} for step, why in self.draws.moved]},
            "notes": list(self.notes),
            "summary": {kind: len(self.of(kind)) for kind in KINDS},
        }
