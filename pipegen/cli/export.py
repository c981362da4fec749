"""`pipegen preview`, `export`, `eject` and `serve-export`: files that need no pipegen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipegen.cli.common import NOTHING, Quality, SpecFile, SplitName, WithCode, WithStage, choose_split
from pipegen.cli.failures import CannotRun, check_parent, print_findings, refused
from pipegen.files import whole_file
from pipegen.ops.kinds.base import Levels, Samples, Values, having
from pipegen.terminal import aligned, progress, say

if TYPE_CHECKING:
    from pipegen.views.export import Exported


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
    given: WithStage = NOTHING,
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
    from pipegen.passes.drop_unused import without_unused

    loaded, chosen = given.load_split(spec, split)
    if not having(without_unused(loaded.plans[chosen]).read, Levels, Samples):
        raise CannotRun(
            "a contact sheet shows images or sounds, but this spec's model receives none", "`pipegen explain` shows what it receives"
        )
    pipe = given.open(loaded)
    with progress("drawing", min(rows, pipe.num_examples(chosen))) as drawn:
        sheet = pipe.preview(chosen, rows=rows, draws=draws, epoch=epoch, progress=drawn)
    target = output or f"{loaded.model.name or 'preview'}-{chosen}.png".replace(os.sep, "-")
    with refused("write", target), whole_file(target) as stream:
        sheet.save(stream, "PNG")
    say(f"wrote {target}: {min(rows, pipe.num_examples(chosen))} of {pipe.num_examples(chosen):,} examples of split {chosen}")


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
    given: WithStage = NOTHING,
) -> None:
    """Write augmented examples as files, with a table of the draws.

    It writes an image for each example, with its masks and dense maps, or its sound as a WAV, and `metadata.jsonl`: a
    line for each with its source file, its place in the epoch, its class, and the drawn parameters of every random step, such as
    "random_rotation.degrees": -12.3. The pixels are those that training sees at that place, before the closing `rescale`,
    `normalize` and `standardize`. Other values are mapped to 0 to 255; the table has their range.

    Examples:
      pipegen export flowers.pipegen.yaml augmented/
      pipegen export flowers.pipegen.yaml augmented/ --examples 10 --draws 5
      pipegen export flowers.pipegen.yaml epoch7/ --whole-epoch --epoch 7 --format jpeg --quality 90
    """
    from pipegen.passes.drop_unused import without_unused

    loaded, chosen = given.load_split(spec, split)
    if not having(without_unused(loaded.plans[chosen]).read, Values):
        raise CannotRun("export writes images or sounds, but this spec's model receives none", "`pipegen explain` shows what it receives")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CannotRun(f"cannot write into {folder}: it is a file")
    if not overwrite and os.path.isdir(folder) and os.listdir(folder):
        raise CannotRun(f"{folder} is not empty", "choose another folder, or replace files of the same names with `--overwrite`")
    pipe = given.open(loaded)
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


def _tell(done: Exported, split: str, draws: int) -> None:
    what = {".wav": "sounds", ".npy": "arrays"}.get(os.path.splitext(done.files[0])[1] if done.files else "", "images")
    say(f"wrote {len(done.files)} {what} of split {split} and {done.table}")
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


_TAKEN = ("tensorflow", "keras", "numpy", "pipegen")  # modules that the written code imports


def eject(
    spec: SpecFile,
    out: Annotated[str, typer.Argument(metavar="OUT", help="With --graph a new or empty folder, with --code a new file such as data.py.")],
    graph: Annotated[bool, typer.Option("--graph", help="Write the datasets as SavedModels, which need TensorFlow alone.")] = False,
    code: Annotated[bool, typer.Option("--code", help="Write a Python module, to edit by hand.")] = False,
    splits: Annotated[list[str], typer.Option("--split", metavar="NAME", help="A split; may be repeated. By default all.")] = [],  # noqa: B006
    given: WithCode = NOTHING,
) -> None:
    """Write the datasets so that they run without the spec.

    With --graph, each split becomes a SavedModel that needs no pipegen. After `train = tf.saved_model.load("OUT/train")`,
    `train.batches(epoch, step)` is the dataset of that epoch from that step on, bit for bit as in pipegen. The data is not copied; if it
    moves, pass its new folder. What a graph cannot contain, such as Python functions, is a finding. With --code, the compiled plan
    becomes plain tf.data on pipegen's lowered parts, a line for each operation.

    Examples:
      pipegen eject --graph flowers.pipegen.yaml flowers-graphs/
      pipegen eject --graph flowers.pipegen.yaml validation/ --split validation
      pipegen eject --code flowers.pipegen.yaml flowers_data.py
    """
    if graph == code:
        raise typer.BadParameter("use one of `--graph` and `--code`", param_hint="'--graph'")
    _check_target(out, graph=graph)
    loaded = given.load(spec)
    chosen = [choose_split(loaded.plans, split) for split in dict.fromkeys(splits)] or list(loaded.plans)
    pipe = given.open(loaded)
    with progress("saving", len(chosen)) as saved:
        done = pipe.eject(out, "graph" if graph else "code", splits=chosen, progress=saved)
    if done.remarks:
        print_findings(done.remarks, pipe.spec.loaded.texts, to=sys.stderr)
    what = f"{len(done.splits)} SavedModel{'s' * (len(done.splits) != 1)}" if graph else "code"
    say(f"wrote {done.path}: {what} of {' and '.join(done.splits)}" + ("; its README.md explains how to load them" if graph else ""))


def _check_target(out: str, *, graph: bool) -> None:
    if graph and os.path.isdir(out) and not os.listdir(out):
        return
    if os.path.lexists(out):
        help_ = "choose another path, or move it away: it may contain edits by hand"
        raise CannotRun(f"cannot write {out}: it exists{', and is not an empty folder' if graph else ''}", help_)
    if graph:
        return
    if not out.endswith(".py"):
        raise CannotRun(f"the code is Python, but {out} does not end in .py", "use a name such as `data.py`")
    module = os.path.basename(out).removesuffix(".py")
    if module in sys.stdlib_module_names or module in _TAKEN:
        raise CannotRun(f"a file {module}.py would hide the module `{module}` from Python", "use a name such as `data.py`")
    check_parent(out)


def serve_export(
    spec: SpecFile,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The trained model, such as flowers.keras.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The folder to write, such as models/flowers/1, or the file.")],
    takes: Annotated[
        Literal["bytes", "images"], typer.Option("--takes", help="What a request has: bytes of image files, or decoded images.")
    ] = "bytes",
    jit: Annotated[bool, typer.Option("--jit", help="Let XLA compile the steps on batches; the server then needs XLA.")] = False,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="The number of best classes to return; 0 for none.")] = 5,
    output_format: Annotated[
        Literal["saved_model", "tflite", "onnx"], typer.Option("--format", help="Model format; TFLite and ONNX take decoded images.")
    ] = "saved_model",
    image_size: Annotated[
        str | None, typer.Option("--image-size", metavar="HEIGHTxWIDTH", help="Size of every image, for TFLite and ONNX; by default any.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    given: WithCode = NOTHING,
) -> None:
    """Write a model with its input pipeline in front of it, for a server.

    The evaluation steps of the spec and the model become one SavedModel, which TensorFlow Serving and any TensorFlow load without pipegen.
    A request contains the bytes of image files; the answer contains the scores and the names of the best classes. The model receives the
    same values as from `predict_on`.

    Examples:
      pipegen serve-export flowers.pipegen.yaml flowers.keras models/flowers/1
      pipegen serve-export flowers.pipegen.yaml flowers.keras models/flowers/2 --top-k 3
      pipegen serve-export flowers.pipegen.yaml flowers.keras flowers.tflite --format tflite --takes images --image-size 480x640
    """
    size = _size(image_size)
    loaded = given.load(spec)
    if not os.path.exists(model):
        raise CannotRun(f"there is no model {model}", '`model.save("flowers.keras")` writes one')
    if not overwrite and (os.path.isfile(out) or (os.path.isdir(out) and os.listdir(out))):
        raise CannotRun(f"{out} exists already", "choose another path, or replace it with `--overwrite`")
    pipe = given.open(loaded)
    try:
        done = pipe.export_model(
            _read(model), out, takes=takes, jit=jit, top_k=top_k, overwrite=overwrite, form=output_format, image_size=size
        )
    except (ValueError, RuntimeError) as error:
        raise CannotRun(str(error)) from error
    say(f"wrote {done.path}")
    rows = []
    for kind, side in (("takes", done.request), ("gives", done.gives)):
        for name, (dtype, shape) in side.items():
            sizes = [str(s) if s is not None else "?" if i else "n" for i, s in enumerate(shape)]
            rows.append((f"  {kind} {name}", f"{dtype} ({', '.join(sizes)})"))
    for line in aligned(rows):
        say(line)
    if done.class_names:
        more = f" and {len(done.class_names) - 8} more" if len(done.class_names) > 8 else ""
        say(f"  classes: {', '.join(done.class_names[:8])}{more}")


def _size(given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    height, by, width = given.partition("x")
    if not (by and height.isdecimal() and width.isdecimal()):
        raise typer.BadParameter(f"{given!r} is not HEIGHTxWIDTH, such as 480x640", param_hint="'--image-size'")
    return int(height), int(width)


def _read(file: str) -> Any:
    import keras

    try:
        return keras.models.load_model(file, compile=False)
    except (ValueError, TypeError, OSError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise CannotRun(f"cannot read the model {file}: {first}") from error
