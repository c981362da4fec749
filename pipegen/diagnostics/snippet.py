"""A line of a file and the marks under it, laid out in terminal columns."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import accumulate

from pipegen.terminal import ODD, sign_for

_TAB = 4
_ELLIPSIS = "…"
_FAR = 500
"""Characters to each side of the place beyond which a line is not even looked at."""


def display_width(char: str) -> int:
    """Returns the terminal columns that a character takes: 0, 1 or 2."""
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a line to underline, with carets where it is primary, else with dashes, and the text beside it. Its ends are character
    indices into the line, from 0; the end is exclusive."""

    start: int
    end: int
    primary: bool
    text: str = ""


Row = list[tuple[str, str]]
"""One row to print: pieces of text with the name of their style."""


def rows(line: str, marks: list[Mark], budget: int) -> list[Row]:
    """The line, cut to `budget` terminal columns around its main mark, and the rows under it; there is at least one mark."""
    focus = next((m for m in marks if m.primary), marks[0])
    line, placed = _place(line, marks, focus, max(budget, 20))
    return [[(line, "")], *_underline(placed)]


def plain_row(line: str, budget: int) -> Row:
    """A line without marks, cut at the end."""
    return [(_place(line, [], Mark(0, 0, True), max(budget, 20))[0], "")]


def _place(line: str, marks: list[Mark], focus: Mark, budget: int) -> tuple[str, list[Mark]]:
    """The line as it is printed, and the marks in its columns."""
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
    # One column at each cut edge belongs to the ellipsis.
    low = next(i for i, c in enumerate(columns) if c >= left + (left > 0))
    high = max(i for i, c in enumerate(columns) if c <= right - (right < total))
    return low, max(low, high)


def _underline(marks: list[Mark]) -> list[Row]:
    """The row of carets and dashes, with the last mark's text beside it and the others' hanging below."""
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
