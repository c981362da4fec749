"""`pipegen rule`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipegen.cli.common import bold, say
from pipegen.cli.failures import CannotRun

if TYPE_CHECKING:
    from collections.abc import Iterator


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from pipegen.diagnostics.catalog import CODES

    return [(c.code, c.title) for c in CODES.values() if c.code.startswith(incomplete.upper())]


def rule(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="A code such as PG214, or its name.", autocompletion=_complete)] = None,
) -> None:
    """List the findings, or explain one.

    A page says what is found, why it matters, and shows a spec that has it and the same spec mended.

    Examples:
      pipegen rule            every code in one table
      pipegen rule PG214
      pipegen rule standardised-values
    """
    if code is None:
        for line in _table():
            say(line)
        return
    from pipegen.diagnostics.catalog import page

    say("\n".join(render_page(page(_find(code)).text)))


def _table() -> Iterator[str]:
    from pipegen.diagnostics.catalog import CODES

    width = max(len(c.name) for c in CODES.values())
    for c in CODES.values():
        yield f"{c.code}  {c.severity.value:<7}  {c.name:<{width}}  {c.title}"


def _find(wanted: str) -> str:
    from pipegen.diagnostics.catalog import CODES
    from pipegen.diagnostics.suggest import closest
    from pipegen.migrate.findings import NAMES

    word = wanted.strip()
    if word.upper() in CODES:
        return word.upper()
    names = {c.name: c.code for c in CODES.values()}
    if word.lower() in names:
        return names[word.lower()]
    if word.upper() in NAMES:
        code = word.upper()
        message = f"{code} ({NAMES[code]}) is what `pipegen migrate` says of Python code, and has no page"
        raise CannotRun(message, "the report of `pipegen migrate` says what it means and what to do")
    near = closest(word, [*names, *CODES])
    hint = f"did you mean {near}?" if near else "`pipegen rule` lists every code"
    raise CannotRun(f"there is no code {word!r}", hint)


def render_page(markdown: str) -> list[str]:
    """A page as plain lines: headings stand out, specs are indented, and fences are gone."""
    lines: list[str] = []
    fenced = False
    for line in markdown.rstrip().splitlines():
        if line.startswith("```"):
            fenced = not fenced
            if fenced and line.strip() == "```files":
                lines.append("  with these files beside it:")
            elif not fenced and lines and lines[-1]:
                lines.append("")
        elif fenced:
            lines.append(f"    {line}".rstrip())
        elif line.startswith("#"):
            title = line.lstrip("# ").strip()
            lines += [bold(title), "─" * len(title)] if line.startswith("# ") else [bold(title)]
        else:
            lines.append(f"  {line}".rstrip())
    return _tidy(lines)


def _tidy(lines: list[str]) -> list[str]:
    """At most one empty line at a time, and none at the end."""
    kept = [line for i, line in enumerate(lines) if line or (i > 0 and lines[i - 1])]
    while kept and not kept[-1]:
        kept.pop()
    return kept
