"""`pipegen ops`, `rule`, `help`, `schema` and `version`: what pipegen knows, printed."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipegen.cli.common import write_text
from pipegen.cli.failures import FOUND, CannotRun, refused
from pipegen.terminal import aligned, bold, note, say

if TYPE_CHECKING:
    from pipegen.diagnostics.catalog import Code
    from pipegen.migrate.findings import Rule


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from pipegen.cli.reference.ops import all_ops, summary

    return [(name, summary(cls)) for name, cls in all_ops().items() if name.startswith(incomplete)]


def ops(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A step or a source, such as random_flip.", autocompletion=_complete)
    ] = None,
) -> None:
    """List the steps and sources, or explain one.

    Examples:
      pipegen ops                    every step and source in one table
      pipegen ops random_rotation
    """
    from pipegen.cli.reference.ops import all_ops, op_page, op_table

    if name is None:
        say(op_table())
        return
    known = all_ops()
    if name not in known:
        from pipegen.cli.reference.section_pages import PAGES
        from pipegen.diagnostics.suggest import hints
        from pipegen.spec.translate import instead_of_source, instead_of_step

        if name in PAGES:
            raise CannotRun(f"`{name}` is not a step or a source", f"it is a section of a spec: `pipegen help {name}`")
        said = [*instead_of_step(name, None), *instead_of_source(name, None), *hints(name, known, "`pipegen ops` lists them all")]
        raise CannotRun(f"there is no step or source `{name}`", str(said[0]))
    say(op_page(known[name]))


def _complete_code(incomplete: str) -> list[tuple[str, str]]:
    return [(c.code, c.title) for c in _every() if c.code.startswith(incomplete.upper())]


def rule(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="A code such as PG214, or its name.", autocompletion=_complete_code)
    ] = None,
) -> None:
    """List the findings, or explain one.

    A page explains the finding and why it matters, and shows a spec with it and the same spec corrected. The codes of
    `pipegen migrate`, from PG601 to PG658 with gaps, are about Python code, and their pages show code.

    Examples:
      pipegen rule            every code in one table
      pipegen rule PG214
      pipegen rule standardised-values
    """
    from pipegen.diagnostics.catalog import Code

    if code is None:
        rows = [(c.code, c.severity.value if isinstance(c, Code) else c.kind, c.name, c.title) for c in _every()]
        say("\n".join(aligned(rows)))
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
    from pipegen.migrate.findings import migration_page

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


_SCHEMA = os.path.join("schemas", "pipegen.schema.json")


def schema(
    file: Annotated[str, typer.Argument(metavar="FILE", help="With --write or --check: the file of the schema.")] = _SCHEMA,
    write: Annotated[bool, typer.Option("--write", help="Renew the file.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when the file is out of date.")] = False,
) -> None:
    """Print the JSON Schema of specs, for editors.

    With it, an editor completes, explains and checks a spec as you type. Keep it beside your specs, and begin each
    spec with `# yaml-language-server: $schema=pipegen.schema.json`.

    Examples:
      pipegen schema > pipegen.schema.json
      pipegen schema pipegen.schema.json --check
    """
    from pipegen.spec.json_schema import json_schema

    if write and check:
        raise typer.BadParameter("use one of `--write` and `--check`", param_hint="'--check'")
    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if not write and not check:
        if file != _SCHEMA:
            raise typer.BadParameter(f"to write {file}, use `pipegen schema --write {file}`", param_hint="FILE")
        say(text.rstrip())
        return
    stale = _read(file) != text
    if check:
        if stale:
            note(f"{file} is out of date; `pipegen schema --write` renews it")
        raise typer.Exit(FOUND if stale else 0)
    if stale:
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        write_text(file, text)
    say(f"{'wrote' if stale else 'up to date:'} {file}")


def _read(file: str) -> str | None:
    with refused("read", file), suppress(FileNotFoundError), open(file, encoding="utf-8", newline="") as stream:
        return stream.read()
    return None


def version() -> None:
    """Print the versions of pipegen, Python and TensorFlow.

    Example:
      pipegen version
    """
    import platform

    from pipegen.lazy import installed_version
    from pipegen.release import __version__

    python = f"{platform.python_version()} ({platform.python_implementation()})"
    packages = {
        "TensorFlow": ("tensorflow", "tensorflow-cpu", "tf-nightly", "tensorflow-macos"),
        "Keras": ("keras",),
        "pydantic": ("pydantic",),
    }
    libraries = [(called, installed_version(*names) or "not installed") for called, names in packages.items()]
    say("\n".join(aligned([("pipegen", __version__), ("Python", python), *libraries, ("platform", platform.platform())])))


_OTHERS = """`pipegen help TOPIC` explains one of them, or a key (`pipegen help batch.remainder`).
`pipegen ops` lists the steps and sources, `pipegen rule` the findings, `pipegen --help` the commands."""


def _complete_topic(incomplete: str) -> list[tuple[str, str]]:
    from pipegen.cli.reference.section_pages import PAGES

    return [(name, subject) for name, subject in PAGES.items() if name.startswith(incomplete)]


def help_(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="A section such as splits, a key such as batch.remainder, a step, a command or the code of a finding.",
            autocompletion=_complete_topic,
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
    from pipegen.cli.reference.ops import all_ops, op_page
    from pipegen.cli.reference.section_pages import all_keys, terminal
    from pipegen.diagnostics.suggest import hints

    ops = all_ops()
    page = render_page(terminal(topic)) if topic in PAGES else op_page(ops[topic]) if topic in ops else page_text(topic)
    found = [page] if page else [_command(ctx, topic), _keys(topic)]  # such as `cache`, which is a command and a key of `runtime`
    if not any(found):
        topics = [*PAGES, *ops, *(path for _, path, _ in all_keys())]
        raise CannotRun(f"there is no help on `{topic}`", hints(topic, topics, "`pipegen help` lists all topics")[0])
    say("\n\n".join(text for text in found if text))


def _command(ctx: typer.Context, topic: str) -> str | None:
    group: Any = ctx.parent.command if ctx.parent is not None else None
    command = group.get_command(ctx.parent, topic) if group is not None else None
    if command is None:
        return None
    with type(ctx)(command, info_name=topic, parent=ctx.parent) as below:
        return str(command.get_help(below))


def _keys(topic: str) -> str | None:
    from pipegen.cli.reference.section_pages import all_keys, key_lines

    found = [(page, key) for page, full, key in all_keys() if topic in (full, key.path, key.path.rpartition(".")[2])]
    if not found:
        return None
    lines = [line for page, key in found for line in (bold(page), *(f"  {line}" for line in key_lines(key)))]
    pages = " and ".join(f"`pipegen help {page}`" for page in dict.fromkeys(page for page, _ in found))
    return "\n".join([*lines, "", f"{pages} has the rest, with an example" if len(found) == 1 else f"the rest: {pages}"])
