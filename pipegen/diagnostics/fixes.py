"""Applies fixes to a text: whole fixes or nothing of them, and every other character stays as it is."""

from __future__ import annotations

from collections.abc import Sequence

from pipegen.diagnostics.diagnostic import Fix
from pipegen.diagnostics.lines import Offsets

_Change = tuple[int, int, str]


def apply_fixes(text: str, fixes: Sequence[Fix], file: str) -> tuple[str, int]:
    """Apply the edits that concern `file`, as spans name it, the more important fixes first.

    A fix that touches what an earlier one changes, or whose place does not exist in the text, is left out as a whole.
    The text must hold the line ends of the file (read it with `newline=""`), so that they stay.

    Returns:
        The new text, and how many fixes went into it.
    """
    offsets = Offsets(text)
    taken: list[_Change] = []
    count = 0
    for fix in fixes:
        changes = _changes(fix, file, offsets)
        if not changes or any(_overlap(a, b) for i, a in enumerate(changes) for b in [*taken, *changes[:i]]):
            continue
        taken.extend(changes)
        count += 1
    for start, end, replacement in sorted(taken, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text, count


def _changes(fix: Fix, file: str, offsets: Offsets) -> list[_Change]:
    """The edits as offsets; none when one of them does not fit the text."""
    found: list[_Change] = []
    for edit in fix.edits:
        if edit.span.file != file:
            continue
        start = offsets.at(edit.span.line, edit.span.column)
        end = offsets.at(edit.span.end_line, edit.span.end_column)
        if start is None or end is None or end < start:
            return []
        found.append((start, end, edit.replacement))
    return found


def _overlap(a: _Change, b: _Change) -> bool:
    """Returns whether two changes share a character or start at the same place, where their order would be a guess."""
    return a[0] == b[0] or (a[0] < b[1] and b[0] < a[1])
