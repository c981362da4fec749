"""`huggingface`: datasets saved by Hugging Face's library, read in place."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.fields.notes import Note, quoted
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.arrow import Arrow
from pipegen.ops.sources.dataset_folders.hub import Saved, class_names, described, files_of, find_saved, key_for
from pipegen.ops.sources.listing.base import Listing, SplitSource, always, shards_of
from pipegen.ops.sources.parquet import Parquet
from pipegen.ops.sources.records.described import RecordFeature, missing_key
from pipegen.ops.sources.shards.paths import check_sets
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.ops.sources.tables.parquet_files import read_parquet
from pipegen.ops.transform import SplitName

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipegen.ops.sources.tables.table import Table

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
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1, validate_default=True)] = {
        "image": {"kind": "image"},  # type: ignore[dict-item]  # which the field makes one
        "label": {"kind": "label"},  # type: ignore[dict-item]
    }
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
        source = Arrow(path=tuple(split_of), features=self._described(saved), where=self.where, join=self.join)
        source.keep_index_in(self._folder)
        listing = source.list(base, progress)
        parts = [split_of[f"{listing.root}/{key}"] for key in listing.keys]
        notes = (*listing.notes, *self._counted(saved, listing, parts))
        return replace(listing, notes=notes, parts=self.parts_of(parts))

    def _in_parquet(self, saved: Saved, split_of: Mapping[str, str], base: Path, progress: Callable[[int], None] | None) -> Listing:
        """Lists the rows of Parquet files. A cell of a label is a class index if the metadata names the classes."""
        described, every = self._described(saved), tuple(split_of)
        table = read_parquet(every, saved.folder)
        names = {
            table.number(feature.key or name, f"features.{name}"): class_names(saved.features.get(feature.key or name, {}))
            for name, feature in described.items()
            if feature.own_kind.labels and not (feature.offset or feature.joined or feature.chosen)  # whose `map` has the indices by now
        }
        named = replace(table, columns=partial(_named, table, names))
        features = {}
        for name, feature in described.items():
            own = feature.model_dump(exclude_defaults=True, exclude={"key"}) | {"kind": feature.kind}
            own |= {} if feature.joined else {"column": feature.key or name}
            features[name] = TableFeature.model_validate(own)
        source = Parquet(path=every, features=features, where=self.where, join=self.join)
        listing = source.listing(named, base, progress)
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

    def _described(self, saved: Saved) -> dict[str, RecordFeature]:
        """Returns the features completed by the metadata; `PG431` if a column is missing."""
        found = dict(self.features)
        for name, feature in self.features.items():
            if feature.joined:
                continue
            key = feature.key or (feature.keys_of(name)[0] if feature.keys else key_for(saved, name, feature.kind))
            if key is None or (key not in saved.features and "." not in key):
                known, message = tuple(saved.features), f"{saved.folder!r} has no column {key or name!r}"
                error = missing_key(message, feature, name, key or name, known, f"its columns are {quoted(known)}")
                raise error.at(f"features.{name}" if "features" in self.model_fields_set else None)
            changed: dict[str, Any] = {} if feature.keys else {"key": key}
            names = class_names(described(saved, key))
            if feature.own_kind.counts and feature.classes is None and names:
                changed |= {"classes": len(names)} if feature.offset else feature.told_by(names)
            found[name] = feature.model_copy(update=changed)
        return found


def _named(table: Table, names: Mapping[int, tuple[str, ...]], column: int) -> Iterable[Any]:
    """Yields the cells of a column; class indices become class names."""
    own = names.get(column)
    cells = table.columns(column)
    return (own[cell] if isinstance(cell, int) and 0 <= cell < len(own) else cell for cell in cells) if own else cells
