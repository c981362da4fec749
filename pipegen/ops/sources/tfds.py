"""`tfds`: datasets prepared by TensorFlow Datasets, read in place, without the library.

Layout: `DATA_DIR/NAME[/CONFIG]/VERSION/` with `dataset_info.json` and `features.json`, see `tensorflow_datasets/core/dataset_info.py`
and `core/proto/`; splits as in `core/splits.py`, https://www.tensorflow.org/datasets/splits.
"""

from __future__ import annotations

import builtins
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, field_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.notes import quoted
from pipegen.ops.kinds.base import ExampleClass, ItemClass
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.array_record import ArrayRecord
from pipegen.ops.sources.listing.base import Listing, Shards, SplitSource, always, shards_of
from pipegen.ops.sources.listing.paths import close_names, nearest_folder
from pipegen.ops.sources.records.source import IMAGE_AND_LABEL, DescribedRecords, RecordFeature, RecordSource, missing_key
from pipegen.ops.sources.tfrecord import TFRecord
from pipegen.ops.transform import SplitName

Piece: TypeAlias = tuple[str, str, int, int]
"""Split of the pipeline, name of the file, first record used, number of records used."""
INFO, FEATURES = "dataset_info.json", "features.json"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z")
_NAME = re.compile(r"(?P<name>\w+)(?:/(?P<config>[\w.+-]+))?(?::(?P<version>[\d.*]+))?\Z")
_PART = re.compile(r"(?P<split>[\w-]+)(?:\[(?P<inside>[^\[\]]*)\])?\Z")
_BOUND = re.compile(r"(?:(?P<value>-?[\d_]+(?:\.\d*)?)(?P<unit>%|shard)?)?\Z")
_MOST = 1 << 24  # size limit of a metadata file
_FIELD = re.compile(r"\{(\w+)\}")
_FIELDS = frozenset({"DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"})
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
_PLAIN = re.compile(r"[\w.+-]+")  # allowed names of datasets, splits and formats, which are parts of file names


@dataclass(frozen=True)
class Slice:
    """A split or a part of it, such as `train[:80%]`."""

    split: str
    start: float | None = None  # a number of records, a percentage of the split, or a number of shards; `None` for the end of the split
    stop: float | None = None  # likewise
    unit: str = ""  # the unit of both: "", `%` or `shard`

    def within(self, shard_rows: Sequence[int]) -> tuple[int, int]:
        """Returns the first record, and one past the last, of shards with these numbers of records; `PG447` if the split has fewer."""
        total = sum(shard_rows)
        first, last = self._absolute(self.start, shard_rows, 0), self._absolute(self.stop, shard_rows, total)
        if abs(first) > total or abs(last) > total:
            raise OpError("PG447", f"the split `{self.split}` has {total:,} records, but {max(abs(first), abs(last)):,} are requested")
        first, last = (total + bound if bound < 0 else bound for bound in (first, last))
        return first, max(first, last)

    def _absolute(self, bound: float | None, shard_rows: Sequence[int], otherwise: int) -> int:
        if bound is None:
            return otherwise
        if self.unit == "%":
            return round(bound * sum(shard_rows) / 100.0)
        if self.unit == "shard":
            return sum(shard_rows[: int(bound)])
        return int(bound)


def parse_split(text: str) -> tuple[Slice, ...]:
    """Parses a split in the syntax of TensorFlow Datasets: `train`, `train[:80%]`, `train[10:20]+test`, `train[2shard:]`, `all`;
    `ValueError` for others."""
    return tuple(_slice(part.strip(), text) for part in text.split("+"))


