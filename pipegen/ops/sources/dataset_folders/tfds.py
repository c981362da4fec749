"""Reads the metadata of a data set that TensorFlow Datasets prepared, and its syntax of splits. The library itself is not needed.

The layout is `DATA_DIR/NAME[/CONFIG]/VERSION/` with `dataset_info.json` and `features.json`, see `tensorflow_datasets/core/dataset_info.py`
and `core/proto/`; splits are written as in `core/splits.py`, https://www.tensorflow.org/datasets/splits.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.sources.listing.wording import close_names, nearest_folder, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INFO, FEATURES = "dataset_info.json", "features.json"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z")
_NAME = re.compile(r"(?P<name>\w+)(?:/(?P<config>[\w.+-]+))?(?::(?P<version>[\d.*]+))?\Z")
_PART = re.compile(r"(?P<split>[\w-]+)(?:\[(?P<inside>[^\[\]]*)\])?\Z")
_BOUND = re.compile(r"(?:(?P<value>-?[\d_]+(?:\.\d*)?)(?P<unit>%|shard)?)?\Z")
_MOST = 1 << 24
"""Bytes of a file of metadata."""
_FIELD = re.compile(r"\{(\w+)\}")
_FIELDS = frozenset({"DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"})
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
_PLAIN = re.compile(r"[\w.+-]+")
"""What the names of data sets, splits and formats are made of: they are parts of the names of files."""


@dataclass(frozen=True)
class Bound:
    """One end of a slice: a number of records, a percentage of a split, or a number of shards; `None` for the split's own end."""

    value: float | None
    unit: str


@dataclass(frozen=True)
class Slice:
    """A split, or a part of it, as `train[:80%]` names it."""

    split: str
    start: Bound
    stop: Bound

    def within(self, shard_rows: Sequence[int]) -> tuple[int, int]:
        """Finds the records that it names: the first, and one past the last.

        Args:
            shard_rows: Records in each shard of the split.

        Raises:
            OpError: `PG447` where the split has fewer.
        """
        total = sum(shard_rows)
        first, last = _absolute(self.start, shard_rows, 0), _absolute(self.stop, shard_rows, total)
        if abs(first) > total or abs(last) > total:
            raise OpError("PG447", f"the split `{self.split}` has {total:,} records, and {max(abs(first), abs(last)):,} are asked for")
        first, last = (total + bound if bound < 0 else bound for bound in (first, last))
        return first, max(first, last)


def _absolute(bound: Bound, shard_rows: Sequence[int], otherwise: int) -> int:
    if bound.value is None:
        return otherwise
    if bound.unit == "%":
        return round(bound.value * sum(shard_rows) / 100.0)
    if bound.unit == "shard":
        return sum(shard_rows[: int(bound.value)])
    return int(bound.value)


def parse_split(text: str) -> tuple[Slice, ...]:
    """Reads a split in the syntax of TensorFlow Datasets: `train`, `train[:80%]`, `train[10:20]+test`, `train[2shard:]`, `all`.

    Raises:
        ValueError: For what is no such text.
    """
    return tuple(_slice(part.strip(), text) for part in text.split("+"))


def _slice(part: str, text: str) -> Slice:
    match = _PART.match(part)
    wrong = ValueError(f"{text!r} is no split such as `train`, `train[:80%]`, `train[10:20]` or `train+test`")
    if match is None:
        raise wrong
    if match["inside"] is None:
        return Slice(match["split"], Bound(None, ""), Bound(None, ""))
    if match["split"] == "all":
        raise ValueError("`all` is every record of every split, and has no parts")
    bounds = [_BOUND.match(bound.strip()) for bound in match["inside"].split(":")]
    found = [bound for bound in bounds if bound is not None]
    if len(found) < len(bounds) or not any(bound["value"] for bound in found) or len(found) > 2:
        raise wrong
    units = {bound["unit"]: None for bound in found if bound["unit"]}  # one that stands at either end is that of both
    unit = next(iter(units), "")
    if len(units) > 1 or (unit != "%" and "." in match["inside"]):
        raise wrong
    values = [float(bound["value"]) if bound["value"] else None for bound in found]
    if unit == "%" and any(abs(value or 0) > 100 for value in values):
        raise ValueError(f"{text!r} goes beyond 100 %")
    if len(values) == 1:  # one shard
        if unit != "shard" or values[0] is None:
            raise wrong
        values.append(values[0] + 1 if values[0] != -1 else None)
    return Slice(match["split"], Bound(values[0], unit), Bound(values[1], unit))


