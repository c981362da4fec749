"""`pipegen test`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import STDIN, AllowCode, Sets, SpecFile, allowed_code, examine, start_tensorflow, write_text
from pipegen.cli.failures import CannotRun, code_of, print_findings, render_findings
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
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
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
    allowed = allowed_code(allow_code)
    inspection = examine(spec, sets)
    loaded = inspection.spec
    try:
        if loaded is None:
            raise SpecError(inspection.diagnostics.sorted())
        report = _report(loaded, select, size, allowed)
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
    if loaded.model.source.needs_data():
        raise CannotRun("the arrays of this spec come from Python", "call `pipegen.test(SPEC, data=…)` in Python")
    with_code = with_functions(loaded, allowed) if any(test.test.reads == "examples" for test in chosen) else loaded
    ready = with_test_functions(loaded, chosen, allowed)
    with progress("listing") as listed:
        manifest = collect_data(with_code, listed)
    return run_tests(bind(with_code, manifest), ready, sample, bar=progress, start=start_tensorflow)


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
