"""Defines what a finding is. The sibling modules render it; nothing here knows YAML or TensorFlow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

PACKAGE, GIT = "pkg:", "git+"
"""Beginnings of the addresses of shared base specs."""


def is_address(file: str) -> bool:
    """Returns whether a file name is the address of a shared base, which is no file of the project."""
    return file.startswith((PACKAGE, GIT))


def relative_path(file: str) -> str:
    """`file` relative to the working directory when it lies inside it, else as it is; with forward slashes.

    A name that is no path, such as `<stdin>` or the address of a shared base, stays as it is.
    """
    if file.startswith("<") or is_address(file):
        return file
    shown = file
    try:
        absolute = os.path.abspath(file)
        relative = os.path.relpath(absolute)
        shown = absolute if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
    except (OSError, ValueError):
        # Another drive, a NUL in the name, or a working directory that is gone: the name as given is the best there is.
        pass
    return shown.replace(os.sep, "/")


def file_uri(file: str) -> str:
    """A URI reference: relative inside the working directory, `file:///…` elsewhere."""
    from urllib.parse import quote

    path = relative_path(file)
    encoded = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    if path.startswith("/"):
        return f"file://{encoded}"
    if len(path) > 1 and path[1] == ":":
        return f"file:///{path[0]}:{encoded[4:]}"
    return encoded


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


Into = Literal["value", "key", "sections", "entry", "source", "step", "before", "after", "arguments", "spec", "transforms", "nothing"]
"""Where lines go, seen from the place that a finding is about (its first label):

- `value`: they are the value there.
- `key`: they are the name there, and wherever the spec uses that name.
- `sections`: they are whole sections, in place of those of the same names.
- `entry`: they are entries of the map there, in place of the one that the finding is about.
- `source`: they are one source, in place of the one that the finding is about.
- `step`: they are one step or several, in place of the one that the finding is about.
- `before`, `after`: they are steps beside that one.
- `arguments`: they are arguments of the step, the source or the feature there; others stay.
- `spec`: they are sections, laid over those of the spec; maps merge.
- `transforms`: they are steps at the end of `transforms`; but a `decode` comes first, and steps that mix examples stay last.
- `nothing`: there are none; what the finding is about goes.
"""


class Advice(str):
    """A line of help with lines to paste in it. It is text for whoever only shows it.

    Attributes:
        lines: What to write, as YAML; several lines where need be.
        into: Where it goes.
        instead: Whether what the finding is about goes: an entry that `spec` or `transforms` say elsewhere.
    """

    lines: str
    into: Into
    instead: bool

    def __new__(cls, text: str, lines: str, into: Into, *, instead: bool = False) -> Advice:
        """Makes advice whose whole text is given; see `write`."""
        made = super().__new__(cls, text)
        made.lines, made.into, made.instead = lines, into, instead
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str, str, Into], dict[str, bool]]:
        """Pickles it whole: findings cross from worker processes."""
        return (str(self), self.lines, self.into), {"instead": self.instead}


def write(lines: str, into: Into, said: str = "write {}", *, shown: str | None = None, instead: bool = False) -> Advice:
    """Returns advice to write some lines, which must be right as they stand; `said` is the sentence, with `{}` for the lines or for
    another form to show them in, such as the value with its key before it. See `Advice`."""
    text = shown if shown is not None else lines
    form = f"`{text}`" if "\n" not in text else "\n" + "\n".join(f"  {line}" for line in text.splitlines())
    # Not `format`: the sentence may hold what the user wrote, braces and all.
    return Advice(said.replace("{}", form, 1).replace(" \n", "\n"), lines, into, instead=instead)


_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM = "\ufeff"
_SAYS_SO = re.compile(rb"^(?:\xef\xbb\xbf)?pipegen[ \t]*:", re.MULTILINE)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What no text holds, and YAML refuses."""


def says_so(data: bytes) -> bool:
    """Returns whether a line says that this is a spec, be it valid YAML or not."""
    return _SAYS_SO.search(data) is not None


def is_binary(data: bytes) -> bool:
    """Returns whether bytes are no text in any encoding: they hold a NUL, or control characters among bytes that are no UTF-8."""
    return b"\0" in data or (not _is_utf8(data) and _CONTROL.search(data) is not None and not says_so(data))


def may_be_shown(data: bytes) -> bool:
    """Returns whether a finding may print lines of a file: of text, or of a spec with a wrong character in it, never of a picture."""
    return b"\0" not in data and (says_so(data) or (_is_utf8(data) and _CONTROL.search(data) is None))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def split_lines(text: str) -> list[str]:
    """The lines without their ends; a text that ends with a line break has an empty last line."""
    return _BREAK.split(text.removeprefix(_BOM))


class Offsets:
    """Turns positions of one text into character offsets."""

    def __init__(self, text: str) -> None:
        start = 1 if text.startswith(_BOM) else 0
        self._starts = [start]
        self._ends: list[int] = []
        for match in _BREAK.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))

    def at(self, line: int, column: int) -> int | None:
        """The offset of a line and column, both from 1, or `None` when the text has no such place."""
        if not 1 <= line <= len(self._starts):
            return None
        offset = self._starts[line - 1] + column - 1
        return offset if self._starts[line - 1] <= offset <= self._ends[line - 1] else None
