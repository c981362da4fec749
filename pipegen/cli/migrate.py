"""`pipegen migrate` and `pipegen steps`: specs from code, and steps from what other libraries saved."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from pipegen.cli.common import write_text
from pipegen.cli.failures import FOUND, CannotRun, refused
from pipegen.terminal import bold, note, say

if TYPE_CHECKING:
    from pipegen.migrate.migration import Migration

_PATCH = ".migration.patch"


def migrate(
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Python scripts (.py) and notebooks (.ipynb).")],
    write: Annotated[bool, typer.Option("--write", help=f"Write the specs and NAME{_PATCH} beside each file; never replace one.")] = False,
) -> None:
    """Turn code with ImageDataGenerator into a spec.

    It reads the source without running it. For each file it prints the spec, the changed training code as a diff, and a
    report. The report lists changes in meaning, what has no equivalent, what the code leaves open, and silent mistakes of the
    old code, each with its line.

    Examples:
      pipegen migrate train.py                print the spec, the diff and the report
      pipegen migrate train.py --write        write train.pipegen.yaml and train.migration.patch
      pipegen migrate *.py notebook.ipynb
    """
    from pipegen.migrate.migration import migrate as migrate_file

    broken = False
    for file in files:
        if not os.path.isfile(file):
            raise CannotRun(f"there is no file {file}")
        if os.path.splitext(file)[1].lower() not in (".py", ".ipynb", ".pyw"):
            raise CannotRun(f"{file} is neither a Python script nor a notebook", "`pipegen migrate` reads .py and .ipynb files")
        result = migrate_file(file)
        broken = broken or result.broken
        if write:
            _write(file, result)
        _print(file, result, specs=not write)
    if broken:
        raise typer.Exit(FOUND)


def steps(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `A.save` of Albumentations wrote: JSON or YAML.")],
) -> None:
    """Turn transforms that Albumentations saved into the steps of a spec.

    It prints the section `transforms`. What has no form in a spec, or another meaning, is an error that names it.
    `pipegen.from_albumentations`, `from_torchvision` and `from_keras` do the same with objects.

    Examples:
      pipegen steps augmentation.json
    """
    import yaml

    from pipegen.files import read_regular
    from pipegen.spec.compose import MAX_BYTES
    from pipegen.spec.peers.objects import steps_of_saved

    with refused("read", file):
        text = read_regular(file, MAX_BYTES).decode(errors="replace")
    try:
        saved = yaml.safe_load(text)
    except yaml.YAMLError as error:
        where = str(error).splitlines()
        raise CannotRun(f"{file} is neither JSON nor YAML: {where[0]}{where[-1]}") from None
    try:
        made = steps_of_saved(saved)
    except TypeError as error:
        raise CannotRun(f"{file}: {error}", "write it with `A.save(transform, file)`") from None
    say(made.to_yaml().rstrip())


def _print(file: str, result: Migration, *, specs: bool) -> None:
    if not result.concerned and not result.broken:
        say(f"{file}: nothing to migrate: it makes no ImageDataGenerator")
        return
    if specs:
        for name, text in result.specs.items():
            say(bold(f"=== {name}"))
            say(text)
        diff = result.diff()
        if diff:
            say(bold(f"=== changes to {file}"))
            say(diff)
    say(bold(f"=== report on {file}"))
    say(result.report())


def _write(file: str, result: Migration) -> None:
    """Writes the specs and the patch; refuses to replace a file."""
    folder = os.path.dirname(file)
    patch = result.patch().encode(result.code.encoding)
    texts = {os.path.join(folder, name): text.encode() for name, text in result.specs.items()}
    if patch:
        stem = os.path.splitext(os.path.basename(file))[0]
        texts[os.path.join(folder, stem + _PATCH)] = patch
    taken = next((name for name in texts if os.path.lexists(name)), None)
    if taken is not None:
        raise CannotRun(f"{taken} exists already, and is unchanged", "move it away, or run without `--write`")
    for name, text in texts.items():
        write_text(name, text, new=True)
        say(f"wrote {name}")
    if patch:
        note(f"to change the code, review the patch and run `patch {quote(file)} < {quote(os.path.join(folder, stem + _PATCH))}`")
