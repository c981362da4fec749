"""`pipegen init`."""

from __future__ import annotations

import os
import re
import shlex
from typing import Annotated

import typer

from pipegen.cli.common import note, progress, say
from pipegen.cli.failures import CannotRun, refused
from pipegen.cli.files import SUFFIX
from pipegen.ops.sources.dataset_folders.hub import is_saved
from pipegen.ops.sources.dataset_folders.tfds import FEATURES, INFO
from pipegen.ops.sources.zarr import Zarr
from pipegen.terminal import aligned

_ARRAYS = ".npz"
_TABLES = (".csv", ".tsv", ".tab")
_OTHER_TABLES = (".jsonl", ".ndjson", ".xlsx", ".xlsm", ".xls", ".ods")
_RECORDS = (
    ".tfrecord", ".tfrecords", ".tfrec", ".tar", ".zip", ".mds", ".array_record", ".arrayrecord", ".arrow", ".feather", ".h5", ".hdf5",
    ".hdf", ".lmdb", ".mdb", ".sqlite", ".sqlite3", ".db",
)  # fmt: skip
_PARQUET = ".parquet"
_BOXES = (".json", ".yaml", ".yml")
"""Files that may say which boxes are on images."""
_FILES = (_ARRAYS, *_TABLES, *_OTHER_TABLES, *_RECORDS, _PARQUET, *_BOXES)
_LATER = {".npy": "single arrays"}


def init(
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="A folder of images: a sub-folder for each class, images and masks, train and validation, or flat; "
            "images with boxes as COCO, Pascal VOC, YOLO and LabelMe have them, or the `.json` or `data.yaml` that describes them; "
            "or a `.csv`, `.jsonl`, `.xlsx`, `.parquet` or `.npz` file; or `.tfrecord`, `.tar`, `.zip`, `.mds`, `.array_record`, "
            "`.arrow`, `.h5`, `.lmdb` or `.sqlite` files, or a folder of these; a Zarr group, a data set of TensorFlow Datasets, or "
            "one that Hugging Face's library saved or the Hub holds.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar=f"NAME{SUFFIX}", help="Where to write; by default FOLDER's name.")
    ] = None,
) -> None:
    """Look at images, a table, a `.npz` file or files of records; write a first spec.

    It finds classes, splits and masks, notes what it found as comments, and never writes over a file.

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
        raise CannotRun("a folder of images, a `.csv` or a `.npz` file is due: `pipegen init flowers/`")
    _check_folder(folder)
    target = output or f"{_name_of(folder)}{SUFFIX}"
    if os.path.lexists(target):
        raise CannotRun(
            f"{target} exists already, and is left alone", f"choose another name: `pipegen init {shlex.quote(folder)} -o OTHER{SUFFIX}`"
        )
    text, summary = _look(folder, os.path.dirname(target) or ".")
    _write_new(target, text)
    say(f"wrote {target}: {summary}")
    if not target.endswith(SUFFIX):
        note(f"`pipegen validate` finds specs named *{SUFFIX} by itself; name this one when you validate it")
    say("next:")
    for line in _next(shlex.quote(target), shlex.quote(os.path.join(os.path.dirname(target), "pipegen.schema.json"))):
        say(f"  {line}")


def _look(folder: str, spec_folder: str) -> tuple[str, str]:
    """The text of the spec, and what was found in a few words."""
    if folder.lower().endswith(_ARRAYS):
        from pipegen.cli.init.arrays import first_arrays

        return first_arrays(folder, spec_folder)
    if folder.lower().endswith((*_TABLES, *_OTHER_TABLES)):
        from pipegen.cli.init.table import first_table

        return first_table(folder, spec_folder)
    if folder.lower().endswith(_PARQUET):
        from pipegen.cli.init.stored import first_parquet

        return first_parquet(folder, spec_folder)
    if any(os.path.isfile(os.path.join(folder, mark)) for mark in Zarr.marks):
        from pipegen.cli.init.stored import first_zarr

        return first_zarr(folder, spec_folder)
    if os.path.isfile(os.path.join(folder, INFO)) and os.path.isfile(os.path.join(folder, FEATURES)):
        from pipegen.cli.init.stored import first_prepared

        return first_prepared(folder, spec_folder)
    if os.path.isdir(folder) and is_saved(folder):
        from pipegen.cli.init.stored import first_saved

        return first_saved(folder, spec_folder)
    if (os.path.isdir(folder) or folder.lower().endswith(_RECORDS)) and (op := _records(folder)) is not None:
        from pipegen.cli.init.records import first_records

        return first_records(folder, op, spec_folder)
    from pipegen.cli.init.boxed import first_boxed
    from pipegen.cli.init.image_pairs import first_pairs
    from pipegen.cli.init.pairing import find_pairs
    from pipegen.cli.init.spec import first_spec
    from pipegen.cli.init.survey import survey

    with progress("looking at files") as seen:
        boxed = first_boxed(folder, spec_folder, seen)
        if boxed is not None:
            return boxed
        pairs = find_pairs(folder, seen)
        if pairs is not None:
            return first_pairs(pairs, spec_folder), pairs.summary()
        found = survey(folder, seen)
    return first_spec(found, spec_folder), found.summary()


def _records(folder: str) -> str | None:
    """The source of records that reads a file or a folder, if there is one."""
    if os.path.isdir(folder) and not any(name.lower().endswith(_RECORDS) for name in os.listdir(folder)):
        return None
    from pipegen.cli.init.records import source_of

    return source_of(folder)


def _next(target: str, schema: str) -> list[str]:
    """Says what to run next, and why."""
    steps = {
        f"pipegen preview {target}": "look at what the model will see",
        f"pipegen validate {target} --data": "check the spec and a sample of the files",
        f"pipegen schema > {schema}": "for completion in your editor, beside the spec",
    }
    return aligned((command, f"# {why}") for command, why in steps.items())


def _check_folder(folder: str) -> None:
    extension = os.path.splitext(folder)[1].lower()
    if os.path.isdir(folder) or (extension in _FILES and os.path.isfile(folder)):
        return
    if extension in _LATER:
        raise CannotRun(f"{folder}: pipegen does not read {_LATER[extension]} yet", "for now, point `init` at a folder of images")
    if os.path.exists(folder):
        raise CannotRun(f"{folder} is no folder", "`pipegen init` looks at a folder of images")
    raise CannotRun(f"there is no {'file' if extension in _FILES else 'folder'} {folder}")


def _name_of(folder: str) -> str:
    if os.path.isfile(os.path.join(folder, INFO)):  # the version of a data set, whose name is that of the folder above
        folder = os.path.dirname(os.path.abspath(folder))
    name = os.path.basename(os.path.abspath(folder))
    name = os.path.splitext(name)[0] if name.lower().endswith(_FILES) and os.path.isfile(folder) else name
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "pipeline"


def _write_new(target: str, text: str) -> None:
    """Create a file; one that appears meanwhile is left alone too."""
    with refused("write", target), open(target, "x", encoding="utf-8") as stream:  # one that appears meanwhile is left alone too
        stream.write(text)
