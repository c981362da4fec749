"""`pipegen diff`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from pipegen.cli.common import Sets, parse_sets, read_stdin
from pipegen.terminal import bold, json_text, note, say


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A spec or a lock: a file, `-`, or a file at a git revision as HEAD~1:FILE.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The spec or lock to compare it with.")],
    output_format: Annotated[Literal["text", "json", "github"], typer.Option("--format", help="Output format.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Count what the specs alone cannot decide as different.")] = False,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Describe the differences between two specs in words.

    First come changes to the numbers that the model sees and to the random draws, then changes to the speed alone, then changes without
    effect. No data is read.
    Exit code 0: the same numbers; 1: different numbers; 2: could not compare.

    Examples:
      pipegen diff flowers.pipegen.yaml daisies.pipegen.yaml
      pipegen diff HEAD~1:flowers.pipegen.yaml flowers.pipegen.yaml
      pipegen diff origin/main: flowers.pipegen.yaml --format github    the same file at another revision
      pipegen diff HEAD:pipegen.lock pipegen.lock
    """
    from pipegen.cli.failures import FAILED, FOUND, OK, CannotRun, print_findings
    from pipegen.comparing.compared_sides import RevisionError, UnreadableSideError
    from pipegen.comparing.comparison import compare, render_github, render_text
    from pipegen.spec.shared_bases import BaseProblem

    if a == b == "-":
        raise typer.BadParameter("standard input has only one spec", param_hint="'B'")
    stdin = read_stdin() if "-" in (a, b) else None
    try:
        found = compare(a, b, overrides=parse_sets(sets), stdin=stdin)
    except UnreadableSideError as error:
        print_findings(error.findings, error.texts, to=sys.stderr)
        raise typer.Exit(FAILED) from None
    except RevisionError as error:
        raise CannotRun(str(error)) from None
    except BaseProblem as problem:
        raise CannotRun(problem.message, *problem.help) from None
    for line in found.notes:
        note(f"note: {line}")
    if output_format == "json":
        say(json_text(found.as_json()))
    elif output_format == "github":
        say(render_github(found).rstrip("\n"))
    else:
        say(render_text(found, bold).rstrip("\n"))
    raise typer.Exit(OK if found.same_numbers and not (strict and found.of("perhaps")) else FOUND)
