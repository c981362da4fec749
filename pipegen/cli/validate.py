"""`pipegen validate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from pipegen.cli.common import NOTHING, STDIN, Given, WithCode, write_text
from pipegen.cli.failures import CannotRun, FindingsFormat, code_of, print_report
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Fix, Severity, Span
from pipegen.ops.kinds.base import Levels, having
from pipegen.terminal import note

if TYPE_CHECKING:
    from pipegen.phases.specs import Inspection


def validate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES|FOLDERS|-", help="Specs, folders to search for *.pipegen.yaml, or `-`. Default: the working directory."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="[=all|=N]", help="Also list the data and decode a sample of 200 files of each split (=N: of N; =all: all)."
        ),
    ] = None,
    write_exclude: Annotated[
        str | None,
        typer.Option("--write-exclude", metavar="FILE", help="Write the unreadable files to FILE, for `errors: {exclude: FILE}`."),
    ] = None,
    output_format: Annotated[FindingsFormat, typer.Option("--format", help="How to print the findings.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the safe fixes, which keep the meaning, and check again.")] = False,
    unsafe_fixes: Annotated[bool, typer.Option("--unsafe-fixes", help="Also apply suggestions, which may change the meaning.")] = False,
    given: WithCode = NOTHING,
) -> None:
    """Check specs; read no data unless asked.

    Every finding has a place and a remedy. Exit code 0: no errors; 1: errors; 2: could not run.

    Examples:
      pipegen validate                               every *.pipegen.yaml below the working directory
      pipegen validate flowers.pipegen.yaml --fix    apply the safe fixes
      pipegen validate specs/ --format github        annotations in a pull request
      pipegen validate flowers.pipegen.yaml --data=all --write-exclude damaged.txt
    """
    from pipegen.cli.common import spec_files
    from pipegen.data.named_files import missing_data

    names = spec_files(files or [])
    sample = _sample(data, write_exclude, names, given)
    findings: dict[Diagnostic, None] = {}  # one in a base that several specs extend counts once
    texts: dict[str, str] = {}
    fine: list[str] = []
    for name in names:
        if fix or unsafe_fixes:
            fix_spec(name, given, unsafe=unsafe_fixes)
        inspection = given.examine(name)
        found, about_data, spec = inspection.diagnostics.sorted(), "", inspection.spec
        if data is not None and spec is not None:
            from pipegen.cli.checking import check_data

            found, about_data = check_data(inspection, spec, sample, write_exclude, tuple(given.allow_code))
        elif data is not None:  # one run shows both other errors and missing data
            missing = missing_data(inspection.loaded.raw, inspection.loaded.locate.label)
            found = [*found, *(replace(finding, severity=Severity.ERROR) for finding in missing)]
        elif inspection.loaded.spec is not None:  # valid, but the next command will need the data
            for finding in missing_data(inspection.loaded.raw, inspection.loaded.locate.label):
                note(f"note: {finding.span or finding.labels[0].path}: {finding.message}; {finding.help[0]}")
        texts.update(inspection.loaded.texts)
        findings.update(dict.fromkeys(found))
        if not found:
            fine.append(f"{STDIN if name == '-' else name}: fine ({_describe(inspection)}{about_data})")
    print_report(list(findings), texts, fine, output_format)
    raise typer.Exit(code_of(list(findings), strict=strict))


def _sample(data: str | None, write_exclude: str | None, names: list[str], given: Given) -> int | None:
    """Checks the options about data; returns the number of files of each split to decode, `None` for all or without `--data`."""
    if data is None:
        if given.allow_code:
            raise typer.BadParameter("needs `--data`; no code runs without it", param_hint="'--allow-code'")
        if write_exclude is not None:
            raise typer.BadParameter("needs `--data` or `--data=all`, which finds the unreadable files", param_hint="'--write-exclude'")
        return None
    if write_exclude is not None and len(names) > 1:
        raise typer.BadParameter(f"a list is for one spec, got {len(names)}", param_hint="'--write-exclude'")
    from pipegen.cli.checking import SAMPLE

    words = {"all": None, "sample": SAMPLE}
    if data not in words and (not data.isascii() or not data.isdigit() or int(data) < 1):
        raise typer.BadParameter(f"{data!r} is neither `all` nor a number of files", param_hint="'--data'")
    return words[data] if data in words else int(data)


def _describe(inspection: Inspection) -> str:
    """Summarises a spec: `2 splits, 6 steps, images 224×224×3 float32`."""
    spec = inspection.loaded.spec
    steps = len(spec.transforms) if spec is not None else 0
    parts = [f"{n} {what}{'' if n == 1 else 's'}" for n, what in ((len(inspection.plans), "split"), (steps, "step"))]
    plan = next(iter(inspection.plans.values()), None)
    image = next((plan.out[name] for name in having(plan.out, Levels)), None) if plan is not None else None
    if image is not None:
        parts.append(f"images {'×'.join('?' if d is None else str(d) for d in image.shape)} {image.dtype}")
    return ", ".join(parts)


_ROUNDS = 10  # maximal number of rounds: a fix may reveal another finding
_BOM = "\ufeff"


def fix_spec(file: str, given: Given, *, unsafe: bool = False) -> None:
    """Applies the fixes of a spec until none is left, and notes each; `unsafe` ones are suggestions."""
    if file == "-":
        raise CannotRun("`--fix` needs a spec in a file, not on standard input")
    left_out: dict[str, None] = {}
    for _ in range(_ROUNDS):
        left_out.clear()  # another fix may have made it possible
        found = [d.fix for d in given.examine(file).diagnostics.sorted() if d.fix is not None]
        # Safe ones come first, in case a suggestion changes the same place.
        fixes = sorted(found, key=lambda fix: fix.applicability is not Applicability.SAFE)
        fixes = [fix for fix in fixes if unsafe or fix.applicability is Applicability.SAFE]
        names = dict.fromkeys(edit.span.file for fix in fixes for edit in fix.edits)
        if not sum(_fix_file(name, fixes, left_out) for name in names if os.path.isfile(name)):
            break
    for line in left_out:
        note(line)


def _fix_file(name: str, fixes: Sequence[Fix], left_out: dict[str, None]) -> int:
    from pipegen.diagnostics.fixes import apply_fixes

    try:
        with open(name, encoding="utf-8", newline="") as stream:  # with its line ends
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"cannot read {name}: {error}") from error
    text, bom = text.removeprefix(_BOM), _BOM if text.startswith(_BOM) else ""
    fitting: list[Fix] = []
    for fix in fixes:
        if apply_fixes(text, [*fitting, fix], name)[1] > len(fitting):
            fitting.append(fix)
    taken: list[Fix] = [] if _breaks(text, apply_fixes(text, fitting, name)[0]) else fitting
    for fix in fitting if not taken else ():  # in order, those that together leave valid YAML
        if _breaks(text, apply_fixes(text, [*taken, fix], name)[0]):
            left_out[f"left out {_place(fix, name)}: {fix.title}: the file would be invalid YAML; change it by hand"] = None
        else:
            taken.append(fix)
    if not taken:
        return 0
    write_text(name, bom + apply_fixes(text, taken, name)[0])
    for fix in taken:
        note(f"fixed {_place(fix, name)}: {fix.title}")
    return len(taken)


def _place(fix: Fix, name: str) -> Span:
    return next(edit.span for edit in fix.edits if edit.span.file == name)


def _breaks(before: str, after: str) -> bool:
    """Checks if a change adds syntax errors; in a text that has some already, errors further down may stay."""
    (read, old), (reads, new) = _syntax(before), _syntax(after)
    if read:
        return not reads or len(new) > len(old)
    return not reads and new[-1] <= old[-1]


def _syntax(text: str) -> tuple[bool, list[tuple[int, int]]]:
    """Parses YAML: if it can be read, and the places of syntax errors; the last one ended the parsing."""
    from pipegen.diagnostics.diagnostic import Diagnostics
    from pipegen.spec.compose import compose

    found = Diagnostics()
    tree = compose(text, "", found)
    return tree is not None, [(d.span.line, d.span.column) if d.span is not None else (0, 0) for d in found]
