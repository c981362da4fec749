"""`pipegen preview`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, SplitName, StageNumber, allowed_code, choose_split, load_spec, open_pipeline
from pipegen.cli.failures import CannotRun, check_parent, refused
from pipegen.files import whole_file
from pipegen.ops.kinds.registry import kind_of
from pipegen.terminal import progress, say


def preview(
    spec: SpecFile,
    split: SplitName = None,
    rows: Annotated[int, typer.Option("--rows", min=1, max=200, help="The number of originals, spread over the split.")] = 6,
    draws: Annotated[
        int, typer.Option("--draws", min=1, max=50, help="Augmented versions of each, from as many epochs; one without random steps.")
    ] = 5,
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="The epoch of the first version.")] = 0,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE.png", help="The file to write; by default NAME-SPLIT.png.")
    ] = None,
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    stage: StageNumber = None,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Write a contact sheet: originals beside augmented draws.

    It shows what the model will see before you spend time on training: too much rotation, a flip that mirrors letters,
    a crop that loses the object.

    Examples:
      pipegen preview flowers.pipegen.yaml
      pipegen preview flowers.pipegen.yaml --rows 10 --draws 8 -o sheet.png
      pipegen preview flowers.pipegen.yaml --split validation
    """
    if output is not None:
        if not output.lower().endswith(".png"):
            raise CannotRun(f"the contact sheet is a PNG, but {output} does not end in .png", "use `-o FILE.png`")
        check_parent(output)
    from pipegen.passes.dropping import without_unused

    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets, stage)
    chosen = choose_split(loaded.plans, split)
    if all(not kind_of(t).levels for _, t in without_unused(loaded.plans[chosen]).read.items()):
        raise CannotRun("a contact sheet shows images, but this spec's model receives none", "`pipegen explain` shows what it receives")
    pipe = open_pipeline(loaded, allowed)
    with progress("drawing", min(rows, pipe.num_examples(chosen))) as drawn:
        sheet = pipe.preview(chosen, rows=rows, draws=draws, epoch=epoch, progress=drawn)
    target = output or f"{loaded.model.name or 'preview'}-{chosen}.png".replace(os.sep, "-")
    with refused("write", target), whole_file(target) as stream:
        sheet.save(stream, "PNG")
    say(f"wrote {target}: {min(rows, pipe.num_examples(chosen))} of {pipe.num_examples(chosen):,} examples of split {chosen}")
