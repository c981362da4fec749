"""The base of sources of files with many records each, and their features: finds, indexes and lists shards."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr, field_validator, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.columns import Column as Held
from pipegen.ops.fields.columns import Ragged, spread
from pipegen.ops.fields.notes import Note, quoted
from pipegen.ops.fields.numbers import read_numbers
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import ExampleClass, LossWeight, Numbers
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import FeatureSource, HeldKindName
from pipegen.ops.sources.features.predicate import Where, parse_arithmetic, parse_predicate
from pipegen.ops.sources.listing.base import Listing, Location, Shards, always
from pipegen.ops.sources.records.columns import LabelColumn, RecordCells, items_of_records
from pipegen.ops.sources.records.index import Indexed, InShard, RecordIndex, ShardRecords, build_index
from pipegen.ops.sources.records.reader import RecordReader
from pipegen.ops.sources.shards.findings import compression, finding_notes, tallied, unpacking_help
from pipegen.ops.sources.shards.paths import Found, expand, find_shards
from pipegen.ops.sources.stores.field_types import FieldType, Form
from pipegen.ops.sources.tables.features import FormattedFeature, unread_formats
from pipegen.ops.sources.tables.readings import Column, Join
from pipegen.types import FeatureType

Key = Annotated[str, Field(min_length=1)]
Path_ = Annotated[str, Field(min_length=1)]
Side = Annotated[int, Field(ge=1)]


class RecordFeature(FormattedFeature):
    """One feature of the records, and its key; or of a joined table, and its column."""

    kind: HeldKindName
    """`image`: the bytes of an image file. `mask`: the bytes of a file with a class for each pixel of the image. `dense`: the bytes of a
    file with numbers for each pixel, or arrays. `label`: a class index or class name. `tensor`: numbers of one `shape` and `dtype`.
    `weight`: a number of 0 or more that weighs the example in the loss. `boxes`: four numbers for each box, as lists or one after another.
    `events`: start and end in seconds, likewise. `keypoints`: x and y, optionally with 0, 1 or 2 for absent, hidden or visible, likewise. A
    `label` or `tensor` that is `with` boxes or events has one value for each of them. Items and what is with them are read once for all
    records, and held in memory."""
    key: Key | None = None
    """Key of the feature in the record; by default its name."""
    keys: Annotated[tuple[Key, ...], Field(min_length=2, max_length=4)] | None = None
    """For boxes, in place of `key`: the keys of their four numbers, in the order of `format`, with a list of one number per box each:
    `[bbox/xmin, bbox/ymin, bbox/xmax, bbox/ymax]`. For events: the keys of their two, such as `[onset, offset]`."""
    column: Column | None = None
    """Column of the joined table (`join`) that has the feature, in place of a `key`: its name, or its number from 0."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """Several columns of the joined table: the numbers of a tensor; the four numbers of boxes or the two of events, in the order of
    `format`; or x and y of each of the `names` of keypoints, or x, y and visibility."""
    shape: Annotated[tuple[Side, ...], Field(max_length=8)] | None = None
    """Shape of a tensor, such as `[17, 3]`; by default one number. For keypoints without `names` that are numbers one after another: `[2]`
    for x and y, `[3]` with the visibility."""

    @model_validator(mode="after")
    def _consistent(self) -> RecordFeature:
        if self.keys is not None and self.key is not None:
            raise ValueError("`keys` are several in place of the one `key`; leave one of them out")
        numbers = self.own_kind.numbers
        if self.keys is not None and len(self.keys) != numbers:
            raise PartError(f"{self.own_kind.plural} have {numbers} `keys`, in the order of their `format`, not {len(self.keys)}", "keys")
        for name in ("key", "keys"):
            if self.joined and getattr(self, name) is not None:
                raise ValueError(f"`{name}` is in the records, and `column` in the joined table; leave one of them out")
        self.check_whole()
        if self.joined and self.own_kind.has_files:
            raise PartError(f"{self.own_kind.plural} cannot be in the joined table, whose rows are in another order", "column")
        return self

    def keys_of(self, name: str) -> tuple[str, ...]:
        """Returns the keys that the feature `name` is read from."""
        return self.keys or (self.key or name,)

    @property
    def joined(self) -> bool:
        """Whether it is in columns of the joined table, or computed from columns."""
        return self.column is not None or self.columns is not None or self.value is not None

    def key_field(self, name: str) -> str:
        """Returns the argument that errors about the key of this feature point to."""
        return f"features.{name}.key" if self.key is not None else f"features.{name}"


IMAGE_AND_LABEL: Any = {"image": {"kind": "image"}, "label": {"kind": "label"}}
"""Features of a dataset with metadata by default; the field makes `RecordFeature`s of them."""


class DescribedRecords(FeatureSource):
    """Records in files of many, described by the argument `features`, which each source declares."""

    if TYPE_CHECKING:
        features: dict[FeatureName, RecordFeature]

    where: Where | None = None
    """Records that are examples: a comparison of short values in them, such as `age >= 18 and site in ['a', 'b']`, with `and`, `or`, `not`,
    brackets and `in`; a name is a key of the records. Put texts in quotes, and keys that are not plain words in backticks. These values are
    read once for all records. Records keep the ids that they have without it."""
    join: Join | None = None
    """A table whose columns are added to the records with the same key, for features with a `column`, for `where` and for splits:
    `{table: {csv: {path: labels.csv}}, on: {id: file}}`. In `webdataset` and `zip`, `__key__` is the name of a record."""

    _folder: Path | None = PrivateAttr(default=None)
    """Folder of the index."""

    @model_validator(mode="after")
    def _in_one_place(self) -> DescribedRecords:
        for name, feature in self.features.items():
            if feature.joined and feature.value is None and self.join is None:
                raise PartError(
                    f"`{name}` has a `column`, which needs a joined table",
                    "features",
                    name,
                    help="a joined table is `join: {table: …, on: …}`; a key of the records is `key`",
                )
            home = self.features.get(feature.home or "", feature)
            if home.joined is not feature.joined:
                places = [
                    f"`{one}` in the {'joined table' if f.joined else 'records'}" for one, f in ((name, feature), (feature.home, home))
                ]
                raise PartError(f"`{name}` is `with: {feature.home}`, but {' and '.join(places)}", "features", name, "with")
        if all(feature.joined for feature in self.features.values()):
            raise PartError("all features are in columns, and none is read with the records", "features")
        return self

    has_rows = by_class = always(False)  # records lie in files, and a file holds records of every class
    column_names = always(None)  # short values can be read for all records
    columns_cost = always("read once from all records")
    split_method = always("hash")  # which does not depend on the order of records

    @property
    def read_features(self) -> dict[str, RecordFeature]:
        """The features that are read with each record; others are read once for all records."""
        return {name: f for name, f in self.features.items() if not (f.own_kind.ragged or f.several or f.joined)}

    def completed(self, told: Callable[[str, RecordFeature], Mapping[str, Any]]) -> dict[str, RecordFeature]:
        """Returns the features with the arguments that metadata tells; those of the joined table as they are."""
        return {name: f if f.joined else f.model_copy(update=told(name, f)) for name, f in self.features.items()}

    def remarks(self) -> tuple[str, ...]:
        names = " and ".join(f"`{name}`" for name in self.features if name not in self.read_features)
        held = (f"{names} of all records are read once and held in memory",) if names else ()
        needed = dict.fromkeys(parse_predicate(self.where).columns, "where") if self.where is not None else {}
        needed |= {str(self.join.own): "join"} if self.join is not None else {}
        computed = (parse_arithmetic(feature.value).columns for feature in self.features.values() if feature.value is not None)
        needed |= dict.fromkeys(chain.from_iterable(computed), "value")
        return (*held, *(f"{name!r}, for `{argument}`, is {self.columns_cost()}" for name, argument in needed.items()))

    def keep_index_in(self, folder: Path | None) -> None:
        self._folder = folder


class RecordSource(DescribedRecords):
    """Files of many records each: shards. A record is identified by `SHARD#NUMBER`, counted from 0.

    A format derives from it and defines how to index a shard (`index_shard`) and to read records (`reader`). If its library finds records
    by number, it has no `parts()`, and `index_shard` returns `counted(rows)`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """Endings of shards in a folder."""
    unpacks: ClassVar[Mapping[str, str]] = {}
    """File ending for each possible `compression` of shards."""
    marks: ClassVar[tuple[str, ...]] = ()
    """Names of files that mark a folder as one shard."""
    checksums: ClassVar[str] = ""
    """Description of the format's checksums; see `Reader.checksums`."""
    labels_of_one_type: ClassVar[bool] = False
    """Whether all labels must have the type of the first one: number or text."""
    reads: ClassVar[type[RecordReader]]
    """The class of its reader."""

    path: Path_ | Annotated[tuple[Path_, ...], Field(min_length=1)]
    """Shards, relative to the spec's file: a file, a folder, a pattern such as `data/train-*`, a range such as `train-{000..099}.tar`, or a
    list of these."""
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1)]
    """Features of each record, by name: `{image: {kind: image, key: image/encoded}, label: {kind: label}}`."""

    @field_validator("path")
    @classmethod
    def _sound_braces(cls, path: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for one in (path,) if isinstance(path, str) else path:
            next(expand(one))
        return path

    # What every format has in common

    has_folders = always(True)  # each split may have a folder of shards

    def key_of(self, name: str) -> str:
        return self.features[name].keys_of(name)[0]

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Index the shards; see `Source.list`. A damaged shard is an error note. Raises `OpError`: `PG401` and `PG402` as `find_shards`,
        `PG402` without any record, `PG414` without the library of a format, `PG430` for an unreadable shard, `PG431` if records do not fit
        the features, `PG420` for invalid labels."""
        for unread in unread_formats(self.features):
            raise unread
        joined = {name: feature for name, feature in self.features.items() if feature.joined}
        plain = self.model_copy(update={"features": {n: f for n, f in self.features.items() if n not in joined}}) if joined else self
        found = plain._indexed(base, progress)
        cells = RecordCells(plain, found, progress)
        rows, notes, held = cells.choose(self.where, self.join, joined, base)
        kept: Ints | None = None
        if len(rows) < found.total:
            kept = np.zeros(found.total, bool)
            kept[np.fromiter(rows, np.int64, len(rows))] = True
            held = {name: replace(column, values=spread(column.values, kept.nonzero()[0], found.total)) for name, column in held.items()}
        if self.where is not None:
            message = f"`where` keeps {len(rows):,} of {found.total:,} records; the values that it compares were read once for all"
            notes = (*notes, Note("PG432", message, field="where"))
        made = plain.listed(replace(found, cells=cells.column, kept=kept), self, held)
        return replace(made, cells=None if self.column_names() == () else cells.column, notes=(*made.notes, *notes))

    def _indexed(self, base: Path, progress: Callable[[int], None] | None) -> Indexed:
        beside: builtins.list[Note] = []
        root, shards = find_shards(str(base), self.path, self.shard_endings(), self.marks, beside, self.unpacks)
        index = self._index_of(root, shards, progress)
        notes = [_damaged(shard, damage) for shard, damage in zip(shards, index.damage, strict=True) if damage]
        found = [(shard.path, findings) for shard, findings in zip(shards, index.findings, strict=True)]
        empty = {place for place, rows in enumerate(index.rows) if not rows and not index.damage[place] and not found[place][1]}
        notes += finding_notes((path, {"empty": (1, "")} if place in empty else own) for place, (path, own) in enumerate(found))
        indexed = Indexed(root, shards, index, options=self.index_options(), folder=self._folder)
        _raise_error(() if indexed.total else notes)
        notes += [*self.noted(indexed), *beside]
        if not indexed.total:
            _raise_error(notes)
            help_ = next((f"{note.message}; {note.help}" if note.help else note.message for note in notes if note not in beside), None)
            others = f" nor in {n} other shard{'s' * (n > 1)}" if (n := len(shards) - 1) else ""
            raise OpError("PG402", f"no record in {shards[0].path!r}{others}", field="path", help=help_)
        return replace(indexed, notes=tuple(notes), types=self.types(indexed))

    def _index_of(self, root: str, shards: Sequence[Found], progress: Callable[[int], None] | None = None) -> RecordIndex:
        name = f"{self.op}\0{root}\0{self.parts()}{self.index_options()}"
        return build_index(shards, self._index, parts=len(self.parts()), name=name, folder=self._folder, progress=progress)

    def with_key(self, found: Indexed, key: str) -> tuple[RecordSource, Indexed, str]:
        """Returns a source of the same records with a key among its features, its index, and that feature; for errors see `index_shard`."""
        key = self.key_of_column(key)
        name = next((name for name in self.read_features if self.features[name].keys is None and self.key_of(name) == key), None)
        if name is not None:
            return self, found, name
        name = key if key not in self.features else f"{key} (a key)"
        source = self.model_copy(update={"features": {**self.features, name: RecordFeature(kind="label", key=key)}})
        source.keep_index_in(self._folder)
        if (source.parts(), source.index_options()) != (self.parts(), self.index_options()):
            found = replace(found, index=self.same_records(source._index_of(found.root, found.shards), found.index))
        return source, found, name

    def same_records(self, index: RecordIndex, own: RecordIndex) -> RecordIndex:
        """Returns an index that has one more part, for the records of another index."""
        return index

    def key_of_column(self, column: str) -> str:
        """Returns the key that a column names."""
        return column

    def listed(self, found: Indexed, whole: RecordSource, joined: Mapping[str, Held]) -> Listing:
        """Returns the listing of indexed shards; `PG402` if `ignore` leaves out every record, `PG420` for invalid labels.

        Args:
            found: The shards.
            whole: This source with the features in the joined table.
            joined: The columns of these.
        """
        rows = found.index.rows
        labels = {n: LabelColumn(self, n, found) for n, f in self.features.items() if f.own_kind.has(ExampleClass) and not f.several}
        reader = self.reader(found, labels)
        reader.checksums = self.checksums
        reader.numbers = partial(self._numbers, found, joined)
        type_ = whole.infer().replace(**self.found_types(found.types))
        type_ = type_.replace(**{name: type_[name].with_(classes=len(label.names)) for name, label in labels.items()})
        read = [label.column for label in labels.values() if not label.is_known]
        items = items_of_records(self, found)
        stays = [found.kept, *(column.stays for column in (*read, *items.values()))]
        kept = np.logical_and.reduce([np.ones(found.total, bool), *(one for one in stays if one is not None)])
        if not kept.any():
            raise OpError("PG402", "`ignore` leaves out every record", field="features")
        blocks: Ints | None = np.full(len(rows), reader.at_once, np.int64) if reader.at_once > 1 else None
        listing = Listing(
            found.root,
            Location.below(found.root, [shard.key for shard in found.shards], self.record_bytes(found)),
            (*found.notes, *chain.from_iterable(column.notes for column in read)),
            readers={"": reader},
            classes={name: label.names for name, label in labels.items()},
            label=whole.labelled_by(),
            shards=Shards(rows, np.arange(len(rows)), found.index.digests, blocks, kept=None if kept.all() else kept),  # type: ignore[arg-type]
            type=type_,
        )
        return listing.with_columns({**items, **joined}, type_)

    def _numbers(self, found: Indexed, joined: Mapping[str, Held], name: str, files: Ints) -> Ints | None:
        """Reads a single number of every record of some files, or a label of the joined table, 0 for records that `where` leaves out;
        `None` for other features. Raises `OpError`: `PG423` and `PG666` as for a table."""
        if name in joined:
            values = joined[name].values
            several = isinstance(values, Ragged) or (joined[name].classes and values.ndim > 1)
            return found.of(values.reshape(-1), files) if not several and values.size == found.total else None
        feature = self.features.get(name)
        if feature is None or found.cells is None or not feature.own_kind.has(Numbers) or feature.stored_shape not in ((), (1,)):
            return None
        field = f"features.{name}"
        cells = found.cells(self.key_of(name), field)
        used = np.arange(found.total) if found.used is None else found.used
        about = lambda row: found.place(int(used[row])), field, feature.dtype
        values = read_numbers([cells[row] for row in used.tolist()], *about, weights=feature.own_kind.has(LossWeight))
        return found.of(spread(values, used, found.total), files)

    def _index(self, path: str, size: int) -> ShardRecords:
        """Calls `index_shard`, and distinguishes compressed shards from damaged ones. Raises `OpError`: `PG430` for a shard that needs
        `compression`."""
        found = self.index_shard(path, size)
        packed = compression(content_of(path, 16)) if found.damage and not len(found.offsets) and not os.path.isdir(path) else ""
        if packed in self.unpacks:
            raise OpError("PG430", f"{path!r} is compressed by {packed}", field="path", help=unpacking_help(packed))
        return replace(found, damage="", findings=tallied([("compressed", packed)])) if packed else found

    # What each format says

    def shard_endings(self) -> tuple[str, ...]:
        """Returns the endings of shards in a folder."""
        return self.suffixes

    def record_bytes(self, found: Indexed) -> Ints:
        """Returns the bytes that the records of each shard take when read, int64; by default the file size."""
        return np.array([shard.size for shard in found.shards], np.int64)

    def found_types(self, types: Mapping[str, FieldType]) -> dict[str, FeatureType]:
        """Returns the types of images and maps that are arrays, which the first record determines."""
        inferred, found = self.infer(), dict[str, FeatureType]()
        for name, held in types.items():
            values = self.features[name].own_kind.values
            if values is not None and values.also and not held.encoded:
                shape = held.shape if len(held.shape) == values.axes else (*held.shape, 1)  # one channel may lack its axis
                try:
                    found[name] = values.of_array(inferred[name], held.dtype, shape)
                except OpError as error:
                    raise error.below(f"features.{name}") from None
        return found

    def parts(self) -> tuple[str, ...]:
        """Returns the names of the indexed parts of a record; by default the record as a whole."""
        return ("",)

    def index_options(self) -> str:
        """Returns other settings that `index_shard` depends on, as text."""
        return ""

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Finds the records of one shard. Runs in threads, and reads as little as possible. Raises `OSError` if the file cannot be read;
        `OpError` if the file has another format."""
        raise NotImplementedError

    def noted(self, found: Indexed) -> Iterable[Note]:
        """Reports shards that differ from the format's own list, if any; `PG401` if one is missing."""
        return ()

    def types(self, found: Indexed) -> dict[str, FieldType]:
        """Finds the type of each feature that is read with its record, from the first one; `PG431` if one is missing or does not fit,
        `PG430` if it is damaged."""
        raise NotImplementedError

    def stored(self, form: Form, name: str, key: str, records: InShard) -> Sequence[Any]:
        """Reads a value of each of a shard's records.

        Args:
            form: What it is read as.
            name: The feature, or one that `with_key` added.
            key: Its key, or one of its keys.
            records: The records.

        Raises:
            OpError: `PG431` for a record without the value.
        """
        raise NotImplementedError

    def contents(self, name: str, records: InShard) -> Iterator[bytes | memoryview | None]:
        """Yields the stored bytes of a feature, or of whole records, of a shard; `None` for a record without them. `OSError` if the file
        cannot be read, `ValueError` if it is damaged. Not for records that a library reads."""
        raise NotImplementedError

    def within(self, name: str, content: bytes | memoryview, types: Mapping[str, FieldType]) -> bytes:
        """Extracts a feature from its `contents`; `ValueError` without it."""
        raise NotImplementedError

    def parse(self, reader: Any, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        """Decodes features of one record with TensorFlow ops: encoded ones as a string scalar, a label as an int64 class index, others as
        numbers of their shape.

        Args:
            reader: The reader of the records.
            features: The requested features.
            parts: The parts that they are read from, string scalars.
            places: Offset and length of every part, int64 scalars.
        """
        raise NotImplementedError

    def damaged_files(self, shards: Sequence[Found]) -> Iterator[tuple[str, str]]:
        """Reads every shard with a recorded checksum; see `Reader.damaged_files`."""
        return iter(())

    def known_keys(self, found: Indexed) -> Sequence[str]:
        """Returns the keys of the first record, for messages."""
        return ()

    def first_label(self, name: str, found: Indexed) -> Any:
        """Reads the stored label of the first record; for errors see `stored`."""
        return self.stored("label", name, self.key_of(name), found.first)[0]

    def reader(self, found: Indexed, labels: Mapping[str, LabelColumn]) -> RecordReader:
        """Returns the reader of the records; `labels` has the column of each label."""
        return self.reads(self, found, labels)


def _raise_error(notes: Iterable[Note]) -> None:
    """Raises the first note that is an error."""
    grave = next((note for note in notes if note.severity == "error"), None)
    if grave is not None:
        raise OpError(grave.code, grave.message, field=grave.field, help=grave.help)


def _damaged(shard: Found, damage: str) -> Note:
    help_ = ("write the file again", "or leave out whole shards with `errors: {exclude: FILE}`")
    return Note("PG430", f"{shard.path!r} is damaged {damage}", help_, "path", "error")


_PICKLED = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # first bytes of pickled objects, by protocol version


def check_field(name: str, feature: RecordFeature, key: str, held: FieldType, where: str = "", *, arrays: bool = False) -> None:
    """Raises `PG431` if a feature cannot be built from the values of a key, of the type `held`. `where` says which records have it, after
    the key in messages; with `arrays`, images may be arrays."""
    kind = feature.own_kind
    due = (kind.values or kind.meaning).due(held, feature.stored_shape, arrays=arrays)
    if due is None and kind.samples is not None and not held.is_content and (feature.offset or feature.duration is not None):
        field = f"features.{name}.{'offset' if feature.offset else 'duration'}"
        raise OpError("PG431", f"{where}{key!r} holds {held}, and only files are read in part", field=field, help="remove it")
    if due is None:
        return
    suits = kind.has(Numbers) and held.counts and not kind.has(LossWeight)
    help_ = write(f"shape: {list(held.shape)}", "arguments", "{} keeps them as they are") if suits else None
    raise OpError("PG431", f"{key!r}{where} holds {held}, but `{name}` needs {due}", field=feature.key_field(name), help=help_)


def missing_key(
    where: str, feature: RecordFeature, name: str, key: str, known: Sequence[str], word: str = "key", whose: str = "its", none: str = ""
) -> OpError:
    """Returns the error for a key that records lack, which suggests a known one; `word` is what the format calls a key, and `none` says
    that there are no others."""
    near, message = closest(key, known), f"{where} has no {word} {key!r}"
    listed = f"{whose} {word}s are {quoted(known)}" if known or not none else none
    help_ = listed if near is None else (write(f"key: {near}", "arguments", "is {} meant?"), listed)
    return OpError("PG431", message, field=feature.key_field(name), help=help_)


def check_pickled(name: str, value: bytes) -> None:
    """Raises `PG431` if an image is a pickled object."""
    if value.startswith(_PICKLED) and value.endswith(b"."):
        message = f"`{name}` of the first record is a pickled object; unpickling is refused, since it could run foreign code"
        raise OpError("PG431", message, field=f"features.{name}", help="store the bytes of image files instead")
