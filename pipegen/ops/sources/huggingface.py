"""`huggingface`: datasets saved by Hugging Face's library or from the Hub, read in place."""

from __future__ import annotations

import builtins
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import Note, quoted
from pipegen.ops.kinds.base import ExampleClass, ItemClass
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.arrow import Arrow
from pipegen.ops.sources.listing.base import Listing, SplitSource, always, shards_of
from pipegen.ops.sources.listing.paths import close_names, find_root
from pipegen.ops.sources.records.source import IMAGE_AND_LABEL, RecordFeature, missing_key
from pipegen.ops.sources.shards.paths import check_sets
from pipegen.ops.sources.stores.base import needs, translated
from pipegen.ops.sources.table_sources import Parquet
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.ops.sources.tables.parquet import read_parquet
from pipegen.ops.sources.tables.table import TableColumn
from pipegen.ops.transform import SplitName

DICT, STATE, INFO = "dataset_dict.json", "state.json", "dataset_info.json"
ONLY = "train"  # the split of a dataset without splits
HUB_METADATA = b"huggingface"  # the key of the library's metadata in a Parquet file
FILES = "files"  # the type of a column that holds the bytes of files of an unknown kind
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
    """Reads the types of a Parquet file's columns from the library's metadata; binary columns are `FILES` by default. `PG440` without
    PyArrow, `PG443` for an unreadable file."""
    with translated("Parquet", repr(file), "path"), needs("PyArrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        schema = pq.read_schema(file)
        said = json.loads((schema.metadata or {}).get(HUB_METADATA, b"{}"))
    except (OSError, ValueError) as error:
        raise OpError("PG443", f"{file!r} cannot be read: {error}", field="path") from None
    about = said.get("info", {}).get("features") if isinstance(said, dict) and isinstance(said.get("info"), dict) else None
    found = {}
    for field in schema:
        kind = field.type
        holds_files = pa.types.is_binary(kind) or (pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0)
        found[field.name] = {"_type": FILES if holds_files else "Value"}
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
    wanted = {"image": ("Image", FILES), "audio": ("Audio", FILES), "label": ("ClassLabel",)}.get(kind, ())
    found = [column for column, about in saved.features.items() if about.get("_type") in wanted]
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


_Split = Annotated[str, Field(min_length=1)]


class Huggingface(SplitSource, Arrow):
    """A folder in which Hugging Face's library saved or prepared a dataset, or a folder of Parquet files as on the Hub.

    `save_to_disk` writes such a folder; the Hub names files as in `data/train-00000-of-00003.parquet`. Nothing is downloaded. Needs PyArrow
    only: `pip install 'pipegen[arrow]'`.

    The metadata of the dataset gives the image columns and the class names. Records are read as with `arrow`, those of Parquet files as
    with `parquet`.
    """

    op: ClassVar[str] = "huggingface"

    path: Annotated[str, Field(min_length=1)]
    """Folder of the dataset, relative to the spec's file."""
    split: _Split | Annotated[dict[SplitName, _Split], Field(min_length=1)] = "train"
    """The split of the dataset to read, or one for each split of the pipeline: `{train: train, test: test}`."""
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1, validate_default=True)] = IMAGE_AND_LABEL
    """Features of each record, as with `arrow`. By default `image` and `label`: the columns of these names, else the only `Image` and the
    only `ClassLabel` of the dataset."""

    has_folders = always(False)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Find the folder and list its files; see `StoreSource.list`. Raises `OpError`: `PG401` if the folder or one of its numbered files
        is missing, `PG443` if it is not a dataset or lacks the split, `PG430` if a split's record count differs from its metadata; else as
        `RecordSource.list`."""
        saved = find_saved(str(base), self.path)
        split_of: dict[str, str] = {}
        for name, split, field in self.each_split():
            for file in files_of(saved, split, field):
                if file in split_of:
                    help_ = "evaluation examples must not be in `train`"
                    raise OpError("PG443", f"{file!r} is in several splits", field="split", help=help_)
                split_of[file] = name
        check_sets(split_of, dict.fromkeys(split_of, "*"))
        if saved.parquet:
            return self._in_parquet(saved, split_of, base, progress)
        source = Arrow(path=tuple(split_of), features=self.completed(partial(self._told, saved)), where=self.where, join=self.join)
        source.keep_index_in(self._folder)
        listing = source.list(base, progress)
        parts = [split_of[f"{listing.root}/{key}"] for key in listing.keys]
        notes = (*listing.notes, *self._counted(saved, listing, parts))
        return replace(listing, notes=notes, parts=self.parts_of(parts))

    def _in_parquet(self, saved: Saved, split_of: Mapping[str, str], base: Path, progress: Callable[[int], None] | None) -> Listing:
        """Lists the rows of Parquet files. A cell of a label is a class index if the metadata names the classes."""
        described, every = self.completed(partial(self._told, saved)), tuple(split_of)
        table = read_parquet(every, saved.folder)
        columns = list(table.columns)
        for name, feature in described.items():
            if feature.own_kind.has(ExampleClass) and not (feature.offset or feature.joined or feature.chosen):  # indices by now, by `map`
                number = table.number(feature.key or name, f"features.{name}")
                names = class_names(saved.features.get(feature.key or name, {}))
                columns[number] = replace(columns[number], read=partial(_named, columns[number], names))
        features = {}
        for name, feature in described.items():
            own = feature.model_dump(exclude_defaults=True, exclude={"key"}) | {"kind": feature.kind}
            own |= {} if feature.joined else {"column": feature.key or name}
            features[name] = TableFeature.model_validate(own)
        source = Parquet(path=every, features=features, where=self.where, join=self.join)
        listing = source.listing(replace(table, columns=columns), base, progress)
        of = {os.path.relpath(file, saved.folder).replace(os.sep, "/"): name for file, name in split_of.items()}
        return replace(listing, parts=self.parts_of([of[key.rpartition("#")[0]] for key in listing.keys]))

    def _counted(self, saved: Saved, listing: Listing, parts: builtins.list[str]) -> builtins.list[Note]:
        """Compares each split's record count with its metadata: `PG430` if they differ, a note where the metadata may be outdated."""
        notes = []
        for name, split, _ in self.each_split():
            rows = sum(n for n, part in zip(shards_of(listing).rows.tolist(), parts, strict=True) if part == name)
            due = saved.rows.get(split, rows)
            if rows == due or any(note.severity == "error" for note in listing.notes):
                continue
            message = f"the split {split!r} of {saved.folder!r} has {rows:,} records, but its metadata says {due:,}"
            if saved.sure:
                raise OpError("PG430", message, field="path", help="save the dataset again")
            help_ = "a dataset filtered before saving keeps the old count; if this one was not filtered, save it again"
            notes.append(Note("PG430", message, help_, "path", "warning"))
        return notes

    def _told(self, saved: Saved, name: str, feature: RecordFeature) -> Mapping[str, Any]:
        """Returns the arguments of a feature that the metadata tells; `PG431` if its column is missing."""
        key = feature.key or (feature.keys_of(name)[0] if feature.keys else key_for(saved, name, feature.kind))
        if key is None or (key not in saved.features and "." not in key):
            error = missing_key(repr(saved.folder), feature, name, key or name, tuple(saved.features), "column")
            raise error.at(f"features.{name}" if "features" in self.model_fields_set else None)
        told: dict[str, Any] = {} if feature.keys else {"key": key}
        names = class_names(described(saved, key))
        if feature.own_kind.has(ExampleClass, ItemClass) and feature.classes is None and names:
            told |= {"classes": len(names)} if feature.offset else feature.told_by(names)
        return told


def _named(column: TableColumn, names: tuple[str, ...]) -> Iterable[Any]:
    """Yields the cells of a column; class indices become class names."""
    return (names[cell] if isinstance(cell, int) and 0 <= cell < len(names) else cell for cell in column.read())
