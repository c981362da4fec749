"""`pipegen explain`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pipegen.cli.common import Sets, SpecFile, choose_split, json_text, load_spec, say


def explain(
    spec: SpecFile,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help="Only this split; by default every one.")] = None,
    before: Annotated[bool, typer.Option("--before", help="Also show the plan as written, before any pass.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print it.")] = "text",
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Print the compiled plan, why it is so, and its expected cost.

    Every edge shows its type: dtype, shape and the values that can occur. No data is read, so sizes that depend on it are
    left open, and costs are for photographs of 500 x 375 pixels; `pipe.explain()` in Python knows better. They are figures
    of one machine: their ratios say where the time goes, and `pipegen bench` measures yours.

    Examples:
      pipegen explain flowers.pipegen.yaml
      pipegen explain flowers.pipegen.yaml --split train --before
    """
    from pipegen.backend.budget import available_cores
    from pipegen.compilation import optimise
    from pipegen.explanation import circumstances, explain_json, explain_text

    loaded = load_spec(spec, sets)
    chosen = list(loaded.plans) if split is None else [choose_split(loaded.plans, split)]
    compiled = {name: optimise(loaded.model, loaded.plans[name]) for name in chosen}
    given = dict.fromkeys(chosen, circumstances(loaded.model, available_cores()))
    if output_format == "json":
        say(json_text(explain_json(loaded.model, compiled, given)))
    else:
        say(explain_text(loaded.model, compiled, before=before, given=given).rstrip("\n"))
