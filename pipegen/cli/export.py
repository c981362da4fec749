"""`pipegen export`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import (
    AllowCode,
    Quality,
    Sets,
    SpecFile,
    SplitName,
    StageNumber,
    allowed_code,
    choose_split,
    load_spec,
    open_pipeline,
)
from pipegen.cli.failures import CannotRun
from pipegen.ops.kinds.registry import kind_of
from pipegen.terminal import progress, say

if TYPE_CHECKING:
    from pipegen.views.export import Exported


def export(
    spec: SpecFile,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder to write to, new or empty.")],
    split: SplitName = None,
    examples: Annotated[int, typer.Option("--examples", min=1, help="The number of examples, in the order of the first epoch.")] = 32,
    whole_epoch: Annotated[bool, typer.Option("--whole-epoch", help="Write each epoch as training sees it; ignores --examples.")] = False,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Augmented versions of each, from as many epochs.")] = 1,
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="The epoch of the first version.")] = 0,
    image_format: Annotated[Literal["png", "jpeg"], typer.Option("--format", help="Image format; PNG is lossless.")] = "png",
    quality: Quality = 95,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="The beginning of each file name.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Accept a folder with files; replace those of the same names.")] = False,
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    stage: StageNumber = None,
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Write augmented examples as files, with a table of the draws.

    It writes an image for each example, with its masks, and `metadata.jsonl`: a line for each image with its source
    file, its place in the epoch, its class, and the drawn parameters of every random step, such as
    "random_rotation.degrees": -12.3. The pixels are those that training sees at that place, before the closing `rescale`,
    `normalize` and `standardize`. Other values are mapped to 0 to 255; the table has their range.

    Examples:
      pipegen export flowers.pipegen.yaml augmented/
      pipegen export flowers.pipegen.yaml augmented/ --examples 10 --draws 5
      pipegen export flowers.pipegen.yaml epoch7/ --whole-epoch --epoch 7 --format jpeg --quality 90
    """
    from pipegen.passes.dropping import without_unused

    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets, stage)
    chosen = choose_split(loaded.plans, split)
    if not any(kind_of(t).pictured for _, t in without_unused(loaded.plans[chosen]).read.items()):
        raise CannotRun("export writes images, but this spec's model receives none", "`pipegen explain` shows what it receives")
    _check_folder(folder, overwrite)
    pipe = open_pipeline(loaded, allowed)
    count = pipe.num_examples(chosen) if whole_epoch else min(examples, pipe.num_examples(chosen))
    with progress("writing", count * draws) as written:
        try:
            done = pipe.export(
                folder,
                chosen,
                examples=None if whole_epoch else examples,
                draws=draws,
                epoch=epoch,
                form=image_format,
                quality=quality,
                prefix=prefix,
                overwrite=overwrite,
                progress=written,
            )
        except ValueError as error:
            raise CannotRun(str(error)) from None
    _tell(done, chosen, draws)


def _check_folder(folder: str, overwrite: bool) -> None:
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CannotRun(f"cannot write into {folder}: it is a file")
    if not overwrite and os.path.isdir(folder) and os.listdir(folder):
        raise CannotRun(f"{folder} is not empty", "choose another folder, or replace files of the same names with `--overwrite`")


def _tell(done: Exported, split: str, draws: int) -> None:
    say(f"wrote {len(done.files)} images of split {split} and {done.table}")
    if draws > 1 and done.epochs == 1:
        say(f"  one version each: split {split} has no random steps")
    if done.left_out:
        some = f"{done.left_out:,} {'example is' if done.left_out == 1 else 'examples are'} left out of each epoch"
        last = f"the last batch is not full; `--set batch.remainder.{split}=keep` writes them, too"
        why = last if done.why == "batch.remainder" else "`epoch: {steps: N}` ends before the data"
        say(f"  {some}, as in training: {why}")
    if done.missing:
        say(f"  {done.missing} not written: damaged, or in the dropped last batch")
    for name, (low, high) in done.scaled.items():
        say(f"  values of `{name}` were mapped from [{low:g}, {high:g}] to levels from 0 to 255")
