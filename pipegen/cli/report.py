"""`pipegen report`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import Sets, SpecFile, load_spec
from pipegen.cli.failures import CannotRun, code_of, print_findings, refused
from pipegen.terminal import note, say

if TYPE_CHECKING:
    from pipegen.api.tasks import DataReport
    from pipegen.phases.specs import Spec

Format = Literal["text", "json", "github", "sarif"]


def report(
    spec: SpecFile,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE.html", help="Where to write the page; by default NAME-data.html.")
    ] = None,
    write_exclude: Annotated[
        str | None,
        typer.Option(
            "--write-exclude",
            metavar="FILE",
            help="Write the copies to leave out to FILE, those of training first, for `splits: {exclude: FILE}`.",
        ),
    ] = None,
    output_format: Annotated[Format, typer.Option("--format", help="How to print the findings.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Find copies in two splits, and odd pictures; write a page.

    Pictures of one split that are in another, byte by byte or saved anew, made smaller, cut a little or mirrored, are errors or warnings;
    repeated, dark, bright, flat and blurry pictures, odd sizes and uneven classes are notes. The page shows classes, sizes, samples,
    splits, copies with both pictures, oddities and statistics; it is one file without scripts. What was seen of each file is
    kept, so that a second run takes seconds.
    Exit code 0: no copies, or no more than warnings; 1: copies, or a wrong spec; 2: could not run.

    Examples:
      pipegen report flowers.pipegen.yaml
      pipegen report flowers.pipegen.yaml -o report.html --write-exclude copies.txt
      pipegen report flowers.pipegen.yaml --format github --strict
    """
    loaded = load_spec(spec, sets)
    if loaded.model.source.needs_data():
        raise CannotRun("the arrays of this spec come from Python, so they are not at hand", "`pipegen.report(SPEC, data=…)` looks at them")
    target = output or f"{loaded.model.name or 'spec'}-data.html".replace(os.sep, "-")
    _check(target)
    seen = _look(loaded, write_exclude)
    with refused("write", target):
        seen.save(target)
    if write_exclude is not None:
        from pipegen.cli.checking import write_exclude as write_file
        from pipegen.data.exclude import COPIES_HEADER

        write_file(write_exclude, COPIES_HEADER, "splits", seen.manifest.left_out, seen.leaks.to_exclude(), loaded.loaded.base)
    _print(seen, target, output_format)
    raise typer.Exit(code_of(seen.diagnostics, strict=strict))


def _check(target: str) -> None:
    """Says at once what would only be found out when all the work is done."""
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise CannotRun(f"cannot write {target}: there is no folder {folder}")
    if os.path.isdir(target):
        raise CannotRun(f"cannot write {target}: it is a folder", "name a file, such as report.html")


def _look(loaded: Spec, write_exclude: str | None) -> DataReport:
    """Looks at the data; a list that is to be written, and that the spec names already, need not be there."""
    from dataclasses import replace

    from pipegen.api.tasks import look

    model, listed = loaded.model, loaded.model.splits.exclude
    if write_exclude is not None and listed is not None:
        named = os.path.abspath(loaded.loaded.base / listed)
        if named == os.path.abspath(write_exclude) and not os.path.exists(named):
            model = model.model_copy(update={"splits": model.splits.model_copy(update={"exclude": None})})
    return look(replace(loaded, model=model))


def _print(seen: DataReport, target: str, output_format: Format) -> None:
    from pipegen.quality.survey import briefly, in_full

    wrote = f"wrote {target}: {seen.leaks.looked_at:,} pictures of {len(seen.manifest.splits)} splits"
    if output_format == "text":
        say(wrote if seen.diagnostics else f"{wrote}; nothing was found")
        if seen.diagnostics:
            say()
            print_findings(briefly(seen.diagnostics), seen.spec.loaded.texts)
        return
    note(wrote)
    if output_format == "json":
        from pipegen.diagnostics.machine import render_json

        say(render_json(seen.diagnostics, found=in_full(seen.survey)))
    elif output_format == "github":
        from pipegen.diagnostics.machine import render_github

        for line in render_github(seen.diagnostics).splitlines():
            say(line)
    else:
        from pipegen.diagnostics.machine import render_sarif
        from pipegen.release import __version__

        say(render_sarif(seen.diagnostics, version=__version__))