@dataclass(frozen=True)
class Prepared:
    """A data set that was prepared.

    Attributes:
        folder: The absolute path of the folder that holds its files.
        name: What it is called.
        version: Its version.
        file_format: Such as `tfrecord`.
        splits: For each split, the records of each of its shards.
        templates: For each split, how its files are called.
        features: The description of each feature, by the key that records have it under.
    """

    folder: str
    name: str
    version: str
    file_format: str
    splits: Mapping[str, tuple[int, ...]]
    templates: Mapping[str, str]
    features: Mapping[str, Mapping[str, Any]]

    @property
    def reference(self) -> str:
        """Returns the name with the configuration, if there is one."""
        upper = os.path.basename(os.path.dirname(self.folder))
        return self.name if upper == self.name else f"{self.name}/{upper}"

    @property
    def data_dir(self) -> str:
        """Returns the folder that the data set is below."""
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
        """Yields the parts of files that slices of splits name, in their order: the split, the shard, the first record of it, and how many.

        Raises:
            OpError: `PG447` for an unknown split, or one that has fewer records.
        """
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


def read_prepared(folder: str) -> Prepared:
    """Reads the metadata in the folder of a version of a data set.

    Raises:
        OpError: `PG447`.
    """
    return _read(folder, os.path.basename(os.path.dirname(folder)))


def find_prepared(base: str, data_dir: str, name: str) -> Prepared:
    """Finds a data set below a folder, of the version that is asked for or the newest.

    Raises:
        OpError: `PG401` where it is not there, `PG447` where its metadata cannot be read.
    """
    match = _NAME.match(name)
    if match is None:
        help_ = "such as `mnist`, `mnist:3.0.1` or `imagenet_resized/64x64`"
        raise OpError("PG447", f"{name!r} is no name of a data set", field="name", help=help_)
    root = os.path.abspath(os.path.join(base, os.path.expanduser(data_dir)))
    if not os.path.isdir(root):
        raise OpError("PG401", f"there is no folder {root!r}", field="data_dir", help=nearest_folder(root))
    folder = os.path.join(root, match["name"])
    if not os.path.isdir(folder):
        names = _folders(root)
        near = close_names(match["name"], names)
        help_ = f"is {quoted(near[:1])} meant?" if near else f"it holds {quoted(names)}" if names else "it is empty"
        told = (help_, "nothing is downloaded: TensorFlow Datasets prepares a data set by `tfds build`")
        raise OpError("PG401", f"{root!r} holds no data set {match['name']!r}", field="name", help=told)
    folder = _configured(folder, match["config"])
    folder = os.path.join(folder, _newest(folder, match["version"]))
    return _read(folder, match["name"])


def _folders(folder: str) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _configured(folder: str, config: str | None) -> str:
    """The folder of a configuration: the one that is named, or the only one."""
    names = [name for name in _folders(folder) if not _VERSION.match(name)]
    if config is None and (len(names) < len(_folders(folder)) or not names):
        return folder
    if config is None and len(names) == 1:
        return os.path.join(folder, names[0])
    if config in names:
        return os.path.join(folder, config)
    called = os.path.basename(folder)
    message = f"{called!r} has several configurations" if config is None else f"{called!r} has no configuration {config!r}"
    raise OpError("PG401", message, field="name", help=f"name one of {quoted([f'{called}/{name}' for name in names])}")


def _newest(folder: str, version: str | None) -> str:
    pattern = re.compile(re.escape(version).replace(r"\*", r"\d+") + r"\Z") if version else _VERSION
    known = [name for name in _folders(folder) if _VERSION.match(name)]
    found = [name for name in known if pattern.match(name)]
    if not found:
        what = f"no version {version}" if version else "no version at all"
        raise OpError("PG401", f"{folder!r} holds {what}", field="name", help=f"it holds {quoted(known)}" if known else None)
    return max(found, key=lambda name: [int(part) for part in name.split(".")])


