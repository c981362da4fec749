"""`tfds`: datasets prepared by TensorFlow Datasets, read in place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, field_validator

from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.fields.notes import quoted
from pipegen.ops.kinds.base import ExampleClass, ItemClass
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.array_record import ArrayRecord
from pipegen.ops.sources.dataset_folders.tfds import Prepared, class_names, described_as, find_prepared, parse_split
from pipegen.ops.sources.listing.base import Listing, Shards, SplitSource, always, shards_of
from pipegen.ops.sources.records.described import DescribedRecords, RecordFeature, missing_key
from pipegen.ops.sources.tfrecord import TFRecord
from pipegen.ops.transform import SplitName

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipegen.ops.sources.records.source import RecordSource

    Piece = tuple[str, str, int, int]
    """Split of the pipeline, name of the file, first record used, number of records used."""

_Split = Annotated[str, Field(min_length=1)]
FORMATS: dict[str, type[RecordSource]] = {"tfrecord": TFRecord, "array_record": ArrayRecord}  # source that reads each file format


class Tfds(SplitSource, DescribedRecords):
    """A dataset prepared by TensorFlow Datasets: the folder `DATA_DIR/NAME/VERSION` with its metadata. Nothing is downloaded, and the
    library is not needed.

    Records are read as with `tfrecord`, in the graph, or as with `array_record`, depending on their format. The metadata gives the classes.
    The format `parquet` is refused, since the library's writer of it loses records.
    """

    op: ClassVar[str] = "tfds"
    places: ClassVar[frozenset[str]] = frozenset({"data_dir"})

    name: Annotated[str, Field(min_length=1)]
    """Name, optionally with a configuration and a version: `mnist`, `mnist:3.0.1`, `imagenet_resized/64x64`. By default the newest version
    found."""
    data_dir: Annotated[str, Field(min_length=1)] = "~/tensorflow_datasets"
    """Folder of prepared datasets, relative to the spec's file."""
    split: _Split | Annotated[dict[SplitName, _Split], Field(min_length=1)] = "train"
    """Records to read, in the syntax of TensorFlow Datasets: `train`, `train[:80%]`, `train[1000:2000]`, `train+test`, `all`. Or one for
    each split of the pipeline: `{train: 'train[:80%]', validation: 'train[80%:]', test: test}`."""
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1, validate_default=True)] = {
        "image": {"kind": "image"},  # type: ignore[dict-item]  # which the field makes one
        "label": {"kind": "label"},  # type: ignore[dict-item]
    }
    """Features of each record, as with `tfrecord`. The key of a nested feature has slashes: `objects/label`. By default `image` and
    `label`."""

    @field_validator("split")
    @classmethod
    def _can_be_read(cls, split: str | dict[str, str]) -> str | dict[str, str]:
        for part, text in {"": split}.items() if isinstance(split, str) else split.items():
            try:
                parse_split(text)
            except ValueError as error:
                if part:
                    raise PartError(str(error), part) from None
                raise
        return split

    has_folders = always(False)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Find the folder, index its files and list the parts of them that the splits name; see `Source.list`. Raises `OpError`: `PG401` if
        the dataset is missing, `PG447` for unusable metadata, splits or formats, `PG448` for a record in several splits; else as
        `RecordSource.list`."""
        prepared = find_prepared(str(base), self.data_dir, self.name)
        pieces = self._pieces(prepared)
        files = dict.fromkeys(os.path.join(prepared.folder, file) for _, file, _, _ in pieces)
        source = self._format(prepared)(path=tuple(files), features=self._described(prepared), where=self.where, join=self.join)
        source.keep_index_in(self._folder)
        listing = _parts_of(source.list(base, progress), pieces, prepared)
        return replace(listing, parts=self.parts_of([split for split, *_ in pieces]))

    def _format(self, prepared: Prepared) -> type[RecordSource]:
        if prepared.file_format not in FORMATS:
            message = f"{prepared.name!r} was prepared as {prepared.file_format}; supported are {quoted(list(FORMATS))}"
            lost = "; TensorFlow Datasets' writer of Parquet files loses records" if prepared.file_format == "parquet" else ""
            help_ = f"prepare it again in a supported format: `tfds build {prepared.name} --file_format={next(iter(FORMATS))}`{lost}"
            raise OpError("PG447", message, field="name", help=help_)
        return FORMATS[prepared.file_format]

    def _pieces(self, prepared: Prepared) -> builtins.list[Piece]:
        """Returns the parts of files that the splits name; `PG447` for a bad split, `PG448` for overlaps."""
        found: builtins.list[Piece] = []
        for split, text, field in self.each_split():
            try:
                named = prepared.pieces(parse_split(text))
                pieces = [(split, prepared.shard(own, shard), first, count) for own, shard, first, count in named]
            except OpError as error:
                raise error.at(field) from None
            if not pieces:
                raise OpError("PG447", f"{text!r} matches no record of {prepared.name!r}", field=field)
            found += pieces
        ends: dict[str, tuple[int, str]] = {}
        for split, file, first, count in sorted(found, key=lambda piece: (piece[1], piece[2])):
            end, other = ends.get(file, (0, ""))
            if first < end:
                where = f"both in `{other}` and in `{split}`" if other != split else "twice"
                message = f"records of {file!r} are named {where}, the first of them number {first}"
                field = f"split.{split}" if split else "split"
                raise OpError("PG448", message, field=field, help="evaluation examples must not be in `train`")
            ends[file] = first + count, split
        return found

    def _described(self, prepared: Prepared) -> dict[str, RecordFeature]:
        """Returns the features completed by the metadata; `PG431` if one is missing or has another kind."""
        found = dict(self.features)
        for name, feature in self.features.items():
            if feature.joined:
                continue
            key = next((one for one in feature.keys_of(name) if one not in prepared.features), feature.keys_of(name)[0])
            if key not in prepared.features:
                known, message = tuple(prepared.features), f"{prepared.name!r} has no feature {key!r}"
                error = missing_key(message, feature, name, key, known, f"its features are {quoted(known)}")
                raise error.at(f"features.{name}" if "features" in self.model_fields_set else None)
            about = prepared.features[key]
            if feature.own_kind.pixels is not None and "image" not in about:
                called = "a list" if "sequence" in about else str(about.get("pythonClassName", "something else")).rpartition(".")[2]
                message = f"{key!r} of {prepared.name!r} is {called}, but `{name}` needs the bytes of an image file"
                raise OpError("PG431", message, field=f"features.{name}")
            kind = feature.own_kind
            names = class_names(prepared, key) if kind.has(ExampleClass, ItemClass) and feature.classes is None else ()
            told = feature.told_by(names) if names else {}
            if kind.guides("boxes") and feature.format is None and described_as(prepared, key, "BBoxFeature"):
                told = {"format": "rel_yxyx"}
            found[name] = feature.model_copy(update=told) if told else feature
        return found


def _parts_of(listing: Listing, pieces: Sequence[Piece], prepared: Prepared) -> Listing:
    """Narrows a listing to parts of its files; `PG430` if a file's record count differs from the metadata."""
    held = shards_of(listing)
    at = {key: i for i, key in enumerate(listing.keys)}
    for key, rows in zip(listing.keys, held.rows.tolist(), strict=True):
        due = next(n[i] for split, n in prepared.splits.items() for i in range(len(n)) if prepared.shard(split, i) == key)
        if rows != due and not any(note.severity == "error" for note in listing.notes):
            message = f"{os.path.join(listing.root, key)!r} has {rows:,} records, but its metadata says {due:,}"
            raise OpError("PG430", message, field="name", help="prepare the dataset again")
    places = np.array([at[file] for _, file, _, _ in pieces], np.int64)
    firsts, counts = (np.array([piece[i] for piece in pieces], np.int64) for i in (2, 3))
    digests = tuple(f"{held.digests[int(place)]}@{first}" for place, first in zip(places, firsts.tolist(), strict=True))
    sizes = np.asarray(listing.sizes, np.int64)[places] * counts // np.maximum(held.rows[places], 1)
    kept = held.kept_rows(places, counts, firsts)
    shards = Shards(counts, held.numbers[places], digests, offsets=firsts, kept=kept)  # type: ignore[arg-type]  # texts are held
    numbers = held.records(places, counts, firsts) if listing.columns else places
    columns = {name: values[numbers] for name, values in listing.columns.items()}
    cells = listing.cells_of(places, counts, firsts)
    taken = listing.take(places)
    return replace(taken, location=replace(taken.location, sizes=sizes), shards=shards, columns=columns, cells=cells)
