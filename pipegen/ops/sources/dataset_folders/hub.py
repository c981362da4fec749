"""Finds files and metadata of datasets that Hugging Face's library saved, or from the Hub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import quoted
from pipegen.ops.sources.listing.paths import close_names, find_root
from pipegen.ops.sources.stores.field_types import MissingLibrary

DICT, STATE, INFO = "dataset_dict.json", "state.json", "dataset_info.json"
ONLY = "train"  # the split of a dataset without splits
HUB_METADATA = b"huggingface"  # the key of the library's metadata in a Parquet file
_NUMBERED = re.compile(r"(?P<split>[\w.]+)-\d{5}-of-\d{5}(-\w+)?\.parquet\Z")
_ENDING = re.compile(r"(-\d{5}-of-\d{5})?\.arrow\Z")


@dataclass(frozen=True)
class Saved:
    """A dataset in a folder."""

    folder: str  # the folder
    files: Mapping[str, tuple[str, ...]]  # absolute paths of the files of each split, in order
    features: Mapping[str, Any]  # the type of each column, from the metadata
    rows: Mapping[str, int]  # the number of records of each split, if known
    parquet: bool = False  # whether they are Parquet files, as on the Hub, rather than Arrow files
    sure: bool = False  # whether another number means missing records. A dataset filtered before saving keeps the old number.


def is_saved(folder: str) -> bool:
    """Tells whether a folder looks like a Hugging Face dataset: saved, prepared, or Parquet files with a split `train`."""
    return (
        any(os.path.isfile(os.path.join(folder, name)) for name in (DICT, STATE))
        or (os.path.isfile(os.path.join(folder, INFO)) and bool(_prepared(folder)))
        or ONLY in _on_hub(folder)
    )


def find_saved(base: str, path: str) -> Saved:
    """Finds a dataset: written by `save_to_disk`, with or without splits, prepared, or Parquet files named by split, as on the Hub. `PG401`
    without the folder, `PG443` for one without a dataset."""
    root = find_root(base, path)
    if os.path.isfile(os.path.join(root, DICT)):
        names = _json(os.path.join(root, DICT)).get("splits")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise OpError("PG443", f"{os.path.join(root, DICT)!r} names no splits", field="path")
        each = {name: _saved(os.path.join(root, name)) for name in names}
        features = next(iter(each.values()))[1].get("features")
    elif os.path.isfile(os.path.join(root, STATE)):
        each = {ONLY: _saved(root)}
        features = each[ONLY][1].get("features")
    elif os.path.isfile(os.path.join(root, INFO)) and (found := _prepared(root)):
        about = _json(os.path.join(root, INFO))
        return Saved(root, found, _maps(about.get("features")), _counts(about, list(found)), sure=True)
    elif found := _on_hub(root):
        return Saved(root, found, _columns(next(iter(found.values()))[0]), {}, parquet=True)
    else:
        names = sorted(os.listdir(root))
        near = [name for name in names if any(os.path.isfile(os.path.join(root, name, file)) for file in (STATE, DICT))]
        help_ = f"it holds {quoted(names)}" if names else "it is empty"
        message = f"{root!r} is not a dataset written by `save_to_disk`"
        raise OpError("PG443", message, field="path", help=f"use {quoted(near)} in it" if near else help_)
    files = {name: files for name, (files, _) in each.items()}
    counts = {name: n for name, (_, about) in each.items() for n in _counts(about, [about["_split"] or name]).values()}
    return Saved(root, files, _maps(features), counts)


def _saved(folder: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Returns the files of a split, and its metadata, with the original name of the split."""
    state = _json(os.path.join(folder, STATE))
    if state.get("_indices_data_files"):
        message = f"{os.path.join(folder, STATE)!r} names a file of row indices, as written by versions before 2021"
        raise OpError("PG443", message, field="path", help="load the dataset and save it again, by `load_from_disk` and `save_to_disk`")
    listed = state.get("_data_files")
    names = [entry.get("filename") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if not names or not all(isinstance(name, str) and os.path.basename(name) == name for name in names):
        raise OpError("PG443", f"{os.path.join(folder, STATE)!r} names no files beside it", field="path")
    split = state.get("_split")
    about = _json(os.path.join(folder, INFO)) | {"_split": split if isinstance(split, str) else None}
    return tuple(os.path.join(folder, str(name)) for name in names), about


def _prepared(folder: str) -> dict[str, tuple[str, ...]]:
    """Finds the files of each split by name, as the library prepares a dataset."""
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(folder)):
        called, dash, split = _ENDING.sub("", name).rpartition("-")
        if name.endswith(".arrow") and dash and called != "cache":  # caches of the library
            found.setdefault(split, []).append(os.path.join(folder, name))
    return {split: tuple(files) for split, files in found.items()}