def _read(folder: str, name: str) -> Prepared:
    about, described = _json(folder, INFO), _json(folder, FEATURES)
    try:
        file_format = str(about.get("fileFormat") or "tfrecord")
        listed = about["splits"]
        splits = {str(one["name"]): tuple(map(int, one["shardLengths"])) for one in listed}
        templates = {str(one["name"]): str(one.get("filepathTemplate") or _TEMPLATE) for one in listed}
        features = dict(_flat(described, ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"the metadata in {folder!r} cannot be understood: {type(error).__name__}: {error}"
        raise OpError("PG447", message, field="name", help="prepare the data set with a newer TensorFlow Datasets") from None
    called = str(about.get("name") or name)
    odd = next((text for text in (called, file_format, *splits) if not _PLAIN.fullmatch(text)), None)
    if odd is not None:
        raise OpError("PG447", f"{INFO} in {folder!r} has the name {odd!r}, which is not the name of a file", field="name")
    for split, template in templates.items():
        if not set(_FIELD.findall(template)) <= _FIELDS or not re.fullmatch(r"[^{}\0]*", _FIELD.sub("", template)):
            message = f"{INFO} in {folder!r} names the files of split {split!r} by {template!r}, which has a field that is not known"
            raise OpError("PG447", message, field="name", help=f"the fields are {quoted(sorted(_FIELDS))}")
    if any(rows < 0 for split in splits.values() for rows in split):
        raise OpError("PG447", f"{INFO} in {folder!r} says that a file has less than no records", field="name")
    return Prepared(folder, called, os.path.basename(folder), file_format, splits, templates, features)


def _json(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read(_MOST))
    except FileNotFoundError:
        help_ = "the folder was not prepared to its end, or by a version of TensorFlow Datasets from before 2021"
        raise OpError("PG447", f"there is no {path!r}", field="name", help=help_) from None
    except (OSError, ValueError) as error:
        raise OpError("PG447", f"{path!r} cannot be read: {error}", field="name") from None
    if not isinstance(found, dict):
        raise OpError("PG447", f"{path!r} is no description of a data set", field="name")
    return found


def _flat(feature: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the features of a description with their keys in a record, where an inner feature stands behind a slash."""
    inner = feature
    while "sequence" in inner:
        inner = inner["sequence"]["feature"]
    if "featuresDict" in inner:
        for name, one in inner["featuresDict"]["features"].items():
            below = f"{key}/{name}" if key else name
            yield from _flat({"sequence": {"feature": one}} if inner is not feature else one, below)
    else:
        yield key, feature


def class_names(prepared: Prepared, key: str) -> tuple[str, ...]:
    """Returns the classes of a label, by the file that lists them, or else by their number; none where it is no label with classes.

    Raises:
        OpError: `PG447` where the file cannot be read, or lists more or fewer classes than the label has.
    """
    feature = prepared.features[key]
    while "sequence" in feature:
        feature = feature["sequence"]["feature"]
    said = feature.get("classLabel", {}).get("numClasses") or feature.get("image", {}).get("label", {}).get("numClasses") or 0
    if not str(said).isdigit():
        raise OpError("PG447", f"{FEATURES} in {prepared.folder!r} says that `{key}` has {said!r} classes", field="name")
    path = os.path.join(prepared.folder, f"{key.replace('/', '-')}.labels.txt")
    count, numbers = int(said), tuple(map(str, range(int(said))))
    if not count or not os.path.exists(path):
        return numbers
    help_ = "write the file again, or say `classes` in `features`"
    try:
        with open(path, encoding="utf-8") as stream:
            names = tuple(line.strip() for line in stream.read(_MOST).splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise OpError("PG447", f"{path!r} cannot be read: {error}", field="name", help=help_) from None
    odd = next((name for name in names if not name.isprintable()), None)
    if odd is not None:
        raise OpError("PG447", f"{path!r} is damaged: it lists the class {odd!r}", field="name", help=help_)
    if len(names) != count:
        raise OpError("PG447", f"{path!r} lists {len(names):,} classes, and {FEATURES} says {count:,}", field="name", help=help_)
    return names
