"""Defines what a finding is. The sibling modules render it; nothing here knows YAML or TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from pipegen.diagnostics.paths import is_address


class Severity(str, Enum):
    """Ranks a finding; `error` stops a build."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for errors, growing as it matters less."""
        return ("error", "warning", "info").index(self.value)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text file. Lines and columns count from 1, in characters; the end column is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Label:
    """A place, and what to say about it.

    Attributes:
        span: Where, or `None` when the spec did not come from a file.
        text: A few words written beside the caret; may be empty.
        path: The key path, such as `transforms[2].random_flip.probability`; shown when there is no span.
    """

    span: Span | None
    text: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text at `span` by `replacement`."""

    span: Span
    replacement: str


class Applicability(str, Enum):
    """Says whether a fix may be applied unseen.

    Attributes:
        SAFE: The text says afterwards what it was written to say; `pipegen validate --fix` applies it.
        SUGGESTION: A likely guess at what was meant; only `pipegen validate --unsafe-fixes` applies it.
    """

    SAFE = "safe"
    SUGGESTION = "suggestion"

    @property
    def option(self) -> str:
        """The option of `pipegen validate` that applies such a fix."""
        return "--fix" if self is Applicability.SAFE else "--unsafe-fixes"


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that removes the finding.

    Attributes:
        title: What it does, such as "rename `degree` to `degrees`".
        edits: The changes to the text; all of them or none.
        applicability: Whether it keeps what was meant for certain. There is no default: whoever makes a fix decides.
    """

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Holds one finding.

    Attributes:
        code: `PG` and three digits; `pipegen rule CODE` explains it.
        severity: How bad it is.
        message: One line that makes sense alone.
        labels: Places, the primary one first; the others give context.
        help: What was expected and what to do, a line each.
        fix: An edit that mends it, where there is one; it says how certain it is.
    """

    code: str
    severity: Severity
    message: str
    labels: tuple[Label, ...] = ()
    help: tuple[str, ...] = ()
    fix: Fix | None = None

    @property
    def primary(self) -> Label | None:
        """The place the finding is about."""
        return self.labels[0] if self.labels else None

    @property
    def span(self) -> Span | None:
        """The primary span."""
        return self.labels[0].span if self.labels else None

    @property
    def in_project(self) -> Span | None:
        """The span to annotate in a review: the primary one, or where that lies in a shared base, the `extends` that leads there."""
        spans = [label.span for label in self.labels[: None if self.in_base else 1]]
        return next((span for span in spans if span is not None and not is_address(span.file)), None)

    @property
    def in_base(self) -> bool:
        """Returns whether the primary span lies in a shared base, which is no file of the project."""
        return self.span is not None and is_address(self.span.file)


class FullError(Exception):
    """There are as many findings as were asked for: a file with more is not worth reading on."""


@dataclass(slots=True)
class Diagnostics:
    """Collects the findings of one run, so that all are reported at once, as they came; one more than `most` raises `FullError`."""

    items: list[Diagnostic] = field(default_factory=list)
    most: int | None = None
    _seen: set[Diagnostic] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._seen.update(self.items)

    def add(self, diagnostic: Diagnostic) -> None:
        """Record one finding; an exact repeat is dropped.

        Raises:
            FullError: If it is one more than `most`.
        """
        if diagnostic not in self._seen:
            if self.most is not None and len(self.items) >= self.most:
                raise FullError
            self._seen.add(diagnostic)
            self.items.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Record several findings."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def has_errors(self) -> bool:
        """Returns whether anything recorded is an error."""
        return any(d.severity is Severity.ERROR for d in self.items)

    def sorted(self) -> list[Diagnostic]:
        """By file, position and code; findings without a place come last."""

        def key(d: Diagnostic) -> tuple[bool, str, int, int, str]:
            s = d.span
            return (s is None, s.file if s else "", s.line if s else 0, s.column if s else 0, d.code)

        return sorted(self.items, key=key)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.sorted())

    def __len__(self) -> int:
        return len(self.items)