def _on_hub(root: str) -> dict[str, tuple[str, ...]]:
    """Finds the Parquet files of each split: `data/train-00000-of-00003.parquet`, `train.parquet` or `train/0000.parquet`."""
    for folder in (os.path.join(root, "data"), root):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".parquet")) if os.path.isdir(folder) else []
        splits = {name: (found["split"] if (found := _NUMBERED.match(name)) else name.removesuffix(".parquet")) for name in names}
        if splits:
            return {split: tuple(os.path.join(folder, n) for n in names if splits[n] == split) for split in dict.fromkeys(splits.values())}
    inner = {entry.name: entry.path for entry in sorted(os.scandir(root), key=lambda entry: entry.name) if entry.is_dir()}
    each = {name: tuple(os.path.join(path, n) for n in sorted(os.listdir(path)) if n.endswith(".parquet")) for name, path in inner.items()}
    return {split: files for split, files in each.items() if files}


def _columns(file: str) -> dict[str, Any]:
    """Reads the types of a Parquet file's columns from the library's metadata; binary columns are images by default. `PG440` without
    PyArrow, `PG443` for an unreadable file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingLibrary("PyArrow", "parquet", error).diagnosed("Parquet") from None
    try:
        schema = pq.read_schema(file)
        said = json.loads((schema.metadata or {}).get(HUB_METADATA, b"{}"))
    except (OSError, ValueError) as error:
        raise OpError("PG443", f"{file!r} cannot be read: {error}", field="path") from None
    about = said.get("info", {}).get("features") if isinstance(said, dict) and isinstance(said.get("info"), dict) else None
    found = {}
    for field in schema:
        kind = field.type
        pictured = pa.types.is_binary(kind) or (pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0)
        found[field.name] = {"_type": "Image" if pictured else "Value"}
    return found | _maps(about)


def _json(file: str) -> dict[str, Any]:
    try:
        with open(file, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError) as error:
        raise OpError("PG443", f"{file!r} cannot be read: {error}", field="path") from None
    return found if isinstance(found, dict) else {}


def _maps(given: Any) -> dict[str, Any]:
    """Returns the entries of a map that are maps, such as features or splits with their descriptions."""
    return {name: about for name, about in given.items() if isinstance(about, dict)} if isinstance(given, dict) else {}


def _counts(about: Mapping[str, Any], splits: list[str]) -> dict[str, int]:
    said = _maps(about.get("splits"))
    counts = {name: said[name].get("num_examples") for name in splits if name in said}
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def files_of(saved: Saved, split: str, field: str) -> tuple[str, ...]:
    """Returns the files of a split; `PG443` if it is missing."""
    if split in saved.files:
        return saved.files[split]
    near = close_names(split, list(saved.files))
    help_ = f"is {near[0]!r} meant?" if near else f"its splits are {quoted(list(saved.files))}"
    raise OpError("PG443", f"{saved.folder!r} has no split {split!r}", field=field, help=help_)


def key_for(saved: Saved, name: str, kind: str) -> str | None:
    """Returns the default column of a feature: that of its name, else the only one of its kind."""
    if name in saved.features:
        return name
    wanted = {"image": "Image", "label": "ClassLabel"}.get(kind)
    found = [column for column, about in saved.features.items() if wanted is not None and about.get("_type") == wanted]
    return found[0] if len(found) == 1 else None


def class_names(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the class names of a column, or of the items of a list, if any."""
    while isinstance(about.get("feature"), dict):
        about = about["feature"]
    names = about.get("names") if about.get("_type") == "ClassLabel" else None
    return tuple(map(str, names)) if isinstance(names, list) else ()


def described(saved: Saved, key: str) -> Mapping[str, Any]:
    """Returns the description of a column, or of a field of one: `objects.category`; empty if it is unknown."""
    column, *path = [key] if key in saved.features else key.split(".")
    about: Any = saved.features.get(column, {})
    for name in path:
        inner = about.get("feature") if isinstance(about, dict) else None
        about = (inner if isinstance(inner, dict) else about).get(name) if isinstance(about, dict) else None
    return about if isinstance(about, dict) else {}
