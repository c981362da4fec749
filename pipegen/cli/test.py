"""`pipegen test` and `report`: checks of the data of a spec."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import NOTHING, STDIN, SpecFile, WithCode, WithSets, start_tensorflow, write_text
from pipegen.cli.failures import CannotRun, FindingsFormat, check_parent, code_of, print_findings, print_report, refused, render_findings
from pipegen.errors import SpecError
from pipegen.terminal import note, progress, say

if TYPE_CHECKING:
    from pipegen.phases.specs import Spec
    from pipegen.views.data_test_report import DataTestReport

Format = Literal["text", "json", "github", "sarif", "junit"]


def test(
    spec: SpecFile,
    select: Annotated[
        list[str], typer.Option("--select", metavar="TEST", help="Run only these: ids or kinds, with * as a wildcard; may be repeated.")
    ] = [],  # noqa: B006 - Typer makes a list of its own
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="N|all", help="Examples of each split for tests of values; by default the spec's.")
    ] = None,
    output_format: Annotated[Format, typer.Option("--format", help="How to print the results.")] = "text",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the results to a file, and text to the terminal.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    given: WithCode = NOTHING,
) -> None:
    """Run the section `tests` of a spec on its data.

    TensorFlow starts only if a test checks values after the steps. Exit code 0: all passed, or only warnings;
    1: a test failed, or the spec or its data is wrong; 2: could not run.

    Examples:
      pipegen test flowers.pipegen.yaml
      pipegen test flowers.pipegen.yaml --select balance --select "range*"
      pipegen test flowers.pipegen.yaml --sample all --strict
      pipegen test flowers.pipegen.yaml --format junit -o tests.xml
    """
    size: int | Literal["all"] | None = "all" if sample == "all" else None
    if sample is not None and size is None:
        if not (sample.isascii() and sample.isdigit() and int(sample) >= 1):
            raise typer.BadParameter(f"{sample!r} is neither `all` nor a number of examples", param_hint="'--sample'")
        size = int(sample)
    inspection = given.examine(spec)
    loaded = inspection.spec
    try:
        if loaded is None:
            raise SpecError(inspection.diagnostics.sorted())
        report = _report(loaded, select, size, tuple(given.allow_code))
    except SpecError as error:
        if output_format == "text":
            print_findings(error.diagnostics, inspection.loaded.texts, to=sys.stderr)
            raise typer.Exit(code_of(error.diagnostics, strict=strict)) from None
        from pipegen.views.data_test_report import DataTestReport

        report = DataTestReport(STDIN if spec == "-" else spec, (), inspection.loaded.texts, error.diagnostics)
    if output is not None:
        write_text(output, _rendered(report, output_format) + "\n")
        note(f"wrote {output}")
    _print(report, "text" if output is not None else output_format)
    raise typer.Exit(code_of(report.diagnostics, strict=strict))


def _report(loaded: Spec, select: list[str], sample: int | Literal["all"] | None, allowed: tuple[str, ...]) -> DataTestReport:
    from pipegen.api.tasks import run_tests
    from pipegen.data.testing import choose
    from pipegen.phases.compilation import bind, collect_data
    from pipegen.phases.data_tests import with_test_functions
    from pipegen.phases.user_functions import with_functions

    if not loaded.model.tests:
        example = "tests: [{examples: {split: train, min: 1000}}, classes, {no_leak: exact}]"
        raise CannotRun("the spec has no `tests`", f"add some, such as `{example}`", "`pipegen help tests` lists them")
    try:
        chosen = choose(loaded.model, select)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--select'") from None
    _check_data(loaded, "test")
    with_code = with_functions(loaded, allowed) if any(test.test.reads == "examples" for test in chosen) else loaded
    ready = with_test_functions(loaded, chosen, allowed)
    with progress("listing") as listed:
        manifest = collect_data(with_code, listed)
    return run_tests(bind(with_code, manifest), ready, sample, bar=progress, start=start_tensorflow)


def _check_data(loaded: Spec, command: str) -> None:
    if loaded.model.source.needs_data():
        raise CannotRun("the arrays of this spec come from Python", f"call `pipegen.{command}(SPEC, data=…)` in Python")


def _rendered(report: DataTestReport, output_format: Format) -> str:
    own = {"json": report.as_json, "junit": report.as_junit, "text": report.__str__}.get(output_format)
    return own() if own is not None else render_findings(report.diagnostics, output_format)


def _print(report: DataTestReport, output_format: Format) -> None:
    if output_format != "text":
        if text := _rendered(report, output_format):
            say(text)
        return
    for line in report.lines():
        say(line)
    say()
    if report.diagnostics:
        print_findings(report.diagnostics, report.texts)
        say()
    say(report.summary)


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
    given: WithSets = NOTHING,
) -> None:
    """Find copies in two splits, and odd images; write a page.

    Images of one split that are also in another are errors or warnings: byte by byte, or saved again, shrunk, slightly cropped or
    mirrored. Sounds, and windows of series, are compared byte by byte. Repeated, dark, bright, flat and blurry images, odd sizes and
    uneven classes are notes. The page shows classes, sizes,
    samples, splits, copies with both images, oddities and statistics; it is one file without scripts. The measurements of each file are
    stored, so a second run takes seconds.
    Exit code 0: no copies, or only warnings; 1: copies, or a wrong spec; 2: could not run.

    Examples:
      pipegen report flowers.pipegen.yaml
      pipegen report flowers.pipegen.yaml -o report.html --write-exclude copies.txt
      pipegen report flowers.pipegen.yaml --format github --strict
    """
    loaded = given.load(spec)
    _check_data(loaded, "report")
    target = output or f"{loaded.model.name or 'spec'}-data.html".replace(os.sep, "-")
    check_parent(target)
    if os.path.isdir(target):
        raise CannotRun(f"cannot write {target}: it is a folder", "name a file, such as report.html")
    from pipegen.api.tasks import look
    from pipegen.cli.checking import without_new_list
    from pipegen.cli.checking import write_exclude as write_file
    from pipegen.quality.survey import briefly, in_full

    seen = look(replace(loaded, model=without_new_list(loaded.model, "splits", loaded.loaded.base, write_exclude)))
    with refused("write", target):
        seen.save(target)
    if write_exclude is not None:
        write_file(write_exclude, "splits", seen.manifest.left_out, seen.leaks.to_exclude(), loaded.loaded.base)
    wrote = f"wrote {target}: {seen.leaks.compared} of {len(seen.manifest.splits)} splits"
    if output_format == "text":
        fine = [wrote if seen.diagnostics else f"{wrote}; no findings"]
        print_report(briefly(seen.diagnostics), seen.spec.loaded.texts, fine, output_format)
    else:
        note(wrote)
        print_report(seen.diagnostics, {}, (), output_format, found=in_full(seen.survey))
    raise typer.Exit(code_of(seen.diagnostics, strict=strict))