def _slice(part: str, text: str) -> Slice:
    match = _PART.match(part)
    wrong = ValueError(f"invalid split {text!r}; examples: `train`, `train[:80%]`, `train[10:20]`, `train+test`")
    if match is None:
        raise wrong
    if match["inside"] is None:
        return Slice(match["split"])
    if match["split"] == "all":
        raise ValueError("`all` is every record of every split; it has no parts")
    bounds = [_BOUND.match(bound.strip()) for bound in match["inside"].split(":")]
    found = [bound for bound in bounds if bound is not None]
    if len(found) < len(bounds) or not any(bound["value"] for bound in found) or len(found) > 2:
        raise wrong
    units = {bound["unit"]: None for bound in found if bound["unit"]}  # a unit at one end is for both
    unit = next(iter(units), "")
    if len(units) > 1 or (unit != "%" and "." in match["inside"]):
        raise wrong
    values = [float(bound["value"]) if bound["value"] else None for bound in found]
    if unit == "%" and any(abs(value or 0) > 100 for value in values):
        raise ValueError(f"{text!r} exceeds 100 %")
    if len(values) == 1:  # one shard
        if unit != "shard" or values[0] is None:
            raise wrong
        values.append(values[0] + 1 if values[0] != -1 else None)
    return Slice(match["split"], values[0], values[1], unit)


@dataclass(frozen=True)
class Prepared:
    """A prepared dataset."""

    folder: str  # absolute path of the folder with its files
    name: str  # its name
    file_format: str  # such as `tfrecord`
    splits: Mapping[str, tuple[int, ...]]  # number of records in each shard of each split
    templates: Mapping[str, str]  # template of file names of each split
    features: Mapping[str, Mapping[str, Any]]  # description of each feature, by its key in records

    @property
    def reference(self) -> str:
        """The name with the configuration, if any."""
        upper = os.path.basename(os.path.dirname(self.folder))
        return self.name if upper == self.name else f"{self.name}/{upper}"

    @property
    def data_dir(self) -> str:
        """The folder of all datasets."""
        folder = os.path.dirname(os.path.dirname(self.folder))
        return folder if "/" not in self.reference else os.path.dirname(folder)

    def shard(self, split: str, number: int) -> str:
        """Returns the name of a file of a split."""
        count = len(self.splits[split])
        digits = max(5, len(str(count)))
        index, of = f"{number:0{digits}}", f"{count:0{digits}}"
        values = {
            "DATASET": self.name, "SPLIT": split, "FILEFORMAT": self.file_format, "SHARD_INDEX": index, "NUM_SHARDS": of,
            "SHARD_X_OF_Y": f"{index}-of-{of}",
        }  # fmt: skip
        return _FIELD.sub(lambda found: values[found[1]], self.templates[split])

    def pieces(self, slices: Sequence[Slice]) -> Iterator[tuple[str, int, int, int]]:
        """Yields parts of files for slices of splits, in order: split, shard, its first record, and the number of records. `PG447` for an
        unknown split, or one with fewer records."""
        for one in slices:
            for split in self.splits if one.split == "all" else (one.split,):
                if split not in self.splits:
                    near = close_names(split, list(self.splits))
                    help_ = f"is {quoted(near[:1])} meant?" if near else f"its splits are {quoted(list(self.splits))}"
                    raise OpError("PG447", f"{self.name!r} has no split {split!r}", help=help_)
                rows = self.splits[split]
                first, last = one.within(rows) if one.split != "all" else (0, sum(rows))
                start = 0
                for shard, count in enumerate(rows):
                    low, high = max(first, start), min(last, start + count)
                    if low < high:
                        yield split, shard, low - start, high - low
                    start += count


def find_prepared(base: str, data_dir: str, name: str) -> Prepared:
    """Finds a dataset below a folder, of the requested version or the newest; `PG401` if it is missing, `PG447` if its metadata is
    invalid."""
    match = _NAME.match(name)
    if match is None:
        help_ = "use for example `mnist`, `mnist:3.0.1` or `imagenet_resized/64x64`"
        raise OpError("PG447", f"invalid dataset name {name!r}", field="name", help=help_)
    root = os.path.abspath(os.path.join(base, os.path.expanduser(data_dir)))
    if not os.path.isdir(root):
        raise OpError("PG401", f"the folder {root!r} does not exist", field="data_dir", help=nearest_folder(root))
    folder = os.path.join(root, match["name"])
    if not os.path.isdir(folder):
        names = _folders(root)
        near = close_names(match["name"], names)
        help_ = f"is {quoted(near[:1])} meant?" if near else f"it holds {quoted(names)}" if names else "it is empty"
        told = (help_, "nothing is downloaded; prepare it with TensorFlow Datasets: `tfds build`")
        raise OpError("PG401", f"{root!r} has no dataset {match['name']!r}", field="name", help=told)
    folder = _configured(folder, match["config"])
    version = match["version"]
    pattern = re.compile(re.escape(version).replace(r"\*", r"\d+") + r"\Z") if version else _VERSION
    known = [name for name in _folders(folder) if _VERSION.match(name)]
    found = [name for name in known if pattern.match(name)]
    if not found:
        what = f"no version {version}" if version else "no version"
        raise OpError("PG401", f"{folder!r} holds {what}", field="name", help=f"it holds {quoted(known)}" if known else None)
    newest = max(found, key=lambda name: [int(part) for part in name.split(".")])
    return read_prepared(os.path.join(folder, newest), match["name"])


