"""The report on a migration, for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from pipegen.migrate.findings import RULES, Findings, Kind

_SECTIONS: tuple[tuple[Kind, str], ...] = (
    ("broken", "could not be read"),
    ("mistake", "silent mistakes of the old code"),
    ("unresolved", "not known from the code"),
    ("missing", "without an equivalent"),
    ("by hand", "to be edited by hand"),
    ("meaning", "changes in meaning"),
)
_WIDTH = 110


def report_text(findings: Findings, place: Callable[[int], str]) -> str:
    """The findings in sections, each with its line.

    Args:
        findings: What was found.
        place: Names a line, such as `line 12` or `cell 3, line 2`.
    """
    lines: list[str] = []
    for kind, title in _SECTIONS:
        items = findings.of(kind)
        if not items:
            continue
        lines += ["", f"{title} ({len(items)})"] if lines else [f"{title} ({len(items)})"]
        for item in items:
            lines += _wrapped(f"{place(item.line)}: {item.code} {RULES[item.code].name}: {item.message}", "  ", "    ")
            if item.help:
                lines += _wrapped(item.help, "    = ", "      ")
    return "\n".join([*lines, "", "`pipegen rule CODE` explains a code"]) + "\n" if lines else "nothing to remark\n"


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
