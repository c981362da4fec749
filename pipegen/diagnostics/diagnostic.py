"""`Diagnostic`, a finding, and its parts. The sibling modules render it; this one does not depend on YAML or TensorFlow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import Enum
from typing import Literal

from pipegen.frozen import dataclass

PACKAGE, GIT = "pkg:", "git+"
"""Beginnings of the addresses of shared base specs."""


def is_address(file: str) -> bool:
    """Tests if a file name is the address of a shared base, which is not a file of the project."""
    return file.startswith((PACKAGE, GIT))


def relative_path(file: str) -> str:
    """`file` relative to the working directory if it is inside of it, else as it is; with forward slashes.

    A name that is not a path, such as `<stdin>` or the address of a shared base, stays.
    """
    if file.startswith("<") or is_address(file):
        return file
    shown = file
    try:
        absolute = os.path.abspath(file)
        relative = os.path.relpath(absolute)
        shown = absolute if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
    except (OSError, ValueError):
        pass  # another drive, a NUL in the name, or a deleted working directory: the name stays
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
    """The severity of a finding; an `error` stops a build."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """The rank: 0 for errors, 2 for infos."""
        return ("error", "warning", "info").index(self.value)


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a text file. Lines and columns count from 1, in characters; the end column is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def is_within(self, other: Span) -> bool:
        """Whether it lies in another span."""
        starts = (other.line, other.column) <= (self.line, self.column)
        return self.file == other.file and starts and (self.end_line, self.end_column) <= (other.end_line, other.end_column)


@dataclass(frozen=True, slots=True)
class Label:
    """A place, with a note.

    Attributes:
        span: The span, or `None` if the spec is not from a file.
        text: A few words beside the caret; may be "".
        path: The key path, such as `transforms[2].random_flip.probability`; shown without a span.
    """

    span: Span | None
    text: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the text at `span`."""

    span: Span
    replacement: str


class Applicability(str, Enum):
    """The certainty of a fix.

    Attributes:
        SAFE: The fix keeps the meaning of the text; `pipegen validate --fix` applies it.
        SUGGESTION: The fix is a likely guess; only `pipegen validate --unsafe-fixes` applies it.
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
        title: The change, such as "rename `degree` to `degrees`".
        edits: The edits of the text; all of them or none.
        applicability: The certainty.
    """

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding.

    Attributes:
        code: `PG` and three digits; `pipegen rule CODE` explains it.
        severity: The severity.
        message: One line that makes sense alone.
        labels: Places, the primary one first; the others give context.
        help: What is expected and what to do, a line each.
        fix: An edit that removes the finding, if any.
    """

    code: str
    severity: Severity
    message: str
    labels: tuple[Label, ...] = ()
    help: tuple[str, ...] = ()
    fix: Fix | None = None

    @property
    def primary(self) -> Label | None:
        """The primary label."""
        return self.labels[0] if self.labels else None

    @property
    def span(self) -> Span | None:
        """The primary span."""
        return self.labels[0].span if self.labels else None

    @property
    def in_project(self) -> Span | None:
        """The span to annotate in a review: the primary one, or that of the `extends` of a shared base with it."""
        spans = [label.span for label in self.labels[: None if self.in_base else 1]]
        return next((span for span in spans if span is not None and not is_address(span.file)), None)

    @property
    def in_base(self) -> bool:
        """Whether the primary span is in a shared base, which is not a file of the project."""
        return self.span is not None and is_address(self.span.file)


class FullError(Exception):
    """The limit of findings is reached."""


@dataclass(slots=True)
class Diagnostics:
    """The findings of one run, in order; one more than `most` raises `FullError`."""

    items: list[Diagnostic] = field(default_factory=list)
    most: int | None = None
    _seen: set[Diagnostic] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._seen.update(self.items)

    def add(self, diagnostic: Diagnostic) -> None:
        """Adds a finding, unless it is an exact repeat. Raises `FullError` if there are `most` findings already."""
        if diagnostic not in self._seen:
            if self.most is not None and len(self.items) >= self.most:
                raise FullError
            self._seen.add(diagnostic)
            self.items.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Adds several findings."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def has_errors(self) -> bool:
        """Whether a finding is an error."""
        return any(d.severity is Severity.ERROR for d in self.items)

    def sorted(self) -> list[Diagnostic]:
        """The findings by file, position and code; those without a place come last."""

        def key(d: Diagnostic) -> tuple[bool, str, int, int, str]:
            s = d.span
            return (s is None, s.file if s else "", s.line if s else 0, s.column if s else 0, d.code)

        return sorted(self.items, key=key)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.sorted())

    def __len__(self) -> int:
        return len(self.items)


Into = Literal["value", "key", "sections", "entry", "source", "step", "before", "after", "arguments", "spec", "transforms", "nothing"]
"""The target of lines, relative to the place of a finding (its first label):

