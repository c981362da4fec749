"""`pipegen rule`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from pipegen.cli.failures import CannotRun
from pipegen.terminal import bold, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.diagnostics.catalog import Code
    from pipegen.migrate.findings import Rule


def _complete(incomplete: str) -> list[tuple[str, str]]:
    return [(c.code, c.title) for c in _every() if c.code.startswith(incomplete.upper())]


def rule(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="A code such as PG214, or its name.", autocompletion=_complete)] = None,
) -> None:
    """List the findings, or explain one.

    A page explains the finding and why it matters, and shows a spec with it and the same spec corrected. The codes of
    `pipegen migrate`, from PG601 to PG658 with gaps, are about Python code, and their pages show code.

    Examples:
      pipegen rule            every code in one table
      pipegen rule PG214
      pipegen rule standardised-values
    """
    if code is None:
        for line in _table():
            say(line)
        return
    page = page_text(code)
    if page is None:
        from pipegen.diagnostics.suggest import closest

        near = closest(code.strip(), [*(c.name for c in _every()), *(c.code for c in _every())])
        raise CannotRun(f"there is no code {code.strip()!r}", f"did you mean {near}?" if near else "`pipegen rule` lists every code")
    say(page)


def page_text(wanted: str) -> str | None:
    """Renders the page of a finding by its code or name; `None` for any other word."""
    from pipegen.diagnostics.catalog import CODES, page
    from pipegen.diagnostics.page_files import with_files_in_words
    from pipegen.migrate.pages import migration_page

    word = wanted.strip()
    code = next((c.code for c in _every() if word.upper() == c.code or word.lower() == c.name), None)
    if code is None:
        return None
    return render_page(with_files_in_words((page(code) if code in CODES else migration_page(code)).text))


def _every() -> list[Code | Rule]:
    """Lists the findings in specs, and then those in code."""
    from pipegen.diagnostics.catalog import CODES
    from pipegen.migrate.findings import RULES

    return [*CODES.values(), *RULES.values()]


def _table() -> Iterator[str]:
    from pipegen.diagnostics.catalog import Code

    every = _every()
    width = max(len(c.name) for c in every)
    for c in every:
        sort = c.severity.value if isinstance(c, Code) else c.kind
        yield f"{c.code}  {sort:<10}  {c.name:<{width}}  {c.title}"


def render_page(markdown: str) -> str:
    """Renders a page as plain text: bold headings, indented specs, no fences."""
    lines: list[str] = []
    fenced = False
    for line in markdown.rstrip().splitlines():
        if line.startswith("```"):
            fenced = not fenced
            if not fenced and lines and lines[-1]:
                lines.append("")
        elif fenced:
            lines.append(f"    {line}".rstrip())
        elif line.startswith("#"):
            title = line.lstrip("# ").strip()
            lines += [bold(title), "─" * len(title)] if line.startswith("# ") else [bold(title)]
        else:
            lines.append(f"  {line}".rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n")
