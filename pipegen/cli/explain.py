"""`pipegen explain`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pipegen.cli.common import Sets, SpecFile, choose_split, json_text, load_spec, say


def explain(
    spec: SpecFile,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help="The split; by default train.")] = None,
    passes: Annotated[bool, typer.Option("--passes", help="Also show what each pass did, and why.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show every split, every pass, and the cost of every stage.")] = False,
    before: Annotated[bool, typer.Option("--before", help="Also show the plan as written, before any pass.")] = False,
    physical: Annotated[bool, typer.Option("--physical", help="Show what runs instead: each operation, and what it calls.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print it.")] = "text",
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Print the compiled plan of a split and its most expensive stages.

    Every edge shows its type: dtype, shape and the values that can occur. The command reads no data, so sizes that
    depend on it stay open, and costs are for photographs of 500 x 375 pixels; `pipe.explain()` in Python knows yours.
    The costs are figures of one machine: their ratios say where the time goes, and `pipegen bench` measures your machine.

    Examples:
      pipegen explain flowers.pipegen.yaml
      pipegen explain flowers.pipegen.yaml --split validation --passes
      pipegen explain flowers.pipegen.yaml --all
      pipegen explain flowers.pipegen.yaml --physical
    """
    from pipegen.memory import available_cores
    from pipegen.views.explanation import circumstances, explain_json, explain_text, physical_plans

    loaded = load_spec(spec, sets)
    whole = split is None and (everything or output_format == "json")
    chosen = list(loaded.plans) if whole else [choose_split(loaded.plans, split)]
    compiled = {name: loaded.compiled[name] for name in chosen}
    given = dict.fromkeys(chosen, circumstances(loaded.model, available_cores()))
    runs = physical_plans(loaded.model, compiled, given[chosen[0]].threads, every=everything) if physical else None
    if output_format == "json":
        say(json_text(explain_json(loaded.model, compiled, given, runs)))
    else:
        more = None if everything else ("--split NAME", "--passes", "--all")
        text = explain_text(loaded.model, compiled, before=before, passes=passes or everything, given=given, more=more, physical=runs)
        say(text.rstrip("\n"))
