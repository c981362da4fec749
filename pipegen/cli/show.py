"""`pipegen show`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pipegen.cli.common import Sets, SpecFile, StageNumber, json_text, load_spec, say


def show(
    spec: SpecFile,
    output_format: Annotated[Literal["yaml", "json"], typer.Option("--format", help="How to print it.")] = "yaml",
    stage: StageNumber = None,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Print a spec with every default, and where each value came from.

    The output is a spec again. The hash identifies what the pipeline means: a run resumes only under the same hash.

    Examples:
      pipegen show flowers.pipegen.yaml
      pipegen show flowers.pipegen.yaml --set size=192
      pipegen show flowers.pipegen.yaml --format json
    """
    from pipegen.cli.resolved import resolved_json, resolved_yaml

    loaded = load_spec(spec, sets, stage)
    if output_format == "json":
        say(json_text(resolved_json(loaded)))
    else:
        say(resolved_yaml(loaded).rstrip())