def _folders(folder: str) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _configured(folder: str, config: str | None) -> str:
    """Returns the folder of the named configuration, or of the only one."""
    names = [name for name in _folders(folder) if not _VERSION.match(name)]
    if config is None and (len(names) < len(_folders(folder)) or not names):
        return folder
    if config in names or (config is None and len(names) == 1):
        return os.path.join(folder, config or names[0])
    called = os.path.basename(folder)
    message = f"{called!r} has several configurations" if config is None else f"{called!r} has no configuration {config!r}"
    raise OpError("PG401", message, field="name", help=f"use one of {quoted([f'{called}/{name}' for name in names])}")


def read_prepared(folder: str, name: str | None = None) -> Prepared:
    """Reads the metadata in the folder of a dataset's version; `PG447` if it is invalid. It may lack the `name`, by default that above."""
    about, described = _json(folder, INFO), _json(folder, FEATURES)
    try:
        file_format = str(about.get("fileFormat") or "tfrecord")
        listed = about["splits"]
        splits = {str(one["name"]): tuple(map(int, one["shardLengths"])) for one in listed}
        templates = {str(one["name"]): str(one.get("filepathTemplate") or _TEMPLATE) for one in listed}
        features = dict(_flat(described, ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"invalid metadata in {folder!r}: {type(error).__name__}: {error}"
        raise OpError("PG447", message, field="name", help="prepare the dataset with a newer TensorFlow Datasets") from None
    called = str(about.get("name") or name or os.path.basename(os.path.dirname(folder)))
    odd = next((text for text in (called, file_format, *splits) if not _PLAIN.fullmatch(text)), None)
    if odd is not None:
        raise OpError("PG447", f"{INFO} in {folder!r} has the name {odd!r}, which cannot be part of a file name", field="name")
    for split, template in templates.items():
        if not set(_FIELD.findall(template)) <= _FIELDS or not re.fullmatch(r"[^{}\0]*", _FIELD.sub("", template)):
            message = f"{INFO} in {folder!r} names the files of split {split!r} by {template!r}, which has an unknown field"
            raise OpError("PG447", message, field="name", help=f"the fields are {quoted(sorted(_FIELDS))}")
    if any(rows < 0 for split in splits.values() for rows in split):
        raise OpError("PG447", f"{INFO} in {folder!r} has a negative number of records", field="name")
    return Prepared(folder, called, file_format, splits, templates, features)


def _json(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read(_MOST))
    except FileNotFoundError:
        help_ = "preparing did not finish, or used TensorFlow Datasets from before 2021"
        raise OpError("PG447", f"{path!r} is missing", field="name", help=help_) from None
    except (OSError, ValueError) as error:
        raise OpError("PG447", f"{path!r} cannot be read: {error}", field="name") from None
    if not isinstance(found, dict):
        raise OpError("PG447", f"{path!r} does not describe a dataset", field="name")
    return found


def _flat(feature: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields features by key in a record; keys of nested features have slashes."""
    inner = _item(feature)
    if "featuresDict" in inner:
        for name, one in inner["featuresDict"]["features"].items():
            below = f"{key}/{name}" if key else name
            yield from _flat({"sequence": {"feature": one}} if inner is not feature else one, below)
    else:
        yield key, feature


def _item(feature: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the description of the items of a list, of another feature itself."""
    while "sequence" in feature:
        feature = feature["sequence"]["feature"]
    return feature


def described_as(prepared: Prepared, key: str, called: str) -> bool:
    """Checks the class of a feature, or of the items of a list."""
    return str(_item(prepared.features[key]).get("pythonClassName", "")).rpartition(".")[2] == called


def class_names(prepared: Prepared, key: str) -> tuple[str, ...]:
    """Returns the classes of a label from their file, else by number; empty without classes. `PG447` if the file is unreadable, or its
    number of classes differs from the label's."""
    feature = _item(prepared.features[key])
    said = feature.get("classLabel", {}).get("numClasses") or feature.get("image", {}).get("label", {}).get("numClasses") or 0
    if not str(said).isdigit():
        raise OpError("PG447", f"{FEATURES} in {prepared.folder!r} gives `{key}` {said!r} classes", field="name")
    path = os.path.join(prepared.folder, f"{key.replace('/', '-')}.labels.txt")
    count, numbers = int(said), tuple(map(str, range(int(said))))
    if not count or not os.path.exists(path):
        return numbers
    help_ = "write the file again, or set `classes` in `features`"
    try:
        with open(path, encoding="utf-8") as stream:
            names = tuple(line.strip() for line in stream.read(_MOST).splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise OpError("PG447", f"{path!r} cannot be read: {error}", field="name", help=help_) from None
    odd = next((name for name in names if not name.isprintable()), None)
    if odd is not None:
        raise OpError("PG447", f"{path!r} is damaged: it lists the class {odd!r}", field="name", help=help_)
    if len(names) != count:
        raise OpError("PG447", f"{path!r} lists {len(names):,} classes, but {FEATURES} says {count:,}", field="name", help=help_)
    return names


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
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1, validate_default=True)] = IMAGE_AND_LABEL
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
        features = self.completed(partial(self._told, prepared))
        source = self._format(prepared)(path=tuple(files), features=features, where=self.where, join=self.join)
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

    def _told(self, prepared: Prepared, name: str, feature: RecordFeature) -> Mapping[str, Any]:
        """Returns the arguments of a feature that the metadata tells; `PG431` if it is missing or has another kind."""
        key = next((one for one in feature.keys_of(name) if one not in prepared.features), feature.keys_of(name)[0])
        if key not in prepared.features:
            error = missing_key(repr(prepared.name), feature, name, key, tuple(prepared.features), "feature")
            raise error.at(f"features.{name}" if "features" in self.model_fields_set else None)
        about, kind = prepared.features[key], feature.own_kind
        if kind.pixels is not None and "image" not in about:
            called = "a list" if "sequence" in about else str(about.get("pythonClassName", "something else")).rpartition(".")[2]
            message = f"{key!r} of {prepared.name!r} is {called}, but `{name}` needs the bytes of an image file"
            raise OpError("PG431", message, field=f"features.{name}")
        if kind.samples is not None and "audio" in about:
            _check_sound(f"{key!r} of {prepared.name!r}", name, feature, about["audio"])
        if kind.guides("boxes") and feature.format is None and described_as(prepared, key, "BBoxFeature"):
            return {"format": "rel_yxyx"}
        names = class_names(prepared, key) if kind.has(ExampleClass, ItemClass) and feature.classes is None else ()
        return feature.told_by(names) if names else {}


def _check_sound(called: str, name: str, feature: RecordFeature, about: Mapping[str, Any]) -> None:
    """Compares the rate and the channels of samples with those that the metadata tells; `PG431` if they differ."""
    sides = about.get("shape", {}).get("dimensions", ())
    told = {"rate": int(about.get("sampleRate") or 0), "channels": int(sides[1]) if len(sides) > 1 else 1}
    given = {"rate": feature.rate, "channels": feature.channels or 1}
    for argument, value in told.items():
        if value and value != given[argument] and not about.get("lazyDecode"):
            word = "samples a second" if argument == "rate" else "channels" if value > 1 else "channel"
            help_ = write(f"{argument}: {value}", "arguments", "write {}" + "; the step `resample` changes it" * (argument == "rate"))
            raise OpError("PG431", f"{called} has {value} {word}", field=f"features.{name}.{argument}", help=help_)


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
