"""`pipegen profile`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, SplitName, allowed_code, choose_split, load_spec, open_pipeline, write_text
from pipegen.cli.failures import CannotRun, refused
from pipegen.terminal import note, progress, say

if TYPE_CHECKING:
    from pipegen.observe.profile import Profile


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
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
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
        raise typer.Exit(_trained(spec, split, train, script or [], (output_format, out), sets))
    if script:
        raise typer.BadParameter(f"{script[0]!r} is an argument for a script, but --train is missing", param_hint="'ARGUMENT'")
    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets)
    chosen = choose_split(loaded.plans, split)
    pipe = open_pipeline(loaded, allowed)
    from pipegen.observe.measured import record
    from pipegen.observe.profile import analyse

    with progress("batches") as tick:
        found = record(pipe, chosen, model_ms=model_ms, steps=steps, tick=tick)
    made = analyse(pipe, found)
    _print(made.rendered(output_format), made.sentence, out)
    if save:
        _save(analyse(pipe, found, {}))


def _print(text: str, sentence: str, out: str | None) -> None:
    if out is not None:
        write_text(out, text.rstrip("\n") + "\n")
    say(text if out is None else sentence)


def _save(made: Profile) -> None:
    from pipegen.observe.tune import fitted_factors, today
    from pipegen.phases.machine_settings import keep_machine, machine

    factors = fitted_factors(made)
    with refused("store the measurements in", "the user's cache folder"):
        file = keep_machine(machine().with_factors(factors, today()))
    note(f"the cost model is fitted to this machine: {file}" if file is not None else "nothing is stored: PIPEGEN_MACHINE is off")


def _trained(spec: str, split: str | None, script: str, given: list[str], form: tuple[str, str | None], sets: list[str]) -> int:
    """Profiles a script; returns its exit code."""
    from pipegen.observe.training import profile_script

    if not os.path.isfile(script):
        raise CannotRun(f"there is no script {script}")
    loaded = load_spec(spec, sets)
    code, said = profile_script(script, given, spec_hash=loaded.hash, split=choose_split(loaded.plans, split), form=form[0])
    if said is None:
        if code == 0:
            hint = "iterate the spec's split in Python, as Keras' `fit` does; a distribution strategy fetches batches itself"
            raise CannotRun(f"{script} has taken too few batches from a pipeline of pipegen to measure", hint)
        return code
    _print(*said, form[1])
    return code
