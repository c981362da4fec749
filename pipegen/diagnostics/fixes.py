"""Application of fixes to a text, and comments that silence findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipegen.diagnostics.catalog import CODES, make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Edit, Fix, Label, Offsets, Severity, Span, split_lines

_Change = tuple[int, int, str]


def apply_fixes(text: str, fixes: Sequence[Fix], file: str) -> tuple[str, int]:
    """Applies the edits of `file`, as named in spans, the more important fixes first.

    A fix that overlaps an earlier one, or whose place does not exist in the text, is skipped. The text must have the line ends of the file
    (read with `newline=""`). Returns the new text, and the number of applied fixes."""
    offsets = Offsets(text)
    taken: list[_Change] = []
    count = 0
    for fix in fixes:
        changes = _changes(fix, file, offsets)
        pairs = ((a, b) for i, a in enumerate(changes) for b in [*taken, *changes[:i]])
        # Of two changes at the same place, the order is unknown.
        if not changes or any(a[0] == b[0] or (a[0] < b[1] and b[0] < a[1]) for a, b in pairs):
            continue
        taken.extend(changes)
        count += 1
    for start, end, replacement in sorted(taken, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text, count


def _changes(fix: Fix, file: str, offsets: Offsets) -> list[_Change]:
    """The edits as offsets; none if one of them is outside of the text."""
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


_IGNORE = re.compile(r"#\s*pipegen:\s*ignore\b[ \t]*(?:\[([^\]\n]*)\])?")
_QUOTED_OR_COMMENT = re.compile(r"""(?<![^ \t\[{,:-])(?:'[^']*(?:'|$)|"(?:\\.|[^"\\])*(?:"|\\?$))|(?<![^ \t])#""", re.DOTALL)
"""A quoted text, which may be open at the end of the line, or the sign of a comment."""


@dataclass(slots=True)
class _Comment:
    """An ignore comment."""

    span: Span  # the span from the `#` to the closing bracket
    before: int  # the column where the blanks before it begin
    codes: tuple[str, ...]  # the codes in it
    leads: bool  # whether another remark follows after its `#`
    used: set[str] = field(default_factory=set)  # the codes that silenced a finding
    refused: set[str] = field(default_factory=set)  # the codes that are errors here


def suppressed(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Removes silenced findings; `texts` has the text of each file of a spec, by its name in spans. Returns the other findings, in the same
    order, and a `PG511` finding for each comment with an unused code."""
    comments = {(c.span.file, c.span.line): c for file, text in texts.items() for c in _comments(file, text)}
    kept: list[Diagnostic] = []
    for d in diagnostics:
        comment = comments.get((d.span.file, d.span.line)) if d.span is not None else None
        if comment is None or d.code not in comment.codes:
            kept.append(d)
        elif d.severity is Severity.ERROR:
            comment.refused.add(d.code)
            kept.append(d)
        else:
            comment.used.add(d.code)
    unused = [_unused(c) for c in comments.values() if "PG511" not in c.codes and (not c.codes or set(c.codes) - c.used)]
    return kept, unused


def _comments(file: str, text: str) -> Iterator[_Comment]:
    if "pipegen:" not in text:
        return
    for number, line in enumerate(split_lines(text), 1):
        found = _QUOTED_OR_COMMENT.finditer(line) if "ignore" in line else ()
        start = next((part.start() for part in found if part[0] == "#"), None)
        match = _IGNORE.search(line, start) if start is not None else None
        if match is None or start is None:
            continue
        codes = tuple(dict.fromkeys(c.strip().upper() for c in (match[1] or "").split(",") if c.strip()))
        span = Span(file, number, match.start() + 1, number, match.end() + 1)
        leads = match.start() == start and bool(line[match.end() :].strip())
        yield _Comment(span, len(line[: match.start()].rstrip()) + 1, codes, leads)


def _unused(comment: _Comment) -> Diagnostic:
    idle = [c for c in comment.codes if c not in comment.used]
    if not comment.codes:
        help_ = "write the code in brackets: `# pipegen: ignore[PG503]`"
        return make("PG511", "the ignore comment has no code", Label(comment.span), help=help_)
    why = "is for an error, which cannot be silenced" if set(idle) <= comment.refused else "silences nothing here"
    reasons = tuple(_reasons(idle, comment.refused))
    return make("PG511", f"`ignore[{', '.join(idle)}]` {why}", Label(comment.span), help=reasons, fix=_removal(comment, idle))


def _reasons(idle: list[str], refused: set[str]) -> Iterator[str]:
    for code in idle:
        known = CODES.get(code)
        if code in refused or (known is not None and known.severity is Severity.ERROR):
            yield f"{code} is an error, and errors cannot be silenced"
        elif known is None:
            near = next((c.code for c in CODES.values() if c.name == code.lower()), None)
            yield f"unknown code {code}" + (f"; did you mean {near}?" if near else "")


def _removal(comment: _Comment, idle: list[str]) -> Fix:
    """The fix that removes the idle codes, and the comment if no code is left: safe, since they silenced nothing."""
    span = comment.span
    left = [c for c in comment.codes if c not in idle]
    if left:
        return Fix(f"remove {', '.join(idle)} from the comment", (Edit(span, f"# pipegen: ignore[{', '.join(left)}]"),), Applicability.SAFE)
    # A remark after it stays, with its own `#`.
    where = Span(span.file, span.line, span.column if comment.leads else comment.before, span.end_line, span.end_column)
    return Fix("remove the ignore comment", (Edit(where, "#" if comment.leads else ""),), Applicability.SAFE)
