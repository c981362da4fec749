"""Findings as text: the message, the place in the file with carets under it, and help.

    error[PG102]: unknown key `prob` for step `random_flip`
      --> flowers.pipegen.yaml:46:20
       |
    46 |   - random_flip: {prob: 0.5}
       |                   ^^^^ did you mean `probability`?
       |
       = help: ...
       = more: pipegen rule PG102

The last line counts the findings.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import accumulate

from pipegen.diagnostics.catalog import CODES
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Label, Severity, Span, may_be_shown, split_lines
from pipegen.frozen import dataclass
from pipegen.terminal import ODD, masked, one_line, sign_for

_TAB = 4
_ELLIPSIS = "…"
_FAR = 500  # characters on each side of the place beyond which a line is ignored


def display_width(char: str) -> int:
    """The terminal columns of a character: 0, 1 or 2."""
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a line to underline, with carets if primary, else with dashes, and the text beside it.

    `start` and `end` are character indices into the line, from 0; the end is exclusive.
    """

    start: int
    end: int
    primary: bool
    text: str = ""


Row = list[tuple[str, str]]  # a row to print: pieces of text with the names of their styles


def _place(line: str, marks: list[Mark], focus: Mark, budget: int) -> tuple[str, list[Mark]]:
    """Cuts a line to `budget` terminal columns around a mark; returns it with the marks in its columns."""
    first = max(min(focus.start, len(line)) - _FAR, 0)
    far = line[first : first + 2 * _FAR]
    plain = far.isascii() and far.isprintable()
    cells = list(far) if plain else [" " * _TAB if c == "\t" else sign_for(c) if ODD.match(c) else c for c in far]
    columns = list(accumulate((1 if plain else sum(map(display_width, cell)) for cell in cells), initial=0))

    def column(index: int) -> int:
        return columns[min(max(index - first, 0), len(cells))]

    low, high = _window(columns, column(focus.start), column(focus.end), budget)
    before = _ELLIPSIS if low > 0 or first > 0 else ""
    after = _ELLIPSIS if high < len(cells) or first + len(far) < len(line) else ""
    shown = before + "".join(cells[low:high]) + after
    shift = len(before) - columns[low]
    last = columns[high] + shift + len(after)
    placed = []
    for m in marks:
        start = min(max(column(m.start) + shift, 0), last)
        end = min(max(column(m.end) + shift, start + 1), max(last, start + 1))
        placed.append(Mark(start, end, m.primary, m.text))
    return shown.rstrip(), placed


