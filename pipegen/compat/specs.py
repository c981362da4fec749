"""Whole specs: a generator's steps, with the source, the batches and the output that a flow asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipegen.compat.arguments import name_of
from pipegen.compat.files import is_deep
from pipegen.compat.functions import handing
from pipegen.compat.images import RESAMPLING
from pipegen.compat.refusals import UnsupportedArgument
from pipegen.compat.steps import fixed_steps, image_steps
from pipegen.ops.lowering.resizing import CHOOSES_PASS
from pipegen.whole_files import write_whole

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments

ENCODINGS = {"categorical": "one_hot", "binary": "binary", "sparse": "int"}
"""Class modes, and how a spec encodes the label."""
_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}
_DTYPES = ("float32", "float16", "bfloat16", "uint8")
UNLABELLED = ["."]
"""What people give as `classes` for a folder of images without sub-folders."""


def source_of(
    directory: str | os.PathLike[str] | None,
    *,
    classes: Sequence[str] | None,
    class_mode: str | None,
    follow_links: bool,
    write: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """The `source` of a folder, or without one of arrays."""
    if directory is None:
        label = {} if class_mode in (None, "input") else {"label": {"kind": "label"}}
        return {"arrays": {"features": {"image": {"kind": "image"}, **label}}}
    path = os.fspath(directory)
    found: dict[str, Any] = {"path": path if write is None else os.path.relpath(path, os.path.dirname(os.path.abspath(write)))}
    if classes is not None and list(classes) == UNLABELLED:
        found["labels"] = "none"
    elif classes:
        found["classes"] = list(classes)
    if follow_links:
        found["follow_links"] = True
    return {"image_folder": found}


def sections(
    generator: Arguments, source: dict[str, Any], steps: list[Any], *, batch_size: int, shuffle: bool, seed: int
) -> dict[str, Any]:
    """A spec without splits and targets."""
    output: dict[str, Any] = {"x": "image"}
    dtype = name_of(generator.dtype)
    if dtype not in _DTYPES:
        raise UnsupportedArgument("dtype", f"batches of a spec are {', '.join(_DTYPES)}, not {dtype}", "cast them afterwards")
    if dtype != "float32":
        output["dtype"] = dtype
    if generator.data_format == "channels_first":
        output["channels"] = "first"
    return {
        "pipegen": 1,
        "source": source,
        "transforms": steps,
        "seed": seed,
        "shuffle": "global" if shuffle else "none",
        "batch": {"size": batch_size, "remainder": "keep"},
        "output": output,
    }


def rows_spec(
    generator: Arguments,
    source: str,
    image: dict[str, Any],
    count: int,
    shape: tuple[int, ...],
    batches: Mapping[str, Any],
    reading: Sequence[Any] = (),
    *,
    validates: bool,
) -> dict[str, Any]:
    """The spec of a flow over rows. Targets are found by the number of the row, so that any array can be one.

    The number is a label, since labels are whole numbers of 64 bits, and tensors float32, which cannot count beyond 2^24.

    Args:
        generator: The generator.
        source: The kind of source.
        image: Its feature of images.
        count: How many rows there are.
        shape: (height, width, channels) of the images that enter the augmentation.
        batches: `batch_size`, `shuffle` and `seed`.
        reading: The steps before the augmentation.
        validates: Whether the rows are neither augmented nor shuffled.
    """
    height, width, channels = shape
    generator = handing(generator)
    steps = fixed_steps(generator, channels) if validates else image_steps(generator, (height, width), channels)
    row = {"kind": "label", "classes": count}
    found = {source: {"features": {"image": image, "row": row}}}
    order = {**batches, "shuffle": batches["shuffle"] and not validates}
    spec = sections(generator, found, [*reading, *steps], **order)
    spec["output"] = {**spec["output"], "y": "row"}
    return spec


def targets(class_mode: str | None, *, labelled: bool) -> dict[str, Any]:
    """`y` and its encoding.

    Raises:
        UnsupportedArgument: For a mode that no spec expresses.
        ValueError: For a word that is no mode.
    """
    if class_mode is None:
        return {"y": None}
    if class_mode == "input":
        return {"y": "image"}
    if class_mode not in ENCODINGS:
        raise ValueError(f"`class_mode` is 'categorical', 'binary', 'sparse', 'input' or None, got {class_mode!r}")
    if not labelled:
        raise UnsupportedArgument("class_mode", "a folder without classes has no targets", "pass `class_mode=None`")
    return {"y": "label", "encode": {"label": ENCODINGS[class_mode]}}


def channels_of(color_mode: str) -> int:
    """Returns how many channels the images of a colour mode have."""
    if color_mode not in _CHANNELS:
        raise ValueError(f"`color_mode` is 'rgb', 'rgba' or 'grayscale', got {color_mode!r}")
    return _CHANNELS[color_mode]


def reading_steps(
    size: tuple[int, int], color_mode: str, interpolation: str, keep_aspect_ratio: bool, files: Iterable[str] = ()
) -> list[Any]:
    """Returns how to decode and resize as the installed Pillow does it for Keras: whole, and as stored. Gray keeps the 16 bits that the
    first of `files` has.
    """
    if interpolation not in RESAMPLING:
        raise ValueError(f"`interpolation` is 'nearest', 'bilinear', 'bicubic', 'hamming', 'box' or 'lanczos', got {interpolation!r}")
    decode: dict[str, Any] = {"exif": "ignore", "jpeg": "accurate"}
    if color_mode != "rgb":
        decode["channels"] = channels_of(color_mode)
    if color_mode == "grayscale" and is_deep(files):
        decode["bits"] = 16
    height, width = size
    plain = interpolation == "nearest" and not keep_aspect_ratio  # a spec's own `nearest` is Pillow's
    method = "nearest" if plain else {"pillow": _as_installed(interpolation)}
    resize = {"size": [int(height), int(width)], **({"mode": "crop"} if keep_aspect_ratio else {}), "method": method}
    return [{"decode": decode}, {"resize": resize}]


def _as_installed(interpolation: str) -> str | dict[str, Any]:
    """Returns the filter as a spec names what the installed Pillow computes."""
    import PIL

    earlier = interpolation != "nearest" and int(PIL.__version__.partition(".")[0]) < CHOOSES_PASS
    return {"filter": interpolation, "before": CHOOSES_PASS} if earlier else interpolation


def write_spec(spec: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a spec as YAML."""
    from pipegen.spec.writing import to_yaml

    write_whole(path, to_yaml(spec, default_flow_style=None, width=120))