- `value`: the value there.
- `key`: the name there, and all of its uses in the spec.
- `sections`: whole sections, in place of those of the same names.
- `entry`: entries of the map there, in place of the one at the finding.
- `source`: a source, in place of the one at the finding.
- `step`: one step or several, in place of the one at the finding.
- `before`, `after`: steps before or after that one.
- `arguments`: arguments of the step, source or feature there; others stay.
- `spec`: sections, merged over those of the spec.
- `transforms`: steps at the end of `transforms`; but a `decode` comes first, and steps that combine examples stay last.
- `nothing`: no lines; the entry at the finding is removed.
"""


class Advice(str):
    """A line of help with YAML to paste. As a string, it is the whole line.

    Attributes:
        lines: The YAML, one line or several.
        into: Its target.
        instead: Whether the entry at the finding is removed, as `spec` or `transforms` replace it elsewhere.
    """

    lines: str
    into: Into
    instead: bool


def write(lines: str, into: Into, said: str = "write {}", *, shown: str | None = None, instead: bool = False) -> Advice:
    """Makes advice to write some lines, which have to be valid.

    `said` is the sentence, with `{}` for the lines, or for `shown`, another form of them, such as the value with its key.
    """
    text = shown if shown is not None else lines
    form = f"`{text}`" if "\n" not in text else "\n" + "\n".join(f"  {line}" for line in text.splitlines())
    # Not `format`, as the sentence may contain braces that the user wrote.
    made = Advice(said.replace("{}", form, 1).replace(" \n", "\n"))
    made.lines, made.into, made.instead = lines, into, instead
    return made


_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM = "\ufeff"
_SAYS_SO = re.compile(rb"^(?:\xef\xbb\xbf)?pipegen[ \t]*:", re.MULTILINE)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # control characters that are not in texts, and that YAML refuses


def says_so(data: bytes) -> bool:
    """Tests for a line with the key `pipegen`, in valid YAML or not."""
    return _SAYS_SO.search(data) is not None


def is_binary(data: bytes) -> bool:
    """Tests if bytes are not text in any encoding: with a NUL, or with control characters and not UTF-8."""
    return b"\0" in data or (not _is_utf8(data) and _CONTROL.search(data) is not None and not says_so(data))


def may_be_shown(data: bytes) -> bool:
    """Tests if a finding may show lines of a file: of text, or of a spec with an invalid character, but not of an image."""
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
    """The character offsets of positions in a text."""

    def __init__(self, text: str) -> None:
        breaks = list(_BREAK.finditer(text))
        self._starts = [int(text.startswith(_BOM)), *(found.end() for found in breaks)]
        self._ends = [*(found.start() for found in breaks), len(text)]

    def at(self, line: int, column: int) -> int | None:
        """The offset of a line and column, both from 1; `None` outside of the text."""
        if not 1 <= line <= len(self._starts):
            return None
        offset = self._starts[line - 1] + column - 1
        return offset if self._starts[line - 1] <= offset <= self._ends[line - 1] else None