def _window(columns: list[int], start: int, end: int, budget: int) -> tuple[int, int]:
    """Chooses the cells that fit in `budget` columns around the columns `start` to `end`."""
    total = columns[-1]
    if total <= budget:
        return 0, len(columns) - 1
    spare = max(budget - (end - start), budget // 4)
    left = min(max(start - spare // 2, 0), total - budget)
    right = left + budget
    # Each cut edge needs a column for the ellipsis.
    low = next(i for i, c in enumerate(columns) if c >= left + (left > 0))
    high = max(i for i, c in enumerate(columns) if c <= right - (right < total))
    return low, max(low, high)


def _underline(marks: list[Mark]) -> list[Row]:
    """The row of carets and dashes with the text of the last mark, and rows below with the texts of the others."""
    canvas: dict[int, tuple[str, str]] = {}
    for m in sorted(marks, key=lambda m: (m.primary, -(m.end - m.start))):
        for i in range(m.start, m.end):
            canvas[i] = ("^", "primary") if m.primary else ("-", "secondary")
    texts = sorted((m for m in marks if m.text), key=lambda m: (m.start, m.end, m.primary))
    beside = texts.pop() if texts and texts[-1].end >= max(m.end for m in marks) else None
    found = [_row(canvas, beside)]
    if texts:
        found.append(_row(_bars(texts), None))
    while texts:
        m = texts.pop()
        found.append(_row(_bars([t for t in texts if t.start < m.start]), m, m.start))
    return found


def _bars(marks: list[Mark]) -> dict[int, tuple[str, str]]:
    return {m.start: ("|", _style(m)) for m in sorted(marks, key=lambda m: m.primary)}


def _row(canvas: dict[int, tuple[str, str]], label: Mark | None, at: int | None = None) -> Row:
    """A row of single characters, then the text of `label`, at column `at` or after one blank."""
    pieces: Row = []
    width = max(canvas, default=-1) + 1
    for i in range(width):
        char, style = canvas.get(i, (" ", ""))
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + char, style)
        else:
            pieces.append((char, style))
    if label is not None:
        pieces.append((" " * (1 if at is None else max(at - width, 0)), ""))
        pieces.append((label.text, _style(label)))
    return pieces


def _style(mark: Mark) -> str:
    return "primary" if mark.primary else "secondary"


_WIDTH = 140
_LARGEST = 2**20  # the largest file in bytes of which lines are shown
_MOST = 200  # the most findings that are shown; a damaged file can have thousands

_SEVERITY_STYLES = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.INFO: "\x1b[1;36m"}
_STYLES = {"gutter": "\x1b[1;34m", "secondary": "\x1b[1;34m", "bold": "\x1b[1m"}


def render_text(
    diagnostics: Iterable[Diagnostic],
    *,
    sources: Mapping[str, str] | None = None,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Renders findings, and a line that counts them; "" without findings.

    Source lines are cut to `width` terminal columns; a file whose text is not in `sources` is read from the disk.
    """
    found = list(diagnostics)
    if not found:
        return ""
    renderer = _Renderer(dict(sources or {}), color, width or _WIDTH)
    # If there are too many, errors before warnings, in the order of the list.
    shown = [found[i] for i in sorted(sorted(range(len(found)), key=lambda i: found[i].severity.rank)[:_MOST])]
    rest = [f"{len(found) - len(shown):,} more not shown; `--format json` lists all of them\n"] if len(shown) < len(found) else []
    return "\n".join([*(renderer.finding(d) for d in shown), *rest, summary(found)]) + "\n"


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """Counts findings and fixes: `2 errors, 1 warning; 1 fixable with `pipegen validate --fix``."""
    found = list(diagnostics)
    counts = ((s, sum(1 for d in found if d.severity is s)) for s in Severity)
    parts = [f"{n} {s.value}{'' if n == 1 else 's'}" for s, n in counts if n]
    text = ", ".join(parts) or "no findings"
    made = [d.fix.applicability for d in found if d.fix is not None]
    safe, more = made.count(Applicability.SAFE), made.count(Applicability.SUGGESTION)
    if safe:
        return f"{text}; {safe} fixable with `pipegen validate --fix`" + (f", {more} more with `--unsafe-fixes`" if more else "")
    return f"{text}; {more} fixable with `pipegen validate --unsafe-fixes`" if more else text


class _Renderer:
    """The renderer of the findings of one run, which reads each file once."""

    def __init__(self, sources: dict[str, str], color: bool, width: int) -> None:
        self.sources = sources
        self.color = color
        self.width = width
        self.lines: dict[str, list[str] | None] = {}

    def finding(self, d: Diagnostic) -> str:
        """Renders a finding as lines of text, a line break after each."""
        severity = _SEVERITY_STYLES[d.severity]
        head = self.paint(f"{d.severity.value}[{one_line(d.code)}]", severity) + self.paint(f": {one_line(d.message)}", _STYLES["bold"])
        shown = [label for label in d.labels if label.span is not None and self.line(label.span) is not None]
        gutter = max((len(str(label.span.line)) for label in shown if label.span), default=2)
        out = [head, *self.places(d, shown, gutter, severity)]
        pad = " " * gutter
        notes = [("help", h) for h in d.help if d.fix is None or h != d.fix.title]
        if d.fix is not None:
            name = "fix" if d.fix.applicability is Applicability.SAFE else "suggestion"
            notes.append((name, f"{d.fix.title} (`pipegen validate {d.fix.applicability.option}` applies it)"))
        if d.code in CODES:
            notes.append(("more", f"pipegen rule {d.code}"))
        if notes and shown:
            out.append(self.paint(f"{pad} |", _STYLES["gutter"]))
        for name, text in notes:
            first, *rest = text.splitlines() or [""]
            out.append(f"{self.paint(f'{pad} =', _STYLES['gutter'])} {self.paint(name, _STYLES['bold'])}: {one_line(first)}".rstrip())
            out.extend(f"{pad}   {' ' * (len(name) + 2)}{one_line(line)}".rstrip() for line in rest)
        return "\n".join(out) + "\n"

    def places(self, d: Diagnostic, shown: list[Label], gutter: int, severity: str) -> list[str]:
        """Renders the places: file by file in the order of the labels, then those without text."""
        out: list[str] = []
        blocks: dict[str, list[Label]] = {}
        for label in d.labels:
            file = label.span.file if label in shown and label.span is not None else f"\0{len(blocks)}"
            blocks.setdefault(file, []).append(label)
        for i, labels in enumerate(blocks.values()):
            first = labels[0]
            where = one_line(str(first.span) if first.span is not None else first.path)
            if not where and not first.text:
                continue
            arrow = self.paint(" " * gutter + ("--> " if i == 0 else "::: "), _STYLES["gutter"])
            if first not in shown:
                out.append(arrow + ": ".join(t for t in (where, one_line(first.text)) if t))
                continue
            out.append(arrow + where)
            out.extend(self.snippet(labels, d.labels[0], gutter, severity))
        return out

    def snippet(self, labels: list[Label], primary: Label, gutter: int, severity: str) -> list[str]:
        """Renders the lines of one file that have labels, in order, with their marks."""
        spans = [(label, label.span) for label in labels if label.span is not None]
        lines = self.file_lines(spans[0][1].file) or []
        budget = max(self.width - gutter - 3, 20)
        out = [self.gutter("", gutter, [], severity)]
        previous: int | None = None
        for number in sorted({span.line for _, span in spans}):
            if previous is not None and number == previous + 2:
                between, _ = _place(lines[number - 2], [], Mark(0, 0, True), budget)
                out.append(self.gutter(str(number - 1), gutter, [(between, "")], severity))
            elif previous is not None and number > previous + 2:
                out.append(self.paint("...", _STYLES["gutter"]))
            previous, text = number, lines[number - 1]
            marks = []
            for label, span in spans:
                if span.line == number:
                    start = min(max(span.column - 1, 0), len(text))
                    end = span.end_column - 1 if span.end_line == number else len(text.rstrip())
                    end = min(max(end, start), max(len(text), start))
                    marks.append(Mark(start, end, label is primary, one_line(label.text)))
            text, placed = _place(text, marks, next((m for m in marks if m.primary), marks[0]), budget)
            for j, row in enumerate([[(text, "")], *_underline(placed)]):
                out.append(self.gutter(str(number) if j == 0 else "", gutter, row, severity))
        return out

    def gutter(self, number: str, gutter: int, row: Row, severity: str) -> str:
        """A row after the line-number gutter."""
        styles = {**_STYLES, "primary": severity}
        body = "".join(self.paint(text, styles[style]) if style else text for text, style in row)
        return f"{self.paint(f'{number:>{gutter}} |', _STYLES['gutter'])} {body}".rstrip()

    def paint(self, text: str, style: str) -> str:
        """The text in a style, if colours are on."""
        return f"{style}{text}\x1b[0m" if self.color and text else text

    def line(self, span: Span) -> str | None:
        """The first line of a span, or `None` if it cannot be read."""
        lines = self.file_lines(span.file)
        return lines[span.line - 1] if lines is not None and 1 <= span.line <= len(lines) else None

    def file_lines(self, file: str) -> list[str] | None:
        """The lines of a file, or `None` if it cannot be read."""
        if file not in self.lines:
            text = self.sources[file] if file in self.sources else _read(file)
            self.lines[file] = None if text is None else split_lines(masked(text, aligned=True))
        return self.lines[file]


def _read(file: str) -> str | None:
    try:
        # Only regular files are read, as a pipe or a device could block.
        if not os.path.isfile(file):
            return None
        with open(file, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except (OSError, ValueError):
        return None
    return data.decode("utf-8", errors="replace") if len(data) <= _LARGEST and may_be_shown(data) else None
