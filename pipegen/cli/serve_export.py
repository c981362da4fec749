"""`pipegen serve-export`."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, allowed_code, load_spec, open_pipeline
from pipegen.cli.failures import CannotRun
from pipegen.terminal import aligned, say


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
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
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
    allowed, size = allowed_code(allow_code), _size(image_size)
    loaded = load_spec(spec, sets)
    if not os.path.exists(model):
        raise CannotRun(f"there is no model {model}", '`model.save("flowers.keras")` writes one')
    if not overwrite and (os.path.isfile(out) or (os.path.isdir(out) and os.listdir(out))):
        raise CannotRun(f"{out} exists already", "choose another path, or replace it with `--overwrite`")
    pipe = open_pipeline(loaded, allowed)
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
