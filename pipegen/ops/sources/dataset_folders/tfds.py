"""Reads metadata and split syntax of TensorFlow Datasets, without the library.

Layout: `DATA_DIR/NAME[/CONFIG]/VERSION/` with `dataset_info.json` and `features.json`, see `tensorflow_datasets/core/dataset_info.py`
and `core/proto/`; splits as in `core/splits.py`, https://www.tensorflow.org/datasets/splits.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import quoted
from pipegen.ops.sources.listing.paths import close_names, nearest_folder

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
