"""`pipegen lock`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from pipegen.cli.common import NOTHING, WithSets
from pipegen.cli.failures import CannotRun, FindingsFormat, code_of, print_report
from pipegen.terminal import json_text, note, progress, say

if TYPE_CHECKING:
    from pipegen.api.lock import Locked
    from pipegen.spec.lock_file import Entry

_DIGITS = 12  # digits of a hash that identify it for people


def lock(
    specs: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPECS|FOLDERS", help="Specs, or folders to search for them. Default: those of the nearest lock."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; show what has changed since, offline.")] = False,
    update: Annotated[
        str | None, typer.Option("--update", metavar="[=NAME]", help="Resolve the tags of bases from git again (=NAME: of one repository).")
    ] = None,
    content: Annotated[bool, typer.Option("--content", help="Hash the contents of the data's files, not just names and sizes.")] = False,
    output_format: Annotated[FindingsFormat, typer.Option("--format", help="Output format; `github` and `sarif` need `--check`.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="With `--check`: count changes without effect, too.")] = False,
    given: WithSets = NOTHING,
) -> None:
    """Lock what specs are made of, or show what has changed.

    For each spec, `pipegen.lock` contains its hash, the texts that it is made of, the packages and commits of its bases, the
    fingerprint of its data, what its steps have learned, the source of its Python functions, and the versions of pipegen and TensorFlow.
    The nearest one above the spec is used; commit it, along with `pipegen.lock.d/`. `pipegen.build(spec, locked=True)` refuses
    anything else.

    Only this command fetches, and only bases from git that the lock lacks, or with `--update`.

    With `--check`, exit code 0: all is as it was locked; 1: something has changed; 2: could not run.

    Examples:
      pipegen lock daisies.pipegen.yaml        write or renew its part of the lock
      pipegen lock --check                     every spec of the lock: for CI
      pipegen lock --update=specs              move to the current commits of the tags in the repository `specs`
      pipegen lock --check --format github     annotations in a pull request
    """
    if check and update is not None:
        raise typer.BadParameter("`--update` fetches, but `--check` works offline", param_hint="'--update'")
    if output_format in ("github", "sarif") and not check:
        raise typer.BadParameter(f"`{output_format}` is for findings, and needs `--check`", param_hint="'--format'")
    named = specs or []
    if update == "" and named and not named[0].endswith((".yaml", ".yml")) and not os.path.exists(named[0]):
        update = named.pop(0)  # `--update NAME`
    names = _names(named, check=check)
    from pipegen.api.lock import check_specs, lock_specs

    with progress("listing") as listed:
        if check:
            compared = check_specs(names, content=content, overrides=given.values, progress=listed)
        else:
            done = lock_specs(names, update=update, content=content, overrides=given.values, progress=listed)
    if not check:
        _print_locked(done, output_format)
        return
    for line in compared.notes:
        note(f"note: {line}")
    fine = [f"{file}: as locked ({_describe(compared.entries[file])})" for file in compared.fine]
    print_report(compared.findings, compared.texts, fine, output_format)
    raise typer.Exit(code_of(compared.findings, strict=strict))


def _names(given: list[str], *, check: bool) -> list[str]:
    """Lists the specs given, those in folders, or those of the nearest lock above, else of the working directory."""
    from pathlib import Path

    from pipegen.api.lock import locked_specs
    from pipegen.cli.common import spec_files

    if "-" in given:
        raise CannotRun("a spec from standard input cannot be locked", "save the spec as a file")
    if given:
        return spec_files(given)
    names = locked_specs(Path.cwd())
    if not names and not check:
        return spec_files([])
    if not names:
        message = "there is no pipegen.lock with specs in or above the working directory"
        raise CannotRun(message, "`pipegen lock` writes one for the specs in this folder, `pipegen lock SPEC` for one of them")
    return names if check else [name for name in names if Path(name).is_file()] or names


def _print_locked(done: list[Locked], output_format: FindingsFormat) -> None:
    if output_format == "json":
        locks = []
        for run in done:
            specs = {file: entry.model_dump(mode="json", exclude={"meaning"}) for file, entry in run.entries.items()}
            locks.append({"lock": os.path.relpath(run.lock), "written": run.written, "specs": specs, "git": run.git, "notes": run.notes})
        say(json_text({"version": 1, "locks": locks}))
        return
    for run in done:
        say(f"{os.path.relpath(run.lock)}: {'written' if run.written else 'unchanged'}")
        for file, entry in run.entries.items():
            say(f"  {file}: {_describe(entry)}")
        for line in run.git:
            say(f"  {line}")
        for line in run.notes:
            note(f"note: {line}")


def _describe(entry: Entry) -> str:
    """Summarises an entry of a lock: `3f2a9c0d1e4b, 2 texts, team-specs 1.4.0, 2,400 examples`."""
    parts = [entry.hash[:_DIGITS], f"{len(entry.texts)} text{'s' * (len(entry.texts) > 1)}"]
    parts += [f"{name} {version}" if version else f"{name} without a version" for name, version in entry.packages.items()]
    if entry.data is not None:
        examples = sum(entry.data.examples.values())
        parts.append(f"{examples:,} example{'s' * (examples != 1)}" + (" with their contents" if entry.data.content else ""))
    counts = {"function": len(entry.functions), "fitted step": len(entry.fitted)}
    parts += [f"{n} {what}{'s' * (n > 1)}" for what, n in counts.items() if n]
    return ", ".join(parts)
