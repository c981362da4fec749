"""`pipegen report`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from pipegen.cli.common import Sets, SpecFile, load_spec
from pipegen.cli.failures import CannotRun, FindingsFormat, check_parent, code_of, print_findings, refused, render_findings
from pipegen.terminal import note, say

if TYPE_CHECKING:
    from pipegen.api.tasks import DataReport


def report(
    spec: SpecFile,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write; by default NAME-data.html.")
    ] = None,
    write_exclude: Annotated[
        str | None,
        typer.Option(
            "--write-exclude", metavar="FILE", help="Write the copies to exclude, those of training first, for `splits: {exclude: FILE}`."
        ),
    ] = None,
    output_format: Annotated[FindingsFormat, typer.Option("--format", help="How to print the findings.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Find copies in two splits, and odd images; write a page.

    Images of one split that are also in another are errors or warnings: byte by byte, or saved again, shrunk, slightly cropped or
    mirrored. Repeated, dark, bright, flat and blurry images, odd sizes and uneven classes are notes. The page shows classes, sizes,
    samples, splits, copies with both images, oddities and statistics; it is one file without scripts. The measurements of each file are
    stored, so a second run takes seconds.
    Exit code 0: no copies, or only warnings; 1: copies, or a wrong spec; 2: could not run.

    Examples:
      pipegen report flowers.pipegen.yaml
      pipegen report flowers.pipegen.yaml -o report.html --write-exclude copies.txt
      pipegen report flowers.pipegen.yaml --format github --strict
    """
    loaded = load_spec(spec, sets)
    if loaded.model.source.needs_data():
        raise CannotRun("the arrays of this spec come from Python", "call `pipegen.report(SPEC, data=…)` in Python")
    target = output or f"{loaded.model.name or 'spec'}-data.html".replace(os.sep, "-")
    check_parent(target)
    if os.path.isdir(target):
        raise CannotRun(f"cannot write {target}: it is a folder", "name a file, such as report.html")
    from pipegen.api.tasks import look
    from pipegen.cli.checking import without_new_list
    from pipegen.cli.checking import write_exclude as write_file

    seen = look(replace(loaded, model=without_new_list(loaded.model, "splits", loaded.loaded.base, write_exclude)))
    with refused("write", target):
        seen.save(target)
    if write_exclude is not None:
        from pipegen.data.named_files import COPIES_HEADER

        write_file(write_exclude, COPIES_HEADER, "splits", seen.manifest.left_out, seen.leaks.to_exclude(), loaded.loaded.base)
    _print(seen, target, output_format)
    raise typer.Exit(code_of(seen.diagnostics, strict=strict))


def _print(seen: DataReport, target: str, output_format: FindingsFormat) -> None:
    from pipegen.quality.survey import briefly, in_full

    wrote = f"wrote {target}: {seen.leaks.looked_at:,} images of {len(seen.manifest.splits)} splits"
    if output_format == "text":
        say(wrote if seen.diagnostics else f"{wrote}; no findings")
        if seen.diagnostics:
            say()
            print_findings(briefly(seen.diagnostics), seen.spec.loaded.texts)
        return
    note(wrote)
    if text := render_findings(seen.diagnostics, output_format, found=in_full(seen.survey)):
        say(text)
