"""`pipegen profile` and `tune`: where the time goes, and the settings that save some."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipegen.cli.common import NOTHING, Given, SpecFile, SplitName, WithCode, hand_over, start_tensorflow, write_text
from pipegen.cli.failures import CannotRun, refused
from pipegen.terminal import json_text, note, progress, say

if TYPE_CHECKING:
    from pipegen.observe.tune import Tuning
    from pipegen.phases.specs import Spec


def profile(
    spec: SpecFile,
    script: Annotated[list[str] | None, typer.Argument(metavar="-- ARGUMENT", help="Arguments of the --train script.")] = None,
    split: SplitName = None,
    model_ms: Annotated[
        float | None, typer.Option("--model-ms", min=0, metavar="MS", help="Time of your model's training step, in ms.")
    ] = None,
    train: Annotated[str | None, typer.Option("--train", metavar="SCRIPT", help="Run a Python script, and watch its pipeline.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help="Batches to measure; by default four seconds of them.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Fit the cost model to this machine, for `explain` and `cache: auto`.")] = False,
    output_format: Annotated[Literal["text", "json", "html"], typer.Option("--format", help="Output format.")] = "text",
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the profile to a file, and print one sentence.")] = None,
    given: WithCode = NOTHING,
) -> None:
    """Measure where the time goes, and what the model waits for.

    The pipeline runs once as it is and once traced, alone or beside a model whose step takes --model-ms. With --train your own
    script runs instead, with the arguments behind `--`, and the command exits with its exit code.

    Time is that of the pipeline's threads. Nothing can be measured inside a kernel that XLA compiles, so the cost model divides its time
    among its stages; these are marked as estimated.

    Examples:
      pipegen profile flowers.pipegen.yaml
      pipegen profile flowers.pipegen.yaml --model-ms 80 --format html --out profile.html
      pipegen profile flowers.pipegen.yaml --train train.py
      pipegen profile flowers.pipegen.yaml --save
    """
    if train is not None:
        if model_ms is not None or save:
            raise typer.BadParameter("`--model-ms` and `--save` do not work with a script", param_hint="'--train'")
        if not os.path.isfile(train):
            raise CannotRun(f"there is no script {train}")
        from pipegen.observe.training import profile_script

        loaded, chosen = given.load_split(spec, split)
        code, said = profile_script(train, script or [], spec_hash=loaded.hash, split=chosen, form=output_format)
        if said is not None:
            hand_over(said[0], out, said[1])
        elif code == 0:
            hint = "iterate the spec's split in Python, as Keras' `fit` does; a distribution strategy fetches batches itself"
            raise CannotRun(f"{train} has taken too few batches from a pipeline of pipegen to measure", hint)
        raise typer.Exit(code)
    if script:
        raise typer.BadParameter(f"{script[0]!r} is an argument for a script, but --train is missing", param_hint="'ARGUMENT'")
    loaded, chosen = given.load_split(spec, split)
    pipe = given.open(loaded)
    from pipegen.observe.measured import record
    from pipegen.observe.profile import analyse
    from pipegen.observe.tune import fitted_factors, today
    from pipegen.phases.machine_settings import keep_machine, machine

    with progress("batches") as tick:
        found = record(pipe, chosen, model_ms=model_ms, steps=steps, tick=tick)
    made = analyse(pipe, found)
    hand_over(made.rendered(output_format), out, made.sentence)
    if save:
        factors = fitted_factors(analyse(pipe, found, {}))
        with refused("store the measurements in", "the user's cache folder"):
            file = keep_machine(machine().with_factors(factors, today()))
        note(f"the cost model is fitted to this machine: {file}" if file is not None else "nothing is stored: PIPEGEN_MACHINE is off")


def tune(
    spec: SpecFile,
    split: SplitName = None,
    model_ms: Annotated[float, typer.Option("--model-ms", min=0, metavar="MS", help="Time of your model's training step, in ms.")] = 0,
    disk: Annotated[
        str | None, typer.Option("--disk", metavar="FOLDER", help="Also try a cache in this folder: a copy of the data, which stays there.")
    ] = None,
    turns: Annotated[int, typer.Option("--turns", min=5, metavar="N", help="The number of turns of each candidate against the best.")] = 7,
    seconds: Annotated[float, typer.Option("--seconds", min=0.05, metavar="S", help="The time that each of the two runs in a turn.")] = 1,
    write: Annotated[bool, typer.Option("--write", help="Write the answer into the spec, not into this machine's file.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
    given: WithCode = NOTHING,
) -> None:
    """Find the fastest cache, number of threads and prefetch size on this machine.

    Only settings that the spec leaves to pipegen (`auto`) are tried, each candidate in turns with the best so far. A candidate wins if it
    is faster even in its worse turns. The settings do not change what the model sees. A turn in which other programs use more than 10 % of
    the cores does not count; with fewer than five valid turns, nothing is stored.

    The answer is stored in a file of this machine, in the user's cache folder, for this spec with this `runtime` section. `build` uses it,
    and `explain` shows it; PIPEGEN_MACHINE=off disables it. With --write it goes into the spec's `runtime` section instead, for every
    machine.

    Examples:
      pipegen tune flowers.pipegen.yaml
      pipegen tune flowers.pipegen.yaml --model-ms 80
      pipegen tune flowers.pipegen.yaml --disk /ssd/cache --write
    """
    loaded, chosen = given.load_split(spec, split)
    if write and (loaded.loaded.file is None or spec == "-"):
        raise CannotRun("`--write` needs a spec in a file, not on standard input")
    start_tensorflow()
    from pipegen.api.building import build
    from pipegen.observe.tune import tune as tune_pipeline

    def built(settings: Mapping[str, Any]) -> Any:
        changed = loaded.model.model_copy(update={"runtime": type(loaded.model.runtime)(**{**dict(loaded.model.runtime), **settings})})
        return build(replace(loaded, model=changed), allow_code=given.allow_code)

    folder = None if disk is None else os.path.abspath(disk)
    found = tune_pipeline(
        built, chosen, disk=folder, model_ms=model_ms, turns=turns, seconds=seconds, said=lambda what: note(f"trying {what}")
    )
    say(json_text(found.as_json()) if output_format == "json" else found.text())
    if write:
        _write(spec, loaded, found, given)
    else:
        _keep(loaded, found)


def _keep(spec: Spec, found: Tuning) -> None:
    """Stores the answer for this machine; if nothing is faster, removes an earlier answer."""
    from pipegen.observe.tune import written
    from pipegen.phases.machine_settings import keep_machine, machine
    from pipegen.phases.specs import tuned_key

    if not found.best and found.undecided:
        note("nothing is stored")
        return
    if isinstance(found.best.get("cache"), dict):
        note(f"`{written(found.best)}` writes to a disk, so it must be in the spec: use --write")
    known, key = machine(), tuned_key(spec)
    if not found.tuned.settings and key not in known.tuned:
        return
    with refused("store the answer in", "the user's cache folder"):
        file = keep_machine(known.with_tuned(key, found.tuned))
    note(f"stored for this machine: {file}" if file is not None else "nothing is stored: PIPEGEN_MACHINE is off")


def _write(file: str, spec: Spec, found: Tuning, given: Given) -> None:
    """Writes the answer into the spec; restores the file if the spec does not load with these settings."""
    from pipegen.diagnostics.fixes import apply_fixes
    from pipegen.observe.tune import written
    from pipegen.spec.runtime_fix import runtime_fix

    if not found.best:
        return
    by_hand = f"write it yourself: runtime: {{{written(found.best)}}}"
    fix = runtime_fix(spec.loaded, found.best)
    name = spec.loaded.file
    if fix is None or name is None or not os.path.isfile(file):
        raise CannotRun(f"`--write` finds no place for these settings in {file}", by_hand)
    with refused("read", file), open(file, encoding="utf-8", newline="") as stream:
        before = stream.read()
    write_text(file, apply_fixes(before, [fix], name)[0])
    after = given.examine(file).spec
    said = {key: getattr(after.model.runtime, key) for key in found.best} if after is not None else {}
    wanted = type(spec.model.runtime)(**found.best)
    if after is None or after.hash != spec.hash or any(said[key] != getattr(wanted, key) for key in said):
        write_text(file, before)
        raise CannotRun(f"cannot write these settings to {file}; {file} is unchanged", by_hand)
    note(f"wrote `runtime: {{{written(found.best)}}}` into {file}")
