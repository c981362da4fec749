"""`pipegen help`."""

from __future__ import annotations

from typing import Annotated

import typer

from pipegen.cli.failures import CannotRun
from pipegen.terminal import aligned, bold, say

_OTHERS = """`pipegen help TOPIC` explains one of them, or a key (`pipegen help batch.remainder`).
`pipegen ops` lists the steps and sources, `pipegen rule` the findings, `pipegen --help` the commands."""


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from pipegen.cli.reference.section_pages import PAGES

    return [(name, subject) for name, subject in PAGES.items() if name.startswith(incomplete)]


def help_(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="A section such as splits, a key such as batch.remainder, a step, a command or the code of a finding.",
            autocompletion=_complete,
        ),
    ] = None,
) -> None:
    """Explain a section of a spec, one of its keys, or a step.

    It also explains commands and the codes of findings.

    Examples:
      pipegen help                   every section in one table
      pipegen help splits
      pipegen help runtime.cache
      pipegen help random_rotation
    """
    from pipegen.cli.reference.section_pages import PAGES

    if topic is None:
        say("\n".join([bold("sections of a spec"), *(f"  {line}" for line in aligned(PAGES.items())), "", _OTHERS]))
        return
    from pipegen.cli.lookup import page_text, render_page
    from pipegen.cli.reference.ops import all_ops, op_page
    from pipegen.cli.reference.section_pages import key_names, terminal
    from pipegen.diagnostics.suggest import closest

    ops = all_ops()
    page = render_page(terminal(topic)) if topic in PAGES else op_page(ops[topic]) if topic in ops else page_text(topic)
    found = [page] if page else [_command(ctx, topic), _keys(topic)]  # such as `cache`, which is a command and a key of `runtime`
    if not any(found):
        near = closest(topic, [*PAGES, *ops, *key_names()])
        raise CannotRun(f"there is no help on `{topic}`", f"did you mean `{near}`?" if near else "`pipegen help` lists all topics")
    say("\n\n".join(text for text in found if text))


def _command(ctx: typer.Context, topic: str) -> str | None:
    group = ctx.parent.command if ctx.parent is not None else None
    command = getattr(group, "commands", {}).get(topic)
    if command is None or ctx.parent is None:
        return None
    with type(ctx)(command, info_name=topic, parent=ctx.parent) as below:
        return str(command.get_help(below))


def _keys(topic: str) -> str | None:
    from pipegen.cli.reference.section_pages import find_keys, key_lines

    found = find_keys(topic)
    if not found:
        return None
    lines = [line for page, key in found for line in (bold(page), *(f"  {line}" for line in key_lines(key)))]
    pages = " and ".join(f"`pipegen help {page}`" for page in dict.fromkeys(page for page, _ in found))
    return "\n".join([*lines, "", f"{pages} has the rest, with an example" if len(found) == 1 else f"the rest: {pages}"])
