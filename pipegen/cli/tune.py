"""`pipegen tune`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, allowed_code, choose_split, examine, load_spec, start_tensorflow, write_text
from pipegen.cli.failures import CannotRun, refused
from pipegen.terminal import json_text, note, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.observe.tune import Tuning
    from pipegen.phases.specs import Spec


def tune(
    spec: SpecFile,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help="The split to run; by default train.")] = None,
    model_ms: Annotated[
        float, typer.Option("--model-ms", min=0, metavar="MS", help="How long a training step of your model takes, in ms.")
    ] = 0,
    disk: Annotated[
        str | None, typer.Option("--disk", metavar="FOLDER", help="Try a cache in this folder, too: a copy of the data, which stays.")
    ] = None,
    turns: Annotated[int, typer.Option("--turns", min=5, metavar="N", help="How often each candidate runs beside the best.")] = 7,
    seconds: Annotated[float, typer.Option("--seconds", min=0.05, metavar="S", help="How long each of the two runs.")] = 1,
    write: Annotated[bool, typer.Option("--write", help="Write the answer into the spec, and not into this machine's file.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print what was tried.")] = "text",
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Try which cache, how many threads and how large a prefetch are fast here.

    Only settings that the spec leaves to pipegen (`auto`) are tried, each candidate in turns with the best so far. One is taken where it is
    faster even in its worse turns. Nothing of it changes what the model sees. A turn in which other programs hold more than 10 % of the
    cores does not count, and where fewer than five turns count, nothing is kept.

    The answer is kept in a file of this machine, in the user's cache folder, for this spec with this `runtime` section. `build` reads it,
    and `explain` says so;
    PIPEGEN_MACHINE=off leaves it out. With --write it goes into the spec's `runtime` section instead, for every machine.

    Examples:
      pipegen tune flowers.pipegen.yaml
      pipegen tune flowers.pipegen.yaml --model-ms 80
      pipegen tune flowers.pipegen.yaml --disk /ssd/cache --write
    """
    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets)
    chosen = choose_split(loaded.plans, split)
    if write and (loaded.loaded.file is None or spec == "-"):
        raise CannotRun("`--write` changes a file, and standard input is none")
    start_tensorflow()
    from pipegen.api.building import build
    from pipegen.observe.tune import tune as tune_pipeline

    def built(settings: Mapping[str, Any]) -> Any:
        changed = loaded.model.model_copy(update={"runtime": type(loaded.model.runtime)(**{**dict(loaded.model.runtime), **settings})})
        return build(_with_model(loaded, changed), allow_code=allowed)

    folder = None if disk is None else os.path.abspath(disk)
    found = tune_pipeline(
        built, chosen, disk=folder, model_ms=model_ms, turns=turns, seconds=seconds, said=lambda what: note(f"trying {what}")
    )
    say(json_text(found.as_json()) if output_format == "json" else found.text())
    if write:
        _write(spec, loaded, found, sets)
    else:
        _keep(loaded, found)


def _with_model(spec: Spec, model: Any) -> Spec:
    from dataclasses import replace

    return replace(spec, model=model)


def _keep(spec: Spec, found: Tuning) -> None:
    """Keeps the answer for this machine: also that nothing is better, in place of an earlier one."""
    from pipegen.observe.tune import written
    from pipegen.phases.machine import keep_machine, machine
    from pipegen.phases.specs import tuned_key

    if not found.best and found.undecided:
        note("nothing is kept")
        return
    if isinstance(found.best.get("cache"), dict):
        note(f"`{written(found.best)}` writes to a disk, which is for the spec to say: --write puts it there")
    known, key = machine(), tuned_key(spec)
    if not found.tuned.settings and key not in known.tuned:
        return
    with refused("keep the answer:", "the user's cache folder"):
        file = keep_machine(known.with_tuned(key, found.tuned))
    note(f"kept for this machine: {file}" if file is not None else "nothing is kept: PIPEGEN_MACHINE is off")


def _write(file: str, spec: Spec, found: Tuning, sets: list[str]) -> None:
    """Writes the answer into the spec, and takes it back where the spec would not say it."""
    from pipegen.diagnostics.fixes import apply_fixes
    from pipegen.observe.tune import written
    from pipegen.spec.runtime_fix import runtime_fix

    if not found.best:
        return
    by_hand = f"write it yourself: runtime: {{{written(found.best)}}}"
    fix = runtime_fix(spec.loaded, found.best)
    name = spec.loaded.file
    if fix is None or name is None or not os.path.isfile(file):
        raise CannotRun(f"{file} has no place that `--write` knows for these settings", by_hand)
    with refused("read", file), open(file, encoding="utf-8", newline="") as stream:
        before = stream.read()
    write_text(file, apply_fixes(before, [fix], name)[0])
    after = examine(file, sets).spec
    said = {key: getattr(after.model.runtime, key) for key in found.best} if after is not None else {}
    wanted = type(spec.model.runtime)(**found.best)
    if after is None or after.hash != spec.hash or any(said[key] != getattr(wanted, key) for key in said):
        write_text(file, before)
        raise CannotRun(f"{file} would not say these settings afterwards; it is as it was", by_hand)
    note(f"wrote `runtime: {{{written(found.best)}}}` into {file}")
