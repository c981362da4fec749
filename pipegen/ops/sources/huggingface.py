"""`huggingface`: a data set that Hugging Face's library saved, read where it lies."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.arrow import Arrow
from pipegen.ops.sources.dataset_folders.hub import class_names, files_of, find_saved, key_for
from pipegen.ops.sources.features.arrays import FeatureName
from pipegen.ops.sources.listing.base import Note, Parts, shards_of
from pipegen.ops.sources.listing.wording import close_names, quoted
from pipegen.ops.sources.parquet import Parquet
from pipegen.ops.sources.records.features import RecordFeature
from pipegen.ops.sources.records.shard_sets import check_sets
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.ops.sources.tables.parquet_files import read_parquet
from pipegen.ops.transform import SplitName

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipegen.ops.sources.dataset_folders.hub import Saved
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.tables.table import Table

_Split = Annotated[str, Field(min_length=1)]


class Huggingface(Arrow):
    """A folder in which Hugging Face's library saved or prepared a data set, or one of Parquet files as on the Hub.

    `save_to_disk` writes such a folder, and the Hub names files as in `data/train-00000-of-00003.parquet`. Nothing is downloaded, and the
    library is not needed, only PyArrow: `pip install 'pipegen[arrow]'`.

    Images and the names of classes come from the metadata of the data set. The records are read as with `arrow`, those of Parquet files as
    with `parquet`.
    """

    op: ClassVar[str] = "huggingface"
    called: ClassVar[str] = "Arrow"

    path: Annotated[str, Field(min_length=1)]
    """The folder, relative to the spec's file."""
    split: _Split | Annotated[dict[SplitName, _Split], Field(min_length=1)] = "train"
    """The split of the data set to read; or for each split of the pipeline one of the data set's: `{train: train, test: test}`."""
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1, validate_default=True)] = {
        "image": {"kind": "image"},  # type: ignore[dict-item]  # which the field makes one
        "label": {"kind": "label"},  # type: ignore[dict-item]
    }
    """What each record holds, as with `arrow`. By default `image` and `label`: the columns of these names, or else the only `Image` and the
    only `ClassLabel` of the data set."""

    def has_folders(self) -> bool:
        """No: the metadata says which file is of which split."""
        return False

    def split_names(self) -> tuple[str, ...] | None:
        """Returns the splits where `split` names one for each."""
        return None if isinstance(self.split, str) else tuple(self.split)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Find the folder and list its files; see `StoreSource.list`.

        Raises:
            OpError: `PG401` without the folder, or one of its numbered files, `PG443` for one that holds something else, or for a split
                that is not there, `PG430` where a split holds another number of records than its metadata says; as `RecordSource.list`.
        """
        saved = find_saved(str(base), self.path)
        splits = {"": self.split} if isinstance(self.split, str) else self.split
        files = {name: files_of(saved, split, f"split.{name}" if name else "split") for name, split in splits.items()}
        every = [file for own in files.values() for file in own]
        twice = next((file for file in every if every.count(file) > 1), None)
        if twice is not None:
            help_ = "what a model is measured on must be none of what it learned from"
            raise OpError("PG443", f"{twice!r} is in several splits", field="split", help=help_)
        check_sets(every, dict.fromkeys(every, "*"))
        if saved.parquet:
            return self._in_parquet(saved, files, base, progress)
        source = Arrow(path=tuple(every), features=self._described(saved))
        source.keep_index_in(self._folder)
        listing = source.list(base, progress)
        of = {file: name for name, own in files.items() for file in own}
        parts = [of[f"{listing.root}/{key}"] for key in listing.keys]
        listing = replace(listing, notes=(*listing.notes, *self._counted(saved, listing, parts, splits)))
        return listing if isinstance(self.split, str) else replace(listing, parts=Parts.hold(parts))

    def _in_parquet(
        self, saved: Saved, files: Mapping[str, tuple[str, ...]], base: Path, progress: Callable[[int], None] | None
    ) -> Listing:
        """Lists the rows of Parquet files; of a label whose metadata names its classes, a cell is the index of one."""
        described = self._described(saved)
        every = tuple(file for own in files.values() for file in own)
        table = read_parquet(every, saved.folder)
        names = {
            table.number(feature.key or name, f"features.{name}"): class_names(saved.features.get(feature.key or name, {}))
            for name, feature in described.items()
            if kind_of(feature).labels and not feature.offset and not feature.chosen  # whose `map` has the indices by now
        }
        named = replace(table, columns=partial(_named, table, names))
        source = Parquet(path=every, features={name: _in_table(name, feature) for name, feature in described.items()})
        listing = source.listing(named, base, progress)
        if isinstance(self.split, str):
            return listing
        of = {os.path.relpath(file, saved.folder).replace(os.sep, "/"): name for name, own in files.items() for file in own}
        return replace(listing, parts=Parts.hold([of[key.rpartition("#")[0]] for key in listing.keys]))

    def _counted(self, saved: Saved, listing: Listing, parts: builtins.list[str], splits: Mapping[str, str]) -> builtins.list[Note]:
        """Compares the number of records of each split with what its metadata says.

        Raises:
            OpError: `PG430` where records are missing; a note says where they may be.
        """
        notes = []
        for name, split in splits.items():
            rows = sum(n for n, part in zip(shards_of(listing).rows.tolist(), parts, strict=True) if part == name)
            due = saved.rows.get(split, rows)
            if rows == due or any(note.severity == "error" for note in listing.notes):
                continue
            message = f"the split {split!r} of {saved.folder!r} holds {rows:,} records, and its metadata says {due:,}"
            if saved.sure:
                raise OpError("PG430", message, field="path", help="save the data set again")
            help_ = "a set that was filtered before it was saved keeps the number of before; if this one was not, save it again"
            notes.append(Note("PG430", message, help_, "path", "warning"))
        return notes

    def _described(self, saved: Saved) -> dict[str, RecordFeature]:
        """The features, with what the metadata says of them.

        Raises:
            OpError: `PG431` for one that the records do not have.
        """
        found = {}
        for name, feature in self.features.items():
            key = feature.key or key_for(saved, name, feature.kind)
            if key is None or (key not in saved.features and "." not in key):
                known = tuple(saved.features)
                near = close_names(key or name, known)
                help_ = f"is {near[0]!r} meant?" if near else f"its columns are {quoted(known)}"
                field = f"features.{name}" if "features" in self.model_fields_set else None
                raise OpError("PG431", f"{saved.folder!r} has no column {key or name!r}", field=field, help=help_)
            changed: dict[str, Any] = {"key": key}
            names = class_names(saved.features.get(key, {}))
            if kind_of(feature).labels and feature.classes is None and names:
                changed |= {"classes": len(names)} if feature.offset else feature.told_by(names)
            found[name] = feature.model_copy(update=changed)
        return found


def _named(table: Table, names: Mapping[int, tuple[str, ...]], column: int) -> Iterable[Any]:
    """The cells of a column; of one with named classes, their names."""
    own = names.get(column)
    cells = table.columns(column)
    return (own[cell] if isinstance(cell, int) and 0 <= cell < len(own) else cell for cell in cells) if own else cells


def _in_table(name: str, feature: RecordFeature) -> TableFeature:
    """Describes a feature as one of a table's rows."""
    about = feature.model_dump(exclude_defaults=True, exclude={"key"})
    return TableFeature.model_validate(about | {"kind": feature.kind, "column": feature.key or name})
