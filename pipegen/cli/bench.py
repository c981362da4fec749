"""`pipegen bench`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, StageNumber, allowed_code, choose_split, load_spec, open_pipeline, progress, say
from pipegen.cli.failures import CannotRun

if TYPE_CHECKING:
    from pipegen.phases.specs import Spec


def bench(
    spec: SpecFile,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help="The split to run; by default train.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help="Batches to time; by default what fits in ten seconds.")
    ] = None,
    model_ms: Annotated[
        float, typer.Option("--model-ms", min=0, metavar="MS", help="How long a training step of your model takes, in ms.")
    ] = 50,
    service: Annotated[bool, typer.Option("--service", help="Require `runtime.service`, and tell which batches its workers made.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print the figures.")] = "text",
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    stage: StageNumber = None,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Measure images/s, and how long a model would wait.

    The pipeline runs alone. The first batch has a line of its own, since it pays for compiling, and a few more pass before
    the clock starts. The next batch is made while the model computes, so a model whose step takes --model-ms waits for
    the rest of a batch's time. Where a cache is filled, the first epoch and later ones have figures of their own. With
    workers of the tf.data service, which the spec names in `runtime.service`, it also tells how many batches were made
    there and here, and how long this process waited for them.

    Examples:
      pipegen bench flowers.pipegen.yaml
      pipegen bench flowers.pipegen.yaml --model-ms 120 --steps 200
      pipegen bench flowers.pipegen.yaml --service --set runtime.service.address=grpc://dispatcher:5050
    """
    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets, stage)
    chosen = choose_split(loaded.plans, split)
    if service:
        _require_workers(loaded, chosen)
    pipe = open_pipeline(loaded, allowed)
    from pipegen.cli.measure import measure

    with progress("batches", steps) as tick:
        figures = measure(pipe, chosen, steps, tick)
    if output_format == "json":
        say(json.dumps(figures.as_json(model_ms), indent=2))
    else:
        say(figures.as_text(model_ms))


def _require_workers(loaded: Spec, split: str) -> None:
    if loaded.model.runtime.service is None:
        help_ = "add it to the spec, or `--set runtime.service.address=grpc://dispatcher:5050`"
        raise CannotRun("`--service` needs the address of a dispatcher in `runtime.service`, and the spec has none", help_)
    if split != "train":
        raise CannotRun(f"workers make the batches of the training split, and not those of `{split}`", "leave `--service` out")
