"""`pipegen doctor`."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import NOTHING, WithSets
from pipegen.cli.failures import FOUND, OK, CannotRun
from pipegen.terminal import bold, is_terminal, json_text, progress, say

if TYPE_CHECKING:
    from pipegen.observe.examination import Line

_MARKS = {"ok": "ok", "note": "note", "warning": "WARNING", "error": "ERROR"}


def doctor(
    target: Annotated[
        str | None, typer.Argument(metavar="SPEC|FOLDER", help="A spec, whose needs are compared with the machine, or a folder of data.")
    ] = None,
    images_per_s: Annotated[
        float | None,
        typer.Option("--images-per-s", min=0.001, metavar="N", help="The rate of your model; by default, the rate that the cores reach."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print it.")] = "text",
    given: WithSets = NOTHING,
) -> None:
    """Examine the installation and the machine.

    Each line is a fact with a verdict, and with a remedy for a problem. It covers TensorFlow, Keras, CUDA and the driver, XLA, oneDNN,
    vector units, cores and their load by other programs, memory limits of control groups, open files, shared memory, tensorflow-io and the
    extras. With a spec or a folder, it measures how fast its files are read without the page cache, and with a spec whether that is
    enough. Exit code 0: no errors; 1: errors.

    Examples:
      pipegen doctor
      pipegen doctor flowers.pipegen.yaml
      pipegen doctor /data/flowers --format json
    """
    from pipegen.observe.doctor import CHECKS
    from pipegen.observe.examination import Examination, examine, worst

    examination = Examination()
    if target is not None and os.path.isdir(target):
        examination.folder = target
    elif target is not None:
        if not os.path.exists(target) and target != "-":
            raise CannotRun(f"there is no spec or folder {target}")
        from pipegen.observe.storage import Needs

        examination.needs = Needs(given.load(target), images_per_s)
    with progress("examining") as done:
        lines = []
        for line in examine(examination, CHECKS):
            lines.append(line)
            done(len(lines))
    verdict = worst(lines)
    if output_format == "json":
        say(json_text({"version": 1, "verdict": verdict, "lines": [line.as_json() for line in lines]}))
    else:
        _print(lines)
    raise typer.Exit(FOUND if verdict == "error" or (strict and verdict == "warning") else OK)


def _print(lines: list[Line]) -> None:
    mark, about = (max(map(len, words)) for words in (_MARKS.values(), [line.about for line in lines]))
    margin = mark + about + 4
    width = max(shutil.get_terminal_size().columns - margin, 40) if is_terminal(sys.stdout) else 10_000

    def wrapped(text: str) -> str:
        return f"\n{' ' * margin}".join(textwrap.wrap(text, width, break_on_hyphens=False))

    for line in lines:
        verdict = _MARKS[line.verdict].ljust(mark)
        say(f"{bold(verdict) if verdict.isupper() else verdict}  {line.about.ljust(about)}  {wrapped(line.fact)}")
        if line.remedy:
            say(" " * margin + wrapped(f"→ {line.remedy}"))
    counts = {word: sum(line.verdict == word for line in lines) for word in ("error", "warning")}
    found = " and ".join(f"{n} {word}{'s' if n != 1 else ''}" for word, n in counts.items() if n)
    say(found or "no problems found")
