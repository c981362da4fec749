"""`pipegen init`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from typing import Annotated

import typer

from pipegen.cli.common import SUFFIX, write_text
from pipegen.cli.failures import CannotRun
from pipegen.cli.init.record_specs import ENDINGS, shards_in
from pipegen.cli.init.spec import Written
from pipegen.ops.sources.huggingface import is_saved
from pipegen.ops.sources.prepared import ABOUT
from pipegen.ops.sources.tfds import FEATURES, INFO
from pipegen.ops.sources.zarr import Zarr
from pipegen.terminal import aligned, note, progress, say

_ARRAYS = (".npz", ".npy")
_TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".xlsx", ".xlsm", ".xls", ".ods")
_SERIES = (".ts",)
_PARQUET = (".parquet", ".pq")
_BOXES = (".json", ".yaml", ".yml")  # files that may describe boxes on images
_FILES = (*_ARRAYS, *_TABLES, *_SERIES, *ENDINGS, ".gz", *_PARQUET, *_BOXES)
_DEPTH = 4  # maximal depth to enter folders that contain a single folder


def init(
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="A folder of images or of sounds: a sub-folder for each class, images and masks, train and validation, or flat; "
            "images with boxes of COCO, Pascal VOC, YOLO or LabelMe, or their `.json` or `data.yaml`; "
            "or a `.csv`, `.jsonl`, `.xlsx`, `.parquet`, `.ts`, `.npz` or `.npy` file; or `.tfrecord`, `.tar`, `.zip`, `.mds`, "
            "`.array_record`, `.arrow`, `.h5`, `.lmdb` or `.sqlite` files, or a folder of these; a Zarr group, a dataset of TensorFlow "
            "Datasets, or one of Hugging Face, saved by its library or from the Hub.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar=f"NAME{SUFFIX}", help="The spec to write; by default FOLDER's name.")
    ] = None,
) -> None:
    """Examine images, sounds, a table, a `.npz` file or files of records; write a first spec.

    It finds classes, splits and masks, describes them in comments, and never replaces a file.

    Examples:
      pipegen init flowers/
      pipegen init ~/data/flowers -o flowers.pipegen.yaml
      pipegen init cifar10.npz
      pipegen init labels.csv
      pipegen init shards/
      pipegen init photos.parquet
      pipegen init ~/tensorflow_datasets/mnist/3.0.1
    """
    if folder is None:
        raise CannotRun("name a folder of images or sounds, a `.csv` or a `.npz` file: `pipegen init flowers/`")
    _check_folder(folder)
    target = output or f"{_name_of(folder)}{SUFFIX}"
    if os.path.lexists(target):
        hint = f"choose another name: `pipegen init {shlex.quote(folder)} -o OTHER{SUFFIX}`"
        raise CannotRun(f"{target} exists already, and is unchanged", hint)
    text, summary = _look(folder, os.path.dirname(target) or ".")
    write_text(target, text, new=True)
    say(f"wrote {target}: {summary}")
    if not target.endswith(SUFFIX):
        note(f"`pipegen validate` finds specs named *{SUFFIX} by itself; pass this one by name")
    say("next:")
    spec, schema = shlex.quote(target), shlex.quote(os.path.join(os.path.dirname(target), "pipegen.schema.json"))
    steps = (
        (f"pipegen preview {spec}", "# see what the model will see"),
        (f"pipegen validate {spec} --data", "# check the spec and a sample of the files"),
        (f"pipegen schema > {schema}", "# for completion in your editor, beside the spec"),
    )
    for line in aligned(steps):
        say(f"  {line}")


def _look(asked: str, spec_folder: str) -> Written:
    """Writes the spec of a file or a folder."""
    from pipegen.cli.init import boxed, folder_survey, pairs, sound_specs, table_specs

    path = asked
    for _ in range(_DEPTH):  # descends while a folder contains a single folder and nothing else
        names = _visible(path)
        if len(names) != 1 or not os.path.isdir(os.path.join(path, names[0])) or _is_group(path) or is_saved(path):
            break
        path = os.path.join(path, names[0])
    found = _stored(path, spec_folder)
    if found is not None:
        return found
    with progress("looking at files") as seen:
        found = boxed.first_boxed(asked, spec_folder, seen) or pairs.first_pairs(asked, spec_folder, seen)
        if found is not None:
            return found
        first = sound_specs.first_sounds if sound_specs.holds_sounds(asked) else folder_survey.first_folder
        found, labelled = first(asked, spec_folder, seen)
        tables = [name for name in sorted(os.listdir(asked)) if name.lower().endswith(_TABLES)]
        of_table = table_specs.first_table_of(asked, tables, spec_folder) if not labelled else None  # a table may have the labels
    return of_table or found


def _stored(path: str, spec_folder: str) -> Written | None:
    """Does the work of `_look` for tables, records and stores; `None` for anything else."""
    from pipegen.cli.init import record_specs, stored_specs, table_specs

    whole, inside = path.lower(), [os.path.join(path, name) for name in _visible(path)]
    has = {name for name in (ABOUT, INFO, FEATURES) if os.path.isfile(os.path.join(path, name))}
    if ABOUT in has:
        specs = sorted(file for file in inside if file.endswith(SUFFIX))
        said = f"see `pipegen explain {shlex.quote(specs[0])}`" if specs else "prepare it again"
        raise CannotRun(f"{path} is a store of `pipegen prepare`, which has a spec already", said)
    is_folder = os.path.isdir(path)
    kinds: tuple[tuple[bool, Callable[[str, str], Written]], ...] = (
        (whole.endswith(_ARRAYS) or _all_end(path, _ARRAYS[1:]), table_specs.first_arrays),
        (whole.endswith(_TABLES), table_specs.first_table),
        (whole.endswith(_SERIES), table_specs.first_ts),
        (has >= {INFO, FEATURES}, stored_specs.first_prepared),
        (is_folder and is_saved(path), stored_specs.first_saved),
        (is_folder and any(map(_is_group, (path, *inside))), stored_specs.first_zarr),
        (whole.endswith(_PARQUET) or _all_end(path, _PARQUET), stored_specs.first_parquet),
    )
    first = next((first for fits, first in kinds if fits), None)
    if first is not None:
        return first(path, spec_folder)
    shards = shards_in(path)
    if shards is None:
        return None
    named = table_specs.first_database(shards.first, spec_folder) if shards.op == "sqlite" else None
    return named or record_specs.first_records(shards, spec_folder)


def _visible(path: str) -> list[str]:
    return [name for name in os.listdir(path) if not name.startswith(".")] if os.path.isdir(path) else []


def _is_group(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, mark)) for mark in Zarr.marks)


def _all_end(path: str, endings: tuple[str, ...]) -> bool:
    names = _visible(path)
    return bool(names) and all(name.lower().endswith(endings) for name in names)


def _check_folder(folder: str) -> None:
    extension = os.path.splitext(folder)[1].lower()
    known = extension in _FILES and extension != ".gz"
    if os.path.isdir(folder) or (os.path.isfile(folder) and (known or shards_in(folder) is not None)):
        return
    if os.path.exists(folder):
        raise CannotRun(f"{folder} is not a folder", "`pipegen init` examines a folder of images or sounds")
    raise CannotRun(f"there is no {'file' if extension in _FILES else 'folder'} {folder}")


def _name_of(folder: str) -> str:
    if os.path.isfile(os.path.join(folder, FEATURES)):  # a version of a dataset, which is named after the folder above
        folder = os.path.dirname(os.path.abspath(folder))
    name = os.path.basename(os.path.abspath(folder))
    name = os.path.splitext(name)[0] if name.lower().endswith(_FILES) and os.path.isfile(folder) else name
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "pipeline"
